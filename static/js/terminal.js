// The terminal of a lab. The server answers; here are history, Tab, clear, and where the focus goes.
{
  const local = ["clear", "help", "history", "man"];
  const input = (button) => button.form?.elements.command;
  const typed = (field) => [...field.form.querySelectorAll("[name=ran]")].map((e) => e.value);
  let back = 0; // how many lines before the one that is being typed
  const clear = (field) => {
    field.closest("[data-term]").querySelector("[role=log]").replaceChildren();
    field.value = "";
  };
  const recall = (field, by) => {
    const lines = typed(field);
    back = Math.min(Math.max(back + by, 0), lines.length);
    field.value = back ? lines[lines.length - back] : "";
    field.setSelectionRange(field.value.length, field.value.length);
  };
  const shared = (words) => {
    let length = words[0].length;
    while (!words.every((word) => word.startsWith(words[0].slice(0, length)))) length--;
    return words[0].slice(0, length);
  };
  // A program, or an option of the one that is typed. Where several fit, the first Tab lists them;
  // the next one moves the focus, as it does where nothing fits.
  const complete = (field) => {
    const programs = field.closest("[data-term]").dataset.completions.split("\n").map((line) => line.split(" "));
    const [, before, part] = field.value.match(/^(.*?)([^ |;]*)$/);
    const command = before.split(/[|;]/).at(-1).trim().split(" ").filter((word) => word && word !== "sudo");
    const names = [...programs.map(([name]) => name), ...local];
    const own = programs.find(([name]) => name === command[0])?.slice(1) ?? [];
    const known = command.length === 0 || command[0] === "man" ? names : own;
    const found = known.filter((word) => word.startsWith(part));
    const list = field.closest("[data-term]").querySelector("[data-found]");
    if (!part || !found.length) return false;
    const value = before + shared(found) + (found.length === 1 ? " " : "");
    const choices = found.length > 1 ? found.join("  ") : "";
    if (value === field.value && choices === list.textContent) return false;
    field.value = value;
    list.textContent = choices;
    return true;
  };
  document.addEventListener("keydown", (event) => {
    const field = event.target;
    if (!field.matches?.("[data-term] [name=command]") || event.isComposing) return;
    const act = {
      ArrowUp: () => recall(field, 1),
      ArrowDown: () => recall(field, -1),
      Tab: () => !event.shiftKey && complete(field), // with nothing to complete it moves the focus
      Enter: () => {
        back = 0;
        if (field.value.trim() === "clear") clear(field);
        else if (field.value.trim()) return false;
      },
      l: () => (event.ctrlKey ? clear(field) : false),
    }[event.key];
    if (act && act() !== false) event.preventDefault();
  });
  const terminal = ({ elt }) => elt.matches?.("[data-term] button") && input(elt);
  let sent = "";
  document.addEventListener("htmx:beforeRequest", (event) => {
    const field = terminal(event.detail);
    if (!field) return;
    const full = typed(field).length >= Number(field.dataset.most);
    if (full || !field.value.trim()) return void event.preventDefault();
    sent = field.value;
    field.closest("[data-term]").querySelector("[data-found]").textContent = "";
    field.value = ""; // the next command can be typed while this one is on its way
  });
  for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    document.addEventListener(failure, ({ detail }) => {
      const field = terminal(detail);
      if (field && !field.value) field.value = sent;
    }, true);
  }
  document.addEventListener("htmx:afterSettle", ({ detail }) => {
    const field = detail.requestConfig && terminal(detail.requestConfig);
    if (!field) return;
    const screen = field.closest("[data-term]").querySelector(".screen");
    screen.scrollTo(0, 0); // its end: it is laid out from below
    field.focus({ preventScroll: true });
  });
}
