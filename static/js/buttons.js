// Buttons that copy what stands elsewhere, and that step a number.
{
  const clicks = {
    "[data-copy]": (button) => {
      const from = document.querySelector(button.dataset.copy);
      const said = button.lastChild.textContent;
      navigator.clipboard?.writeText(from.value ?? from.textContent).then(() => {
        button.lastChild.textContent = " Copied";
        setTimeout(() => { button.lastChild.textContent = said; }, 2000);
      });
    },
    "[data-by], [data-times]": (button) => {
      const input = button.parentElement.querySelector("input");
      const now = Number(input.value.replaceAll(",", ""));
      const { by, times } = button.dataset;
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
