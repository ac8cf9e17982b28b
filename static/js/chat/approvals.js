/* Cards that wait for a decision: the way to them, keys that act while one has the focus, and where
   the focus goes when one is decided. Deciding is the server's; what waits for whom says #panel-waiting. */

const CARD = '[data-approval]:has([data-action="allow"])';

export class Approvals {
  /* older() loads earlier units, and is false when there are none; moved() follows where this scrolls. */
  constructor({ log, panel, scroller, older, moved }) {
    this.log = log;
    this.panel = panel;
    this.scroller = scroller;
    this.older = older;
    this.moved = moved;
    log.addEventListener("keydown", (event) => this.key(event));
  }

  /* The calls that wait for this person, in their order: { call, shown, round }. */
  get waiting() {
    return [...(this.panel?.querySelectorAll("[data-call]") ?? [])].map(({ dataset }) => ({
      call: dataset.call,
      shown: dataset.shown,
      round: Number(dataset.round),
    }));
  }

  get hasFocus() {
    return document.activeElement?.closest?.(CARD) != null;
  }

  /* What is called after a change has the card with the focus stand where it stood before. */
  holdPlace() {
    const card = document.activeElement?.closest?.(CARD);
    const before = card?.getBoundingClientRect().top;
    return () => {
      if (!card?.isConnected) return;
      this.scroller.scrollTop += card.getBoundingClientRect().top - before;
      this.moved();
    };
  }

  /* Folded groups and cards are opened on the way. */
  focus(card) {
    unfold(card);
    card.focus({ preventScroll: true });
    const unit = card.closest("[data-order]");
    const fits = unit.offsetHeight < (this.scroller.clientHeight);
    unit.scrollIntoView({ block: fits ? "nearest" : "start" });
    this.moved();
  }

  async first() {
    const call = this.waiting[0]?.call;
    if (!call) return;
    while (!cardOf(call)) if (!(await this.older())) return;
    this.focus(cardOf(call));
  }

  /* The next card behind a unit, or else the first, has the focus now. */
  next(unit) {
    const cards = this.waiting.map(({ call }) => cardOf(call)).filter(Boolean);
    const behind = cards.find(
      (card) => unit.compareDocumentPosition(card) & Node.DOCUMENT_POSITION_FOLLOWING,
    );
    const card = behind ?? cards[0];
    if (card) this.focus(card);
  }

  /* All that waits, if all of it stands open on the page as it is asked now; else null, and what was
     folded is open now. */
  seen() {
    const { waiting } = this;
    const hidden = waiting.filter(({ call, shown, round }) => {
      const card = cardOf(call);
      const { dataset } = card?.querySelector('[data-action="allow"]') ?? {};
      if (dataset?.shown !== shown || Number(dataset.round) !== round) return true;
      return !card.checkVisibility({ contentVisibilityAuto: true });
    });
    if (hidden.length === 0) return waiting;
    for (const { call } of hidden) if (cardOf(call)) unfold(cardOf(call));
    const card = cardOf(hidden[0].call);
    if (card) this.focus(card);
    else this.first();
    return null;
  }

  key(event) {
    const card = event.target.closest?.(CARD);
    if (!card || event.defaultPrevented || event.isComposing) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest("input, textarea, select");
    if (event.key === "Escape") {
      event.preventDefault();
      // Out of a field into its card, out of the card to the composer; never further than that.
      if (field) card.focus({ preventScroll: true });
      else document.querySelector("#composer textarea")?.focus({ preventScroll: true });
      return;
    }
    if (event.key === "Enter" && event.target.matches('input[name="reason"]')) {
      event.preventDefault();
      card.querySelector('[data-action="deny"]:not([disabled])')?.click();
      return;
    }
    if (field || event.repeat || document.body.dataset.shortcuts === "off") return;
    const act = {
      a: () => card.querySelector('[data-action="allow"]:not([disabled])')?.click(),
      r: () => card.querySelector('[name="reason"]')?.focus(),
      e: () => openMore(card),
    }[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

function cardOf(call) {
  return document.getElementById(`u-${call}`)?.querySelector(CARD) ?? null;
}

function unfold(card) {
  for (let fold = card.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    fold.open = true;
  }
}

/* What is to be changed has the focus as soon as it is there. */
function openMore(card) {
  const more = card.querySelector("details[data-more]");
  if (!more) return;
  more.open = true;
  const field = more.querySelector("textarea, input:not([type=hidden])");
  if (field) field.focus();
  else more.dataset.wanted = "";
}

document.addEventListener("htmx:afterSettle", (event) => {
  const more = event.target.closest?.("details[data-more]");
  if (!more || !("wanted" in more.dataset)) return;
  delete more.dataset.wanted;
  more.querySelector("textarea, input:not([type=hidden])")?.focus();
});
