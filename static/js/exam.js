// The answers of a mock exam: each is saved, kept here where that fails, and shown.
(() => {
  "use strict";
  if (!document.querySelector("[data-left]")) return;
  const age = Number(document.getElementById("kept").dataset.age || 0); // of a kept copy
  const local = () => document.querySelectorAll("time[data-clock]").forEach((time) => {
    time.textContent = new Date(time.dateTime).toLocaleTimeString("en-US");
  });
  local();

  // Without a network. Every change is also noted here: a kept copy of the page is older.
  const form = document.querySelector("form[data-later]");
  if (!form) return;
  const path = new URL(form.action).pathname;
  const state = (pairs = new FormData(form)) =>
    [...pairs].filter(([name]) => !["since", "shown"].includes(name));
  const of = (pairs, name) => [...pairs].filter(([other]) => other === name).map(([, value]) => value);
  // What was changed in a form that waits; all of it where that does not say.
  const fill = (pairs) => {
    const shown = new URLSearchParams(of(pairs, "shown")[0]);
    for (const field of form.elements) {
      const values = of(pairs, field.name);
      if (of(pairs, "shown").length && `${values}` === `${of(shown, field.name)}`) continue;
      if (["checkbox", "radio"].includes(field.type)) field.checked = values.includes(field.value);
      else if (!["hidden", "submit"].includes(field.type) && values.length) field.value = values[0];
    }
  };
  // Better known here than to the page: what waits, and what was noted since its copy.
  const copied = age && Date.now() - age * 1000;
  const newer = (path) => {
    const noted = JSON.parse(localStorage.getItem(`sat.${path}`));
    return outbox.waits(path) || (copied && noted?.at > copied && noted.pairs);
  };
  const waits = newer(path);
  if (waits) fill(waits);
  // Steps that were moved tick themselves, and then only the tick says what counts.
  const [says, mark] = form.querySelectorAll("[name=settled]");
  if (mark) says.value = "no";
  form.addEventListener("input", ({ target }) => target.name.startsWith("place.") && (mark.checked = true), true);
  form.since.value = Number(form.since.value) + Math.round(age * 1000);
  // The form as it was shown or last sent: the server applies what differs from that.
  // What waits in the browser comes there first, so it counts as sent.
  const written = (pairs) => new URLSearchParams(state(pairs)).toString();
  let sent = written();
  const remember = (pairs) => (form.shown.value = sent = written(pairs));
  if (waits) remember();
  const item = () => ({ what: "answer", to: path, body: [...new FormData(form)] });
  for (const key of Object.keys(localStorage))
    if (key.startsWith("sat.") && !key.startsWith(`sat.${path.replace(/\d+$/, "")}`)) localStorage.removeItem(key);
  form.addEventListener("input", () =>
    localStorage.setItem(`sat.${path}`, JSON.stringify({ at: Date.now(), pairs: state() })));

  const isAnswer = (pairs) => pairs.some(([name, value]) =>
    name === "settled" ? value === "yes" : /^(answer$|pair|blank)/.test(name) && value.trim());
  const numbers = (which = "") => [...document.querySelectorAll(`#palette nav button${which}`)];
  const palette = () => {
    local();
    document.getElementById("pace").hidden = copied > 0; // by the clock of the server
    for (const button of numbers()) {
      button.ariaCurrent = button.dataset.to === location.pathname ? "true" : null;
      button.ariaLabel = button.dataset.label ??= button.ariaLabel; // of the server, unless more is known here
      const to = button.dataset.to.replace("questions", "answers");
      const pairs = newer(to);
      if (!pairs) continue;
      const did = button.classList.toggle("did", isAnswer(pairs));
      button.classList.remove("unread", "part"); // which the server alone can tell
      const flag = button.classList.toggle("flag", pairs.some(([name]) => name === "flag"));
      const said = !did ? "unanswered" : outbox.waits(to) ? "kept in this browser" : "answered";
      button.ariaLabel = `${button.textContent}, ${said}${flag ? ", flagged" : ""}`;
      document.getElementById("pace").hidden = true;
      if (outbox.waits(to)) document.getElementById("saved").textContent = "Kept in this browser";
    }
    const counted = { answered: ".did", unanswered: ":not(.did, .unread, .part)", incomplete: ".part", flagged: ".flag", "can’t": ".unread" };
    for (const part of document.querySelectorAll("#palette .leg .state > :not(.pal)"))
      part.textContent = part.textContent.replace(/\d+/, numbers(counted[part.textContent.split(" ")[0]]).length);
  };
  palette();
  document.addEventListener("htmx:sendError", palette);
  let begun = 0, stay = false, left = false;
  form.addEventListener("htmx:beforeRequest", (event) => {
    begun = Date.now();
    if (written() === sent) event.preventDefault(); // a change is told twice, as a change and as input
  });
  form.addEventListener("htmx:afterRequest", ({ detail }) => {
    stay = /data-stay/.test(detail.xhr.responseText);
    if (!detail.successful && detail.xhr.status !== 409) return;
    remember(detail.requestConfig.formData);
    outbox.forget(path, begun);
  });
  document.addEventListener("htmx:afterSettle", palette);
  document.addEventListener("sent", ({ detail: { to, html, own } }) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const fresh = page.getElementById("saved"); // its parts alone: htmx may hold the mark itself
    if (fresh) document.getElementById("saved").replaceChildren(...fresh.childNodes);
    const at = (of) => of.querySelector("#palette nav")?.dataset.at; // none where the exam is over
    if (at(page) >= at(document)) // or this page was told newer things meanwhile
      for (const id of to === path ? ["palette", "since"] : ["palette"])
        document.getElementById(id).replaceWith(page.getElementById(id));
    if (own && to === path) {
      remember(own);
      stay = !!page.querySelector("#told [data-stay]");
      const told = page.getElementById("told");
      if (told) document.getElementById("told").replaceWith(told);
    }
    palette();
  });
  // Going on saves first and then asks for the page, so that neither needs the other.
  // Who has to be told something is, and goes on the next time.
  form.addEventListener("submit", async (event) => {
    const to = event.submitter?.dataset.to;
    left = !to;
    if (!to) return;
    event.preventDefault();
    stay = false;
    const patience = new Promise((go_on) => setTimeout(go_on, 3000));
    const answered = new Promise((go_on) => form.addEventListener("htmx:afterRequest", go_on, { once: true }));
    if (form.matches(".htmx-request")) await Promise.race([answered, patience]);
    if (stay) return;
    if (written() !== sent) await Promise.race([outbox.keep(item()), patience]);
    else { // of what was only looked at the time is counted
      const headers = { "HX-Request": "true" };
      fetch(path, { method: "POST", headers, body: new URLSearchParams(item().body), keepalive: true }).catch(() => {});
    }
    if (stay) return;
    left = true;
    location.assign(to);
  });
  // Who leaves otherwise may have typed a moment ago.
  addEventListener("pagehide", () => {
    const kept = outbox.mine(path);
    if (!left && ![sent, kept && written(kept)].includes(written())) outbox.keep({ ...item(), quiet: !kept });
  });
  navigator.serviceWorker?.ready.then(({ active }) => active.postMessage(numbers().map((button) => button.dataset.to)));
})();
