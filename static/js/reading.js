// Where the reader is: in the address of a search, and in the list beside a text.
{
  // The address follows what is looked for, so that going back finds it again.
  document.addEventListener("htmx:afterSwap", (event) => {
    const field = event.target.id === "found" && document.getElementById("q");
    if (field && !field.closest("dialog")) history.replaceState(history.state, "", `?q=${encodeURIComponent(field.value)}`);
  });
  // A page of the history is as it was then. Where what was done since matters, it is
  // asked for anew.
  const [visit] = performance.getEntriesByType("navigation");
  addEventListener("pageshow", ({ persisted }) => {
    const old = persisted || visit?.type === "back_forward";
    if (old && document.querySelector("[data-fresh]")) location.reload();
  });
  // The section that is being read, in the list beside the text.
  const heads = [...document.querySelectorAll(".prose > h2[id]")];
  const locate = () => {
    const at = heads.findLast((head) => head.getBoundingClientRect().top < 160);
    for (const link of document.querySelectorAll("#toc a"))
      link.ariaCurrent = at && link.hash === `#${at.id}` ? "location" : null;
  };
  document.addEventListener("scroll", () => requestAnimationFrame(locate), { passive: true });
  document.addEventListener("htmx:afterSwap", locate);
  locate();
  // A term opens in place under a finger, which cannot dwell on it as interestfor wants.
  document.addEventListener("click", (event) => {
    const shown = document.getElementById(event.target.closest("a.term")?.getAttribute("interestfor"));
    if (!shown || !event.detail || event.pointerType === "mouse") return;
    event.preventDefault(shown.togglePopover(true));
  });
}
// Who leaves a page of the course for a detour finds the way back to the section at hand.
{
  const place = document.getElementById("way-back");
  const reading = /\/concepts\/[^/]+$/.test(location.pathname) && document.querySelector(".prose");
  if (reading) {
    addEventListener("pagehide", () => {
      const heads = [...document.querySelectorAll(".prose > h2[id]")];
      const at = heads.findLast((head) => head.getBoundingClientRect().top < 160);
      const title = document.querySelector("h1").textContent.trim();
      const href = location.pathname + location.search + (at ? `#${at.id}` : "");
      sessionStorage.setItem("reading", JSON.stringify({ title, href }));
    });
  }
  // Today, cards, practice and exams are no detour: who comes from there begins anew.
  if (!reading && !place) sessionStorage.removeItem("reading");
  const { title, href } = JSON.parse(sessionStorage.getItem("reading") || "{}");
  if (place && href && href.split(/[?#]/)[0] !== location.pathname) {
    const link = document.createElement("a");
    link.href = href;
    link.textContent = `Back to “${title}”`;
    place.append(link);
  }
}
