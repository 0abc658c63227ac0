// The clock of a mock exam. The server owns the time; this only shows it.
(() => {
  "use strict";
  const clock = document.querySelector("[data-left]");
  if (!clock) return;
  const box = clock.closest("details");
  const said = document.getElementById("clock-said");
  const age = Number(document.getElementById("kept").dataset.age || 0); // of a kept copy
  const end = performance.now() + (Number(clock.dataset.left) - age) * 1000;
  let last = Infinity;
  box.addEventListener("toggle", () => {
    const age = box.open ? 0 : 86400;
    document.cookie = `clock=hidden; path=/exams; max-age=${age}; samesite=lax`;
  });
  const tick = () => {
    const left = Math.max(0, Math.round((end - performance.now()) / 1000));
    clock.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    if (left <= 300 && last > 300) box.open = true;
    for (const minutes of [10, 1]) {
      if (left <= minutes * 60 && last > minutes * 60 && last !== Infinity)
        said.textContent = minutes === 1 ? "One minute left" : `${minutes} minutes left`;
    }
    if (left === 0 && last > 0) setTimeout(() => location.assign(clock.dataset.over), 1500);
    last = left;
  };
  tick();
  setInterval(tick, 1000);
  const local = () => {
    for (const time of document.querySelectorAll("time[data-clock]"))
      time.textContent = new Date(time.dateTime).toTimeString().slice(0, 8);
  };
  local();
  document.addEventListener("htmx:afterSwap", local);

  // Without a network. Every change is also kept here, for a kept copy of the page shows
  // what the server knew when the copy was made.
  const form = document.querySelector("form[data-later]");
  if (!form) return;
  const path = new URL(form.action).pathname;
  const mine = `sat.${path}`;
  const sitting = path.replace(/\d+$/, "");
  const state = () => [...new FormData(form)];
  const fill = (pairs) => {
    for (const field of form.elements) {
      const values = pairs.filter(([name]) => name === field.name).map(([, value]) => value);
      if (["checkbox", "radio"].includes(field.type)) field.checked = values.includes(field.value);
      else if (!["hidden", "submit"].includes(field.type) && values.length) field.value = values[0];
    }
  };
  const kept = JSON.parse(localStorage.getItem(mine));
  const known = outbox.waits(path) || (age && kept?.at > Date.now() - age * 1000 && kept.pairs);
  if (known) fill(known);
  // Steps that were moved tick themselves, and then only the tick says what counts.
  const mark = form.querySelector("[type=checkbox][name=settled]");
  if (mark && !form.querySelector("[type=hidden][name=settled]"))
    mark.before(Object.assign(document.createElement("input"), { type: "hidden", name: "settled", value: "no" }));
  form.addEventListener("input", ({ target }) => {
    if (target.name.startsWith("place.")) mark.checked = true;
  }, true);
  form.since.value = Number(form.since.value) + Math.round(age * 1000);
  for (const key of Object.keys(localStorage))
    if (key.startsWith("sat.") && !key.startsWith(`sat.${sitting}`)) localStorage.removeItem(key);
  form.addEventListener("input", () =>
    localStorage.setItem(mine, JSON.stringify({ at: Date.now(), pairs: state() })));

  const palette = () => {
    for (const link of document.querySelectorAll("#palette nav a")) {
      if (link.pathname === location.pathname) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      if (!outbox.waits(link.pathname.replace("questions", "answers"))) continue;
      link.classList.add("did");
      link.ariaLabel = link.ariaLabel.replace("open", "kept in this browser");
    }
  };
  palette();
  document.addEventListener("htmx:sendError", () => {
    document.getElementById("saved").textContent = "Kept in this browser";
    palette();
  });
  document.addEventListener("htmx:afterRequest", ({ detail }) => detail.successful && outbox.forget(path));
  document.addEventListener("sent", ({ detail: { to, html } }) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    for (const id of to === path ? ["saved", "palette", "since"] : ["saved", "palette"]) {
      const fresh = page.getElementById(id);
      if (fresh) document.getElementById(id).replaceWith(fresh);
    }
    local();
    palette();
  });
  // Going on saves first and then asks for the page, so that neither needs the other.
  form.addEventListener("submit", async (event) => {
    const to = event.submitter?.dataset.to;
    if (!to) return;
    event.preventDefault();
    const patience = new Promise((go_on) => setTimeout(go_on, 3000));
    await Promise.race([outbox.keep({ what: "answer", to: path, body: state() }, path), patience]);
    location.assign(to);
  });
  const others = [...document.querySelectorAll("#palette nav a")].map((link) => link.pathname);
  navigator.serviceWorker?.ready.then(({ active }) => active.postMessage(others));
})();
