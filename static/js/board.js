/* The board under a pointer and under the keys: what both do is send the form that stands in the card.
   Without it the form is sent by its button. */

import { setting } from "./settings.js";

let dragged = null;

const board = () => document.querySelector("[data-board]");
const columns = () => [...board().querySelectorAll("[data-status]")];

function move(card, column) {
  const form = card.querySelector(".task-move");
  if (!form || !column || column.contains(card)) return;
  form.elements.status.value = column.dataset.status;
  form.requestSubmit();
}

document.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.("[data-task]");
  if (dragged) event.dataTransfer.effectAllowed = "move";
});

document.addEventListener("dragend", () => {
  dragged = null;
  for (const column of columns()) column.classList.remove("over");
});

document.addEventListener("dragover", (event) => {
  const over = event.target.closest?.("[data-status]");
  for (const column of columns()) column.classList.toggle("over", dragged !== null && column === over);
  if (dragged && over) event.preventDefault();
});

document.addEventListener("drop", (event) => {
  const over = event.target.closest?.("[data-status]");
  if (!dragged || !over) return;
  event.preventDefault();
  move(dragged, over);
});

document.addEventListener("keydown", (event) => {
  const card = event.target;
  if (!card.matches?.("[data-task]") || event.repeat || !setting("shortcuts")) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const all = columns();
  const place = all.findIndex((column) => column.contains(card));
  const right = document.dir === "rtl" ? -1 : 1;
  switch (event.key) {
    case "ArrowLeft":
      move(card, all[place - right]);
      break;
    case "ArrowRight":
      move(card, all[place + right]);
      break;
    case "ArrowUp":
    case "ArrowDown": {
      const cards = [...board().querySelectorAll("[data-task]")];
      cards[cards.indexOf(card) + (event.key === "ArrowUp" ? -1 : 1)]?.focus();
      break;
    }
    default:
      return;
  }
  event.preventDefault();
});

// What is drawn anew by itself waits for whoever drags a card or chooses its column.
document.addEventListener("htmx:beforeSwap", (event) => {
  const choosing = document.activeElement?.matches?.(".task-move select");
  const byItself = event.detail.requestConfig?.verb === "get";
  if (byItself && event.detail.target.id === "board" && (dragged || choosing)) {
    event.detail.shouldSwap = false;
  }
});

let focused = "";

document.addEventListener("htmx:beforeRequest", () => {
  focused = document.activeElement?.closest?.("[data-task]")?.id ?? "";
});

document.addEventListener("htmx:afterSettle", () => {
  if (focused && (!document.activeElement || document.activeElement === document.body)) {
    document.getElementById(focused)?.focus();
  }
});
