// Every page works without this file. It remembers the theme, knows the keys, copies,
// steps numbers, and keeps what was typed when the server does not answer.
(() => {
  "use strict";
  const root = document.documentElement;
  const home = new URL("../..", document.currentScript.src).pathname; // "/", or a prefix
  const year = 31536000;
  const cookie = (name) =>
    (document.cookie.match(`(?:^|; )${name}=([^;]*)`) || [])[1] || "";
  const remember = (name, value) => {
    document.cookie = `${name}=${value}; path=${home}; max-age=${year}; samesite=lax`;
  };

  // The study day turns at four in the morning where the learner is.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && cookie("zone") !== zone) remember("zone", zone);

  const dark = () =>
    root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;

  const clicks = {
    "[data-theme-toggle]": () => {
      root.dataset.theme = dark() ? "light" : "dark";
      remember("theme", root.dataset.theme);
    },
    "[data-copy]": (button) => {
      const from = document.querySelector(button.dataset.copy);
      const said = button.lastChild.textContent;
      navigator.clipboard?.writeText(from.value ?? from.textContent).then(() => {
        button.lastChild.textContent = " Copied";
        setTimeout(() => { button.lastChild.textContent = said; }, 2000);
      });
    },
    "[data-by], [data-times]": (button) => {
      const input = button.parentElement.querySelector("input");
      const now = Number(input.value.replaceAll(",", ""));
      const { by, times } = button.dataset;
      const next = times ? now * Number(times) : now + Number(by);
      const least = Number(input.dataset.least || input.min || -Infinity);
      if (!Number.isFinite(next) || next < least) return;
      input.value = Math.round(next).toLocaleString("en-US");
      input.dispatchEvent(new Event("input", { bubbles: true }));
    },
  };
  document.addEventListener("click", (event) => {
    for (const [what, act] of Object.entries(clicks)) {
      const hit = event.target.closest(what);
      if (hit) act(hit);
    }
  });

  // Keys. An element says data-key="r"; g then a letter goes to a part of the app.
  const rooms = { t: "", c: "course", r: "flashcards", p: "quiz", k: "calculators" };
  let leader = 0;
  const typing = (element) =>
    element.isContentEditable ||
    element.matches("textarea, select, input:not([type=radio], [type=checkbox])");
  const seen = (element) => {
    const box = element.getBoundingClientRect();
    return element.checkVisibility() && box.bottom > 0 && box.top < innerHeight;
  };
  const keyed = (key) => {
    const all = [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)];
    const near = document.activeElement?.closest("[data-keys]");
    return all.find((e) => near?.contains(e)) || all.find(seen) || all[0];
  };
  // Results of a search are gone through one by one; the last word is the field's.
  const pick = (by) => {
    const links = [...document.querySelectorAll("[data-result]")];
    const at = links.indexOf(document.activeElement) + by;
    if (at >= 0) links[at]?.focus();
    else document.getElementById("q").focus();
  };
  const step = (by) => {
    if (document.querySelector("[data-result]")) return pick(by);
    const stops = [...document.querySelectorAll("[data-stop]")];
    const tops = stops.map((e) => e.getBoundingClientRect().top);
    const index = by > 0 ? tops.findIndex((t) => t > 90) : tops.findLastIndex((t) => t < 60);
    const stop = stops[index];
    if (!stop) return;
    stop.setAttribute("tabindex", "-1");
    stop.scrollIntoView();
    stop.focus({ preventScroll: true });
  };
  document.addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    const { target } = event;
    const arrow = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (arrow && target.matches("#q, [data-result]")) {
      event.preventDefault();
      return pick(target.id === "q" && arrow < 0 ? 0 : arrow);
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (cookie("keys") === "off" || typing(target)) return;
    const pressed = key === " " ? "a, button, summary, input" : "a, button, summary";
    if ((key === " " || key === "enter") && target.closest(pressed)) return;
    const gone = Date.now() - leader < 1500 && key in rooms && home + rooms[key];
    leader = key === "g" ? Date.now() : 0;
    const hit = gone ? null : keyed(key);
    if (gone) location.assign(gone);
    else if (key === "?") document.getElementById("keys").togglePopover();
    else if (hit && !hit.disabled) hit.click();
    else if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
    else return;
    event.preventDefault();
  });

  // The address follows what is looked for, so that going back finds it again.
  document.addEventListener("htmx:afterSwap", (event) => {
    const field = event.target.id === "found" && document.getElementById("q");
    if (field) history.replaceState(history.state, "", `?q=${encodeURIComponent(field.value)}`);
  });

  // The section that is being read, in the list beside the text.
  const heads = [...document.querySelectorAll(".prose > h2[id]")];
  const locate = () => {
    const at = heads.findLast((head) => head.getBoundingClientRect().top < 160);
    for (const link of document.querySelectorAll("#toc a")) {
      if (at && link.hash === `#${at.id}`) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
  };
  if (heads.length) {
    document.addEventListener("scroll", () => requestAnimationFrame(locate), { passive: true });
    document.addEventListener("htmx:afterSwap", locate);
    locate();
  }

  // A message like those of the templates; what it says is text, never HTML.
  window.notice = (kind, icon, bold, words, label, act) => {
    const box = document.createElement("div");
    box.className = `msg ${kind}`;
    box.innerHTML = `<svg class="i" aria-hidden="true"><use href="#i-${icon}"/></svg>` +
      '<div><p><b></b> <span></span></p></div><button class="btn" type="button"></button>';
    box.querySelector("b").textContent = bold;
    box.querySelector("span").textContent = words;
    const button = box.querySelector("button");
    button.textContent = label;
    if (act) button.addEventListener("click", act);
    else button.remove();
    return box;
  };

  // No answer: say so, keep the inputs, grey what is shown, try again.
  const waits = [5, 10, 20, 40, 60];
  const lost = new WeakMap();
  const fresh = new WeakMap();
  const clock = (date) => date.toTimeString().slice(0, 5);
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
    const message = notice("warn", "off", "No answer from the server.", "Your inputs are kept.", "Try now", again);
    message.querySelector("p").setAttribute("role", "alert");
    message.querySelector("div").insertAdjacentHTML("beforeend", '<p class="small quiet"></p>');
    if (target === elt) target.before(message);
    else target.prepend(message);
    target.classList.toggle("busy", target !== elt);
    let left = waits[Math.min(tries, waits.length - 1)];
    const age = fresh.get(target) ? ` What is shown is of ${clock(fresh.get(target))}.` : "";
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
    if ([502, 503, 504].includes(event.detail.xhr.status)) lose(event);
  });
  // Who pressed a button that is replaced goes on in what takes its place.
  let held = null;
  document.addEventListener("htmx:beforeRequest", (event) => {
    clearInterval(lost.get(event.detail.elt)?.timer);
    held = document.activeElement;
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    const { elt } = event.detail;
    if (!held || held.isConnected || document.activeElement !== document.body) return;
    const same = held.name && `[name="${CSS.escape(held.name)}"]:not([type=hidden])`;
    held = null;
    const goal = elt.querySelector("#go") || (same && elt.querySelector(same)) ||
      elt.querySelector("input:not([type=hidden]), textarea, .btn, button, a") || elt;
    if (goal === elt) elt.setAttribute("tabindex", "-1");
    goal.focus({ preventScroll: true });
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, requestConfig, xhr } = event.detail;
    if (xhr.status >= 400 && "quiet" in requestConfig.elt.dataset) {
      event.detail.shouldSwap = false;
      return;
    }
    forget(requestConfig.elt);
    for (const old of target.querySelectorAll(":scope > .problems")) old.remove();
    fresh.set(target, new Date());
  });
})();
