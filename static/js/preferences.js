// The files of js/headroom.js (app/web/static.py) are one script, a block each.
"use strict";
// What this browser remembers in a cookie, for every course: its time zone and its theme.
{
  const root = document.documentElement;
  const home = new URL("../..", document.currentScript.src).pathname.replace(/courses\/[^/]+\/$/, "");
  const remember = (name, value) => {
    document.cookie = `${name}=${value}; path=${home}; max-age=31536000; samesite=lax`;
  };
  // The study day turns at four in the morning where the learner is.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.split("; ").includes(`zone=${zone}`)) remember("zone", zone);

  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    root.dataset.theme = dark() ? "light" : "dark";
    remember("theme", root.dataset.theme);
  });
}
