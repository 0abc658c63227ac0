// Buttons that copy what stands elsewhere, and that step a number.
{
  const clicks = {
    "[data-copy]": (button) => {
      const from = document.querySelector(button.dataset.copy);
      const said = button.lastChild.textContent, words = from.value ?? from.textContent;
      const whole = words.startsWith("/") ? new URL(words, location).href : words;
      const tell = () => {
        button.lastChild.textContent = " Copied";
        setTimeout(() => { button.lastChild.textContent = said; }, 2000);
      };
      if (navigator.clipboard) return void navigator.clipboard.writeText(whole).then(tell);
      if (from.select) { from.value = whole; from.select(); }  // over plain HTTP
      if (document.execCommand("copy")) tell();
    },
    "[data-by], [data-times]": (button) => {
      const input = button.parentElement.querySelector("input"), { by, times } = button.dataset;
      const now = Number((input.value || input.placeholder).replaceAll(",", ""));
      const next = times ? now * Number(times) : now + Number(by);
      const least = Number(input.dataset.least || input.min || -Infinity);
      if (!Number.isFinite(next) || next < least) return;
      input.value = Math.round(next).toLocaleString("en-US");
      input.dispatchEvent(new Event("input", { bubbles: true }));
    },
  };
  document.addEventListener("click", (event) => {
    for (const [what, act] of Object.entries(clicks)) {
      const hit = event.target.closest(what);
      if (hit) act(hit);
    }
  });
}
