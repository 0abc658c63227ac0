// Calculators work without this file. It puts a refusal at the field it is about,
// keeps the address of the page in step with the inputs, and marks what changed.
(() => {
  "use strict";
  const said = new WeakMap();
  const figures = (out) =>
    new Map([...out.querySelectorAll("[data-figure]")].map((e) => [e.dataset.figure, e.textContent]));

  const clear = (inst) => {
    for (const field of inst.querySelectorAll("form [data-field]")) {
      field.querySelector(":scope > .err")?.remove();
      for (const input of field.querySelectorAll("[aria-invalid]")) {
        input.removeAttribute("aria-invalid");
        input.removeAttribute("aria-describedby");
      }
    }
  };
  const point = (inst, problem) => {
    const name = CSS.escape(problem.dataset.problem);
    const field = name && inst.querySelector(`form [data-field="${name}"]`);
    const input = field?.querySelector("input, select, textarea");
    if (!input) return;
    const note = document.createElement("p");
    note.className = "err";
    note.id = `${input.id}-err`;
    note.append(...problem.cloneNode(true).childNodes);
    field.append(note);
    field.closest("details")?.setAttribute("open", "");
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", note.id);
    problem.classList.add("sr");
  };

  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target } = event.detail;
    if (target.matches(".out")) said.set(target, figures(target));
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    const { target } = event.detail;
    const inst = target.closest(".inst");
    if (!inst || !target.matches(".out")) return;
    clear(inst);
    for (const problem of target.querySelectorAll("[data-problem]")) point(inst, problem);
    const before = said.get(target);
    for (const [name, words] of figures(target)) {
      const old = before?.get(name);
      if (old !== undefined && old !== words) {
        target.querySelector(`[data-figure="${CSS.escape(name)}"]`).classList.add("fresh");
      }
    }
    const link = target.querySelector("#calc-link");
    if (link) history.replaceState(history.state, "", link.value);
  });
})();
