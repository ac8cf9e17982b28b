/* Messages that wait are put in another order: by buttons, or by dragging these. The server orders them. */

export class Reordering {
  /* queue: the element of waiting messages; move(message, before, button) sends it, before null for the end. */
  constructor({ queue, move }) {
    Object.assign(this, { queue, move });
    this.dragged = null;
    queue.addEventListener("dragstart", (event) => {
      this.dragged = event.target.closest?.("[data-action^=move]")?.dataset.message ?? null;
      if (this.dragged) event.dataTransfer.setData("text/plain", "");
    });
    queue.addEventListener("dragover", (event) => {
      if (this.dragged) event.preventDefault();
    });
    queue.addEventListener("drop", (event) => {
      const over = event.target.closest("[data-order]");
      if (!this.dragged || !over) return;
      event.preventDefault();
      event.stopPropagation();
      const { top, height } = over.getBoundingClientRect();
      const before = event.clientY < top + height / 2 ? over : over.nextElementSibling;
      this.move(this.dragged, before && keyOf(before), null);
    });
    queue.addEventListener("dragend", () => {
      this.dragged = null;
    });
  }

  up(button) {
    const before = button.closest("[data-order]").previousElementSibling;
    if (before) this.move(button.dataset.message, keyOf(before), button);
  }

  down(button) {
    const next = button.closest("[data-order]").nextElementSibling;
    if (!next) return;
    const behind = next.nextElementSibling;
    this.move(button.dataset.message, behind && keyOf(behind), button);
  }
}

function keyOf(unit) {
  return unit.id.slice(2);
}
