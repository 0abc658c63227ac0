// The desk without a network: one kept card at a time; the outbox takes the grades.
(() => {
  "use strict";
  const root = new URL("../..", document.currentScript.src).pathname;
  const desk = document.getElementById("offline");
  const leaves = [...desk.querySelectorAll("[data-showing]")];
  const [place, bar, show, grades, hint, rest] =
    ["place", "bar", "show", "grades", "hint", "rest"].map((id) => document.getElementById(id));
  if (!leaves.length) return;
  const { who } = desk.dataset;
  // A showing is named by its card and how often that was graded before it: one that was
  // graded Again is shown once more. With a network it is counted in the same way.
  const card = (leaf) => leaf.dataset.showing.replace(/\.\d+$/, "");
  const turn = (leaf) => Number(/\d+$/.exec(leaf.dataset.showing));
  const name = (leaf, n) => `${who}/${card(leaf)}.${turn(leaf) + n}`;
  const past = (leaf) => {
    const [done, found] = [outbox.graded(), []];
    for (let rating; (rating = done[name(leaf, found.length)]); ) found.push(rating);
    return found;
  };
  let now, since;

  const lay = () => {
    const grade = (leaf) => past(leaf).at(-1) || 0;
    const left = leaves.filter((leaf) => grade(leaf) < 2);
    left.sort((a, b) => (a.dataset.later || 0) - (b.dataset.later || 0) || grade(a) - grade(b)); // Again comes last
    now = left[0];
    since = Date.now();
    for (const leaf of leaves) {
      leaf.hidden = leaf !== now;
      leaf.querySelector("details").open = false;
    }
    place.textContent = `${leaves.length - left.length} of ${leaves.length} cards done`;
    bar.hidden = hint.hidden = !now;
    rest.hidden = !!now;
    show.hidden = false;
    grades.hidden = true;
  };

  show.addEventListener("click", () => {
    now.querySelector("details").open = true;
    show.hidden = true;
    grades.hidden = false;
    now.querySelector(".ans").scrollIntoView({ block: "nearest" });
  });
  grades.addEventListener("click", (event) => {
    const rating = Number(event.target.closest("button")?.value);
    if (!rating || !now) return;
    const times = past(now).length;
    const token = `${now.dataset.showing}${times ? `+${times}` : ""}`;
    const body = { rating, since, given: Date.now(), who, token };
    outbox.keep({ what: "grade", to: `${root}flashcards/${card(now)}/reviews`, showing: name(now, times), body });
    lay();
  });
  // A newer page shows a card anew with another token: what was noted of the old is void.
  const noted = Object.entries(outbox.graded());
  const here = new Set(leaves.map((leaf) => `${who}/${card(leaf)}`));
  outbox.note(Object.fromEntries(noted.filter(([showing]) => here.has(showing.replace(/\.\d+$/, "")))));
  desk.classList.add("live");
  addEventListener("storage", (event) => event.key === "graded" && lay());
  addEventListener("pageshow", ({ persisted }) => persisted && lay());
  lay();
})();
