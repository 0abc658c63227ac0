// A message like those of the templates; what it says is text, never HTML.
window.notice = (kind, icon, bold, words, label, act) => {
  const box = document.createElement("div");
  box.className = `msg ${kind}`;
  box.innerHTML = `<svg class="i" aria-hidden="true"><use href="#i-${icon}"/></svg>` +
    '<div><p><b></b> <span></span></p></div><button class="btn" type="button"></button>';
  box.querySelector("b").textContent = bold;
  box.querySelector("span").textContent = words;
  const button = box.querySelector("button");
  button.textContent = label;
  if (act) button.addEventListener("click", act);
  else button.remove();
  return box;
};
