/* Nothing moves under a finger: what would change the page while a control is held down waits until it is
   let go, because a press that ends elsewhere than it began is none, and would be lost without a word. */

const LONGEST = 5_000;
const CONTROL = "button, a[href], summary, label, input, select";

export class Pressing {
  constructor() {
    this.isHeld = false;
    this.waiting = [];
    this.timer = 0;
    // Before anybody else hears of it.
    const heard = { capture: true, passive: true };
    document.addEventListener("pointerdown", (event) => this.begin(event), heard);
    for (const end of ["pointerup", "pointercancel", "dragstart"]) {
      // The click comes right behind it.
      document.addEventListener(end, () => this.isHeld && setTimeout(() => this.end()), heard);
    }
  }

  /* Now, or in its order as soon as nothing is held. */
  whenFree(change) {
    if (this.isHeld) this.waiting.push(change);
    else change();
  }

  begin(event) {
    if (!event.target.closest?.(CONTROL)) return;
    this.isHeld = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.end(), LONGEST);
  }

  end() {
    clearTimeout(this.timer);
    this.isHeld = false;
    // Each by itself: what fails in one keeps no other out.
    for (const change of this.waiting.splice(0)) queueMicrotask(change);
  }
}
