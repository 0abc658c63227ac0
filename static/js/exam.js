// The clock of a mock exam. The server owns the time; this only shows it.
(() => {
  "use strict";
  const clock = document.querySelector("[data-left]");
  if (!clock) return;
  const box = clock.closest("details");
  const said = document.getElementById("clock-said");
  const end = performance.now() + Number(clock.dataset.left) * 1000;
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
      time.textContent = new Date(time.dateTime).toLocaleTimeString();
  };
  local();
  document.addEventListener("htmx:afterSwap", local);
})();
