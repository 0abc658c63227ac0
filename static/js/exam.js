// The answers of a mock exam: each is saved, kept here where that fails, and shown.
(() => {
  "use strict";
  if (!document.querySelector("[data-left]")) return;
  const age = Number(document.getElementById("kept").dataset.age || 0); // of a kept copy
  const local = () => document.querySelectorAll("time[data-clock]").forEach((time) => {
    time.textContent = new Date(time.dateTime).toTimeString().slice(0, 8);
  });
  local();

  // Without a network. Every change is also noted here: a kept copy of the page is older.
  const form = document.querySelector("form[data-later]");
  if (!form) return;
  const path = new URL(form.action).pathname;
  const state = () => [...new FormData(form)];
  const fill = (pairs) => {
    for (const field of form.elements) {
      const values = pairs.filter(([name]) => name === field.name).map(([, value]) => value);
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
  if (newer(path)) fill(newer(path));
  // Steps that were moved tick themselves, and then only the tick says what counts.
  const [says, mark] = form.querySelectorAll("[name=settled]");
  if (mark) says.value = "no";
  form.addEventListener("input", ({ target }) => target.name.startsWith("place.") && (mark.checked = true), true);
  form.since.value = Number(form.since.value) + Math.round(age * 1000);
  for (const key of Object.keys(localStorage))
    if (key.startsWith("sat.") && !key.startsWith(`sat.${path.replace(/\d+$/, "")}`)) localStorage.removeItem(key);
  form.addEventListener("input", () =>
    localStorage.setItem(`sat.${path}`, JSON.stringify({ at: Date.now(), pairs: state() })));

  const isAnswer = (pairs) => pairs.some(([name, value]) =>
    name === "settled" ? value === "yes" : /^(answer$|pair|blank)/.test(name) && value.trim());
  const links = (which = "") => [...document.querySelectorAll(`#palette nav a${which}`)];
  const palette = () => {
    local();
    document.getElementById("pace").hidden = copied > 0; // by the clock of the server
    for (const link of links()) {
      link.ariaCurrent = link.pathname === location.pathname ? "true" : null;
      link.ariaLabel = link.dataset.label ??= link.ariaLabel; // of the server, unless more is known here
      const to = link.pathname.replace("questions", "answers");
      const pairs = newer(to);
      if (!pairs) continue;
      const did = link.classList.toggle("did", isAnswer(pairs));
      const flag = link.classList.toggle("flag", pairs.some(([name]) => name === "flag"));
      const said = !did ? "open" : outbox.waits(to) ? "kept in this browser" : "answered";
      link.ariaLabel = `${link.textContent}, ${said}${flag ? ", flagged" : ""}`;
      document.getElementById("pace").hidden = true;
      if (outbox.waits(to)) document.getElementById("saved").textContent = "Kept in this browser";
    }
    const counted = { answered: ".did", open: ":not(.did)", flagged: ".flag" };
    for (const part of document.querySelectorAll("#palette .leg > :not(.pal)"))
      part.textContent = part.textContent.replace(/\d+/, links(counted[part.textContent.split(" ")[0]]).length);
  };
  palette();
  document.addEventListener("htmx:sendError", palette);
  document.addEventListener("htmx:afterRequest", ({ detail }) => detail.successful && outbox.forget(path));
  document.addEventListener("htmx:afterSettle", palette);
  document.addEventListener("sent", ({ detail: { to, html } }) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const fresh = page.getElementById("saved"); // its parts alone: htmx may hold the mark itself
    if (fresh) document.getElementById("saved").replaceChildren(...fresh.childNodes);
    const at = (of) => of.querySelector("#palette nav").dataset.at;
    if (fresh && at(page) >= at(document)) // or this page was told newer things meanwhile
      for (const id of to === path ? ["palette", "since"] : ["palette"])
        document.getElementById(id).replaceWith(page.getElementById(id));
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
  navigator.serviceWorker?.ready.then(({ active }) => active.postMessage(links().map((link) => link.pathname)));
})();
