// A refusal stands at its field, addresses follow the inputs, and what changed is marked.
{
  const said = new WeakMap();
  const figures = (out) =>
    new Map([...out.querySelectorAll("[data-figure]")].map((e) => [e.dataset.figure, e.textContent]));

  const clear = (inst) => {
    for (const old of inst.querySelectorAll("form [data-field] > .err")) old.remove();
    for (const input of inst.querySelectorAll("form [aria-invalid]")) {
      for (const name of ["aria-invalid", "aria-describedby"]) input.removeAttribute(name);
    }
  };
  const point = (inst, problem) => {
    const name = CSS.escape(problem.dataset.problem);
    const field = name && inst.querySelector(`form [data-field="${name}"]`);
    const input = field?.querySelector("input, select, textarea");
    if (!input) return;
    const note = Object.assign(document.createElement("p"), { className: "err", id: `${input.id}-err` });
    note.append(...problem.cloneNode(true).childNodes);
    field.append(note);
    field.closest("details")?.setAttribute("open", "");
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", note.id);
    const label = field.querySelector("label").textContent.trim();
    const link = Object.assign(document.createElement("a"), { href: `#${input.id}`, textContent: label });
    problem.querySelector("span").prepend(link, ": ");
  };

  // A pasted config.json is too long for an address, so the form is posted instead.
  const longest = 2000;
  document.addEventListener("htmx:configRequest", (event) => {
    const { detail } = event;
    if (detail.verb !== "get" || !detail.elt.matches("form.inst-in")) return;
    const long = [...detail.formData.values()].some((value) => `${value}`.length > longest);
    if (!long) return;
    Object.assign(detail, { verb: "post", useUrlParams: false });
    detail.headers["Content-Type"] = "application/x-www-form-urlencoded";
  });
  // What a group says of itself follows what is typed, what was changed first.
  const first = 2;
  const told = (field) => {
    const input = field.querySelector("select, textarea, input:not([type=hidden])");
    const label = field.querySelector("label").textContent.trim();
    if (input.type === "checkbox")
      return [input.checked !== input.defaultChecked, input.checked ? label : ""];
    const options = [...(input.options ?? [])];
    const changed = options.length
      ? options.some((o) => o.selected !== o.defaultSelected)
      : input.value !== input.defaultValue;
    const value = options.length ? input.selectedOptions[0].textContent : input.value || input.placeholder;
    const unit = field.querySelector(".unit > span")?.textContent ?? "";
    return [changed, value ? `${label}: ${value} ${unit}`.trim() : ""];
  };
  const summarize = (group) => {
    const brief = group?.querySelector("summary > .quiet");
    if (!brief) return;
    const fields = [...group.querySelectorAll("[data-field]")].map(told).filter(([, text]) => text);
    const sorted = [...fields.filter(([changed]) => changed), ...fields.filter(([changed]) => !changed)];
    brief.textContent = sorted.slice(0, first).map(([, text]) => text).join(", ");
  };
  document.addEventListener("input", ({ target }) => summarize(target.closest("form.inst-in details.more")));
  // An empty field shows what counts instead, which follows from the other fields.
  const depend = (inst, { dataset, firstElementChild }) => {
    const field = inst.querySelector(`form [data-field="${CSS.escape(dataset.depends)}"]`);
    if (!field) return;
    field.querySelector("input").placeholder = dataset.usual;
    const unit = field.querySelector(".unit > span");
    if (unit) unit.textContent = dataset.unit;
    field.querySelector("small.micro")?.remove();
    if (firstElementChild && field.matches(".field")) field.append(firstElementChild.cloneNode(true));
    summarize(field.closest("details.more"));
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
    for (const dependent of target.querySelectorAll("[data-depends]")) depend(inst, dependent);
    const before = said.get(target);
    for (const [name, words] of figures(target)) {
      const old = before?.get(name);
      if (old !== undefined && old !== words)
        target.querySelector(`[data-figure="${CSS.escape(name)}"]`).classList.add("fresh");
    }
    const around = inst.querySelector("[data-follow]") ? inst : document;
    for (const { dataset, href } of target.querySelectorAll("[data-way]"))
      for (const link of around.querySelectorAll(`[data-follow="${dataset.way}"]`)) link.href = href;
    const link = target.querySelector("#calc-link");
    if (link) history.replaceState(history.state, "", link.value);
  });
}
