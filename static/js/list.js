/* The list of conversations: how many are chosen, all at once, a stretch with Shift, X for the row in focus.
   Choosing and what is done with what is chosen work without it. */

import { setting } from "./settings.js";

let last = null;

const boxes = () => [...document.querySelectorAll("#results input[name=chosen]")];

function refresh() {
  const bar = document.getElementById("selected");
  if (!bar) return;
  const count = boxes().filter((box) => box.checked).length;
  bar.querySelector("[data-count]").textContent = count || "";
  const all = bar.querySelector("[data-all]");
  all.hidden = false;
  all.checked = count > 0 && count === boxes().length;
  all.indeterminate = count > 0 && !all.checked;
}

document.addEventListener("change", (event) => {
  if (event.target.matches?.("#selected [data-all]")) {
    for (const box of boxes()) box.checked = event.target.checked;
  } else if (!event.target.matches?.("input[name=chosen]")) {
    return;
  }
  refresh();
});

document.addEventListener("click", (event) => {
  const box = event.target.closest?.("input[name=chosen]");
  if (!box) return;
  const all = boxes();
  if (event.shiftKey && last && all.includes(last)) {
    const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
    for (const each of all.slice(from, to + 1)) each.checked = box.checked;
    refresh();
  }
  last = box;
});

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || !setting("shortcuts")) return;
  if (event.key.toLowerCase() !== "x" || document.querySelector("dialog[open]")) return;
  if (event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
  document.activeElement?.closest?.(".row")?.querySelector("input[name=chosen]")?.click();
});

document.addEventListener("htmx:afterSettle", refresh);
refresh();
