// Keys. An element says data-key="r"; g then a letter goes to a part of the app.
{
  // It is “/”, or a prefix.
  const home = new URL("../..", document.currentScript.src).pathname;
  const rooms = { t: "", c: "course", r: "flashcards", p: "quiz", e: "exams", k: "calculators" };
  const offered = (key) => key in rooms && rooms[key] !== document.body.dataset.without;
  let leader = 0;
  const typing = (element) => element.isContentEditable ||
    element.matches("textarea, select, input:not([type=radio], [type=checkbox])");
  const seen = (element) => {
    const box = element.getBoundingClientRect();
    return element.checkVisibility() && box.bottom > 0 && box.top < innerHeight;
  };
  const dialog = () => document.querySelector("dialog[open]");
  // The question or calculator that was clicked, focused or given a key last.
  let touched = document.activeElement;
  for (const what of ["focusin", "click"]) document.addEventListener(what, ({ target }) => (touched = target));
  const atHand = () => {
    const near = touched?.closest("[data-keys]");
    return near && seen(near) ? near : null;
  };
  // What lies behind takes no keys.
  const inFront = (selector) => [...(dialog() || document).querySelectorAll(selector)];
  const keyed = (key) => {
    const all = inFront(`[data-key="${CSS.escape(key)}"]`);
    // One of a question that is scrolled away does not answer it unseen.
    const near = atHand();
    // What sends an answer does so for the question at hand, never for another beside it.
    const sends = near && /^([-\d.,]|enter)$/.test(key);
    const shown = all.filter((e) => {
      const its = e.closest("[data-keys]");
      return !its || (seen(its) && (!sends || its === near));
    });
    return shown.find((e) => near?.contains(e)) || shown.find(seen) || shown[0];
  };
  // Results of a search are gone through one by one; the last word is the field's.
  const results = () => inFront("[data-result]").filter((e) => e.checkVisibility());
  const pick = (by) => {
    const links = results();
    const at = links.indexOf(document.activeElement) + by;
    (at >= 0 ? links[at] : document.getElementById("q"))?.focus();
  };
  const step = (by) => {
    if (results().length) return pick(by);
    const stops = inFront("[data-stop]");
    const tops = stops.map((e) => e.getBoundingClientRect().top);
    const index = by > 0 ? tops.findIndex((t) => t > 90) : tops.findLastIndex((t) => t < 60);
    const stop = stops[index];
    if (!stop) return;
    stop.setAttribute("tabindex", "-1");
    stop.scrollIntoView();
    stop.focus({ preventScroll: true });
  };
  document.addEventListener("keydown", (event) => {
    const [key, target] = [event.key.toLowerCase(), event.target];
    const arrow = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (arrow && target.matches("#q, [data-result]")) {
      event.preventDefault();
      return pick(target.id === "q" && arrow < 0 ? 0 : arrow);
    }
    // A key that is held down acts once, whatever has come under it or into the focus.
    if (event.repeat && key === "enter" && !target.matches("textarea")) return event.preventDefault();
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (/(^|; )keys=off/.test(document.cookie) || typing(target)) return;
    const pressed = key === " " ? "button, summary, input" : "a, button, summary";
    if ((key === " " || key === "enter") && target.closest(pressed)) return event.repeat && event.preventDefault();
    // A number that is asked for is typed: its digits are no buttons while its field is empty.
    const asking = atHand() || document;
    const fields = /^[-\d.,]$/.test(key) ? inFront("[data-keys] .numq .in").filter((e) => asking.contains(e)) : [];
    const empty = fields.find((e) => !e.value && seen(e));
    if (empty) return empty.focus();
    const gone = Date.now() - leader < 1500 && offered(key) && home + rooms[key];
    leader = key === "g" && !dialog() ? Date.now() : 0;
    const hit = gone ? null : keyed(key);
    const map = document.getElementById("keys");
    // Its own form is sent.
    if (key === "enter" && target.form && target.form !== hit?.form) return;
    if (event.repeat && (gone || hit || key === "?")) return event.preventDefault();
    if (gone) location.assign(gone);
    else if (key === "?") map.open ? map.close() : dialog() || map.showModal();
    else if (hit && !hit.disabled) {
      hit.click();
      // The focus stays with the options of a question that are chosen by letter.
      if (target.matches("input") && target.name === hit.name) hit.focus();
    }
    else if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
    else return;
    event.preventDefault();
  });
}
