// No answer: say so, keep the inputs, gray what is shown, try again.
{
  const waits = [5, 10, 20, 40, 60];
  // Not now: the server or its proxy is away, busy or full. What is kept in the browser
  // waits as well where this browser has sent too much at once, or too slowly.
  const away = ({ status }) => [502, 503, 504, 507].includes(status);
  const soon = (elt, xhr) => "later" in elt.dataset && (away(xhr) || [408, 425, 429].includes(xhr.status));
  // Only this server names its answers. What it says of itself is shown instead of a guess.
  const ourWords = (xhr) => {
    if (!away(xhr) || !xhr.getResponseHeader("x-request-id")) return "";
    const said = new DOMParser().parseFromString(xhr.responseText, "text/html");
    return said.querySelector("[role=alert] p, [role=alert]")?.textContent.trim();
  };
  const lost = new WeakMap();
  const fresh = new WeakMap();
  const forget = (element) => {
    const state = lost.get(element);
    if (!state) return;
    clearInterval(state.timer);
    state.message.remove();
    state.target.classList.remove("busy");
    lost.delete(element);
  };
  const lose = (event) => {
    const { elt, target, requestConfig } = event.detail;
    if ("later" in elt.dataset) return outbox.take(event.detail);
    // The worker has a page for this, where it runs.
    if ("plain" in elt.dataset && navigator.serviceWorker?.controller) return elt.submit();
    if ("quiet" in elt.dataset) {
      // What the reader did not ask for is tried again without a word.
      setTimeout(() => htmx.ajax("POST", requestConfig.path, { source: elt }), 15000);
      return;
    }
    const tries = (lost.get(elt)?.tries ?? -1) + 1;
    forget(elt);
    const again = () => {
      clearInterval(state.timer);
      const { verb, path, triggeringEvent } = requestConfig;
      htmx.ajax(verb, path, { source: elt, event: triggeringEvent });
    };
    const message = notice("warn", "off", ourWords(event.detail.xhr) || "No answer from the server.", "Your inputs are kept.", "Try now", again);
    message.querySelector("p").setAttribute("role", "alert");
    message.querySelector("div").insertAdjacentHTML("beforeend", '<p class="small quiet"></p>');
    if (target === elt) target.before(message);
    else target.prepend(message);
    target.classList.toggle("busy", target !== elt);
    let left = waits[Math.min(tries, waits.length - 1)];
    const age = fresh.get(target) ? ` What is shown is of ${fresh.get(target)}.` : "";
    const tick = () => {
      if (!message.isConnected) return clearInterval(state.timer);
      message.querySelector(".quiet").textContent = `Trying again in ${left}\u00a0s.${age}`;
      if (left-- <= 0) again();
    };
    const state = { tries, message, target, timer: setInterval(tick, 1000) };
    lost.set(elt, state);
    tick();
  };
  document.addEventListener("htmx:sendError", lose);
  document.addEventListener("htmx:timeout", lose);
  document.addEventListener("htmx:responseError", (event) => {
    const { requestConfig: { elt }, xhr } = event.detail;
    if (away(xhr) || soon(elt, xhr)) lose(event);
  });
  document.addEventListener("htmx:beforeRequest", (event) => clearInterval(lost.get(event.detail.elt)?.timer));
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, requestConfig, xhr } = event.detail;
    if ((xhr.status >= 400 && "quiet" in requestConfig.elt.dataset) || soon(requestConfig.elt, xhr)) {
      event.detail.shouldSwap = false;
      return;
    }
    forget(requestConfig.elt);
    for (const old of target.querySelectorAll(":scope > .problems")) old.remove();
    fresh.set(target, new Date().toLocaleTimeString("en-US", { timeStyle: "short" }));
  });
}
