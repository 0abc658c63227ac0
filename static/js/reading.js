// Where the reader is: in the address of a search, and in the list beside a text.
{
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
}
