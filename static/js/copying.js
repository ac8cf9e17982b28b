/* Copies an answer, or the code of a block, on every page. The button shows that it was copied; where the
   browser does not allow it, what there is to copy is selected. A chat says either in words (`copied`). */

const COPIED_MILLISECONDS = 1_500;

export function sourceOf(button) {
  if (button.dataset.source !== undefined) return button.dataset.source;
  const unit = button.closest("[data-order]");
  const holder = unit.querySelector("[data-source]");
  return holder ? holder.dataset.source || holder.textContent : unit.textContent.trim();
}

async function copy(button) {
  const code = button.dataset.action === "copy-code" && button.closest("figure").querySelector("code");
  let done = true;
  try {
    await navigator.clipboard.writeText(code ? code.textContent : sourceOf(button));
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, COPIED_MILLISECONDS);
  } catch {
    done = false;
    if (code) getSelection().selectAllChildren(code);
  }
  document.dispatchEvent(new CustomEvent("copied", { detail: done }));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.('button:is([data-action="copy"], [data-action="copy-code"])');
  if (button) copy(button);
});
