// The answer of a card is brought into the screen, below its question unless that is large.
document.addEventListener("htmx:afterSettle", ({ detail }) => {
  const answer = detail.elt.querySelector?.("#answer");
  const { offsetHeight, parentNode } = answer?.previousElementSibling || {};
  (offsetHeight < innerHeight * 0.4 ? parentNode : answer)?.scrollIntoView({ block: "nearest" });
});
// Who pressed a button that is replaced goes on in what takes its place.
{
  let held = null;
  document.addEventListener("htmx:beforeRequest", () => (held = document.activeElement));
  document.addEventListener("htmx:afterSettle", (event) => {
    const { elt } = event.detail;
    if (!held || held.isConnected || document.activeElement !== document.body) return;
    const same = held.name && `[name="${CSS.escape(held.name)}"]:not([type=hidden])`;
    const own = document.getElementById(held.id);
    held = null;
    const any = "input:not([type=hidden]), textarea, .btn, button, a, summary";
    const found = ["#go", same, ".btn.main", any].flatMap((what) => (what ? [...elt.querySelectorAll(what)] : []));
    const goal = [own, ...found, elt].find((e) => e?.checkVisibility());
    if (goal === elt) elt.setAttribute("tabindex", "-1");
    goal.focus({ preventScroll: true });
  });
}
