// Who pressed a button that is replaced goes on in what takes its place.
{
  let held = null;
  document.addEventListener("htmx:beforeRequest", () => (held = document.activeElement));
  document.addEventListener("htmx:afterSettle", (event) => {
    const { elt } = event.detail;
    if (!held || held.isConnected || document.activeElement !== document.body) return;
    const same = held.name && `[name="${CSS.escape(held.name)}"]:not([type=hidden])`;
    const own = held.id && document.getElementById(held.id);
    held = null;
    const goal = own || elt.querySelector("#go") || (same && elt.querySelector(same)) ||
      elt.querySelector("input:not([type=hidden]), textarea, .btn, button, a") || elt;
    if (goal === elt) elt.setAttribute("tabindex", "-1");
    goal.focus({ preventScroll: true });
  });
}
