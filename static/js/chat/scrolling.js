/* Where the reader is: follows the end only while she is there, offers the way back otherwise, and
   loads older units when she reaches the top without moving what she reads. */

const NEAR = 100;
const TOP = 400;

export class Scrolling {
  constructor({ scroller, log, jump, loadOlder, pressing = null }) {
    this.pressing = pressing;
    this.scroller = scroller ?? document.scrollingElement;
    this.log = log;
    this.jump = jump;
    this.count = jump?.querySelector("[data-count]") ?? null;
    this.loadOlder = loadOlder;
    this.following = true;
    this.unseen = 0;
    this.loading = false;
    const source = scroller ?? window;
    source.addEventListener("scroll", () => this.moved(), { passive: true });
    jump?.addEventListener("click", () => {
      this.follow();
      document.querySelector("#composer textarea")?.focus({ preventScroll: true });
    });
    new ResizeObserver(() => this.settle()).observe(log);
    if (scroller) new ResizeObserver(() => this.settle()).observe(scroller);
    else window.addEventListener("resize", () => this.settle());
    const linked = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
    if (linked && log.contains(linked)) this.open(linked);
    else this.follow();
  }

  get distance() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  /* Go to the end and stay there. */
  follow() {
    this.following = true;
    this.unseen = 0;
    this.settle();
    this.show();
  }

  /* A link leads here. */
  open(unit) {
    for (let fold = unit; fold && fold !== this.log; fold = fold.parentElement) {
      if (fold.localName === "details") fold.open = true;
    }
    this.following = false;
    unit.scrollIntoView({ block: "center" });
    this.moved();
  }

  /* Something new stands at the end. */
  arrived(number) {
    if (!this.following) this.unseen += number;
    this.settle();
    this.show();
  }

  settle() {
    if (this.pressing?.isHeld) {
      this.pressing.whenFree(() => this.settle());
      return;
    }
    // What grew shorter may have nothing below any more.
    if (!this.following && this.distance <= NEAR) this.follow();
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  moved() {
    this.following = this.distance <= NEAR;
    if (this.following) this.unseen = 0;
    this.show();
    if (this.scroller.scrollTop <= TOP) this.older();
  }

  show() {
    if (!this.jump) return;
    this.jump.hidden = this.following;
    if (this.count) this.count.textContent = this.unseen > 0 ? `(${this.unseen})` : "";
  }

  async older() {
    if (this.loading || !this.loadOlder) return;
    this.loading = true;
    try {
      await this.loadOlder((change) => this.keepPlace(change));
    } finally {
      this.loading = false;
    }
  }

  /* Run `change`, which adds something above, without moving what the reader looks at. */
  keepPlace(change) {
    const anchor = this.log.querySelector("[data-order]");
    const before = anchor?.getBoundingClientRect().top ?? 0;
    change();
    if (anchor) this.scroller.scrollTop += anchor.getBoundingClientRect().top - before;
  }
}
