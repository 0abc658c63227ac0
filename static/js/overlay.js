// Search, the forms of a card and the shortcuts open over the page, so that nobody loses
// their place. Without this script the links lead to pages.
{
  const search = document.getElementById("search");
  const overlay = document.getElementById("overlay");
  document.addEventListener("click", (event) => {
    // A click beside what it holds.
    if (event.target.matches("dialog")) event.target.close();
    if (event.target.closest("[data-keymap]")) document.getElementById("keys").showModal();
    const link = event.target.closest("[data-search]");
    if (!link || !search || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    search.showModal();
    search.querySelector("input").select();
  });
  document.addEventListener("keydown", ({ key, ctrlKey, metaKey, repeat, target }) => {
    if (key !== "Enter" || !(ctrlKey || metaKey) || repeat) return;
    if (target.matches(".own-side")) target.form.requestSubmit();
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (overlay?.querySelector("[data-saved=card]")) overlay.close();
    else if (overlay?.querySelector("div form") && !overlay.open) {
      overlay.showModal();
      overlay.querySelector("textarea").focus();
    }
  });
  overlay?.addEventListener("close", () => {
    const saved = overlay.querySelector("[data-saved]");
    overlay.querySelector("div").replaceChildren();
    // It then shows the card as it is now.
    if (saved && document.querySelector("[data-fresh]")) location.reload();
  });
}
