// The clock of a mock exam. The server owns the time; this only shows it.
(() => {
  "use strict";
  const clock = document.querySelector("[data-left]");
  if (!clock) return;
  const box = clock.closest("details");
  const said = document.getElementById("clock-said");
  const home = `${new URL("../..", document.currentScript.src).pathname}exams`;
  const age = Number(document.getElementById("kept").dataset.age || 0); // of a kept copy
  // By the clock on the wall: all others stand still while the machine sleeps.
  let end, last = Infinity;
  box.addEventListener("toggle", () =>
    (document.cookie = `clock=hidden; path=${home}; max-age=${box.open ? 0 : 86400}; samesite=lax`));
  const tick = () => {
    const left = Math.max(0, Math.round((end - Date.now()) / 1000));
    clock.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    if (left <= 300 && last > 300) box.open = true;
    const passed = (minutes) => left <= minutes * 60 && last > minutes * 60 && last !== Infinity;
    if (passed(10)) said.textContent = "10 minutes left";
    if (passed(1)) said.textContent = "One minute left";
    if (left === 0 && last > 0) setTimeout(() => location.assign(clock.dataset.over), 1500);
    last = left;
  };
  const set = (seconds) => {
    end = Date.now() + seconds * 1000;
    tick();
  };
  set(Number(clock.dataset.left) - age);
  setInterval(tick, 1000);
  for (const name of ["visibilitychange", "focus", "pageshow"]) addEventListener(name, tick, true);
  // Each answer of the server says what is left, should the clock on the wall be wrong.
  const learn = (html) => {
    const seconds = Number(/data-seconds="(\d+)"/.exec(html)?.[1]);
    if (Math.abs(Date.now() + seconds * 1000 - end) > 2000) set(seconds);
  };
  document.addEventListener("htmx:afterRequest", ({ detail }) => learn(detail.xhr.responseText));
  document.addEventListener("sent", ({ detail }) => learn(detail.html));
})();
