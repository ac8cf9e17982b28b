/* The transcript: finished units drawn by the server, and the text that is still arriving.

   A unit stands in its place's order; one that is there already is replaced. Arriving text stands at
   the end of the log until its unit comes: blocks that are finished as the server drew them, and what
   is open behind them as plain text. Finished units are never drawn again for a token. */

import { isUnit, regroup, unitsOf } from "./grouping.js";
import { words } from "./words.js";

const LONG_PARAGRAPH = 2_000;

export class Transcript {
  /* lost(unit): a unit is drawn anew without the control that had the focus; true where something
     else has it now. */
  constructor(log, queue, { lost }) {
    this.log = log;
    this.lost = lost;
    this.places = { log, queue };
    this.live = new Map();
    this.finished = new Set();
    this.chosen = new Map();
    for (const unit of unitsOf(log)) this.remember(unit);
    for (const place of [log, queue]) {
      place?.addEventListener("click", (event) => this.choose(event), true);
    }
    this.arrange();
  }

  /* Takes a `changes` frame; returns the units that came or changed. */
  apply(frame) {
    const touched = [];
    if (frame.cut !== null) this.cut(frame.cut);
    for (const unit of frame.units) {
      const element = this.place(unit);
      if (element) touched.push(element);
      for (const block of [unit.key, ...(unit.members ?? [])]) {
        this.finished.add(block);
        this.drop(block);
      }
    }
    for (const key of frame.removed) document.getElementById(`u-${key}`)?.remove();
    for (const [block, open] of this.live) if (open.ended) this.drop(block);
    this.arrange();
    return touched;
  }

  /* Another branch counts from here on: what stands behind this number belongs to the one that was left. */
  cut(behind) {
    for (const home of Object.values(this.places)) {
      for (const unit of home ? [...unitsOf(home)] : []) {
        if (home !== this.log || Number(unit.dataset.order) > behind) unit.remove();
      }
    }
    for (const block of [...this.live.keys()]) this.drop(block);
  }

  /* Units of an earlier page, as HTML; they go before everything else. */
  prepend(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    const units = [...template.content.children].filter(isUnit);
    for (const unit of units) {
      if (document.getElementById(unit.id)) continue;
      this.insert(unit, this.log);
      this.remember(unit);
      activate(unit);
    }
    this.arrange();
    return units.length;
  }

  snapshot(blocks) {
    const open = new Set(blocks.map((block) => block.block));
    for (const [block, held] of this.live) if (!open.has(block)) held.ended = true;
    for (const block of blocks) {
      if (this.finished.has(block.block)) continue;
      const held = this.live.get(block.block) ?? this.begin(block);
      if (held.length < codePoints(block.text)) {
        this.write(held, afterCodePoints(block.text, held.length));
      }
      if (block.drawn > held.drawn) {
        held.done.replaceChildren();
        this.draw(held, block.html, block.drawn);
      }
    }
  }

  /* False when text is missing before this piece, so that a snapshot is needed. */
  delta(frame) {
    if (this.finished.has(frame.block)) return true;
    const held = this.live.get(frame.block) ?? (frame.offset === 0 ? this.begin(frame) : null);
    if (held === null || frame.offset > held.length) return false;
    const known = held.length - frame.offset;
    const fresh = known > 0 ? afterCodePoints(frame.text, known) : frame.text;
    if (fresh) this.write(held, fresh);
    return true;
  }

  /* A stretch of arriving text as it will stay. What was missed is drawn with the whole. */
  rendered(frame) {
    const held = this.live.get(frame.block);
    if (held?.done && frame.start === held.drawn && frame.end <= held.length) {
      this.draw(held, frame.html, frame.end);
    }
  }

  closed(block) {
    this.drop(block);
  }

  get last() {
    const units = unitsOf(this.log);
    return units[units.length - 1] ?? null;
  }

  // --- units ---------------------------------------------------------------------------------

  place(unit) {
    const old = document.getElementById(`u-${unit.key}`);
    const home = this.places[unit.place];
    if (!home) return null;
    const template = document.createElement("template");
    template.innerHTML = unit.html;
    const fresh = template.content.firstElementChild;
    if (!fresh) {
      old?.remove();
      return null;
    }
    const stays = old && home.contains(old) && Number(old.dataset.order) === unit.order;
    if (stays && old.outerHTML === fresh.outerHTML) return null;
    const focused = old?.contains(document.activeElement) ? document.activeElement : null;
    this.restore(fresh);
    this.hold(unit.key, fresh);
    if (stays) {
      old.replaceWith(fresh);
    } else {
      old?.remove();
      this.insert(fresh, home);
    }
    activate(fresh);
    if (focused) this.refocus(focused, fresh);
    return fresh;
  }

  refocus(old, unit) {
    const action = old.dataset?.action;
    const twin = action ? unit.querySelector(`[data-action="${action}"]:not([disabled])`) : null;
    const card = old.closest("[data-approval]") && unit.querySelector("[data-approval]");
    const line = old.localName === "summary" ? unit.querySelector("summary") : null;
    const target = twin ?? card ?? line;
    if (target) target.focus({ preventScroll: true });
    else if (!this.lost(unit)) {
      document.querySelector("#composer textarea")?.focus({ preventScroll: true });
    }
  }

  insert(unit, home) {
    const order = Number(unit.dataset.order);
    const units = unitsOf(home);
    let at = units.length;
    while (at > 0 && Number(units[at - 1].dataset.order) > order) at -= 1;
    if (at > 0) {
      units[at - 1].after(unit);
      return;
    }
    const first = units[0]?.closest("details.group") ?? units[0];
    if (first) first.before(unit);
    else home.prepend(unit);
  }

  remember(unit) {
    for (const block of (unit.dataset.members ?? "").split(" ")) if (block) this.finished.add(block);
    const key = unit.id.replace(/^u-/, "");
    this.finished.add(key);
    if (unit.hasAttribute("data-live") && unit.dataset.state !== "running") {
      this.finished.add(`${key}.out`);
    }
  }

  /* What depends on the order of the units alone; the same after every load. */
  arrange() {
    this.splitMisplaced();
    regroup(this.log, this.chosen);
    const last = this.last;
    for (const button of this.log.querySelectorAll('[data-action="retry"]')) {
      const hidden = !last || !last.contains(button);
      if (button.hidden !== hidden) button.hidden = hidden;
    }
  }

  /* A unit of another kind that was put between two grouped ones parts the group. */
  splitMisplaced() {
    for (const stranger of this.log.querySelectorAll(
      '.group-body > [data-order]:not([data-kind="tool"]):not([data-kind="thinking"])',
    )) {
      const group = stranger.closest("details.group");
      if (!group) continue;
      const behind = [];
      for (let next = stranger; next; next = next.nextElementSibling) behind.push(next);
      group.after(...behind);
    }
  }

  // --- folded parts a person opened or closed ---------------------------------------------------

  choose(event) {
    const details = event.target.closest?.("summary")?.parentElement;
    if (details?.localName === "details") this.chosen.set(this.nameOf(details), !details.open);
  }

  nameOf(details) {
    if (details.dataset.group) return details.dataset.group;
    const unit = details.closest("[data-order]");
    if (!unit) return "";
    return `${unit.id}:${details.dataset.fold ?? foldsOf(unit).indexOf(details)}`;
  }

  restore(unit) {
    foldsOf(unit).forEach((details, place) => {
      const open = this.chosen.get(`${unit.id}:${details.dataset.fold ?? place}`);
      if (open !== undefined) details.open = open;
    });
  }

  // --- arriving text -------------------------------------------------------------------------

  begin(frame) {
    if (frame.kind === "output") return this.beginOutput(frame);
    const element = document.createElement(frame.kind === "thinking" ? "details" : "div");
    element.id = `live-${frame.block}`;
    element.className = `live live-${frame.kind}`;
    if (frame.kind === "thinking") {
      const summary = document.createElement("summary");
      summary.textContent = words.say("thinking");
      element.append(summary);
    }
    if (frame.continues) element.dataset.continues = frame.continues;
    const done = document.createElement("div");
    done.className = "live-done prose";
    const body = document.createElement("div");
    body.className = "live-body";
    element.append(done, body);
    this.log.append(element);
    const held = { element, done, body, text: null, open: "", length: 0, drawn: 0, ended: false };
    this.live.set(frame.block, held);
    return held;
  }

  /* Puts what is drawn, up to a place in the text, before what is open. */
  draw(held, html, end) {
    held.open = afterCodePoints(held.open, end - held.drawn);
    const template = document.createElement("template");
    template.innerHTML = html;
    held.done.append(template.content);
    held.drawn = end;
    held.body.replaceChildren();
    held.body.className = "live-body";
    held.text = null;
    this.append(held, held.open);
  }

  write(held, text) {
    held.length += codePoints(text);
    if (held.plain) {
      this.writeOutput(held, text);
      return;
    }
    held.open += text;
    this.append(held, text);
  }

  /* A paragraph is laid out anew whenever it grows, so a long one is closed at a line's end. */
  append(held, text) {
    let rest = held.body.firstChild ? text : opening(held);
    while (rest) {
      if (held.text === null) {
        const paragraph = document.createElement("div");
        held.text = document.createTextNode("");
        paragraph.append(held.text);
        held.body.append(paragraph);
      }
      const room = LONG_PARAGRAPH - held.text.length;
      const cut = room < rest.length ? rest.indexOf("\n", Math.max(0, room)) : -1;
      if (cut < 0) {
        held.text.appendData(rest);
        return;
      }
      held.text.appendData(rest.slice(0, cut + 1));
      held.text = null;
      rest = rest.slice(cut + 1);
    }
  }

  /* What a command prints stands in the card of its call, as long as that runs. */
  hold(key, card) {
    const block = `${key}.out`;
    const held = this.live.get(block);
    if (card.dataset.state === "running" || card.dataset.state === "requested") {
      this.finished.delete(block);
      if (held) card.querySelector(".tool-body")?.append(held.element);
    } else if (card.hasAttribute("data-live")) {
      this.finished.add(block);
      this.drop(block);
    }
  }

  beginOutput(frame) {
    const element = document.createElement("pre");
    element.id = `live-${frame.block}`;
    element.className = "output live-output";
    element.tabIndex = 0;
    element.setAttribute("aria-label", words.say("output"));
    const text = document.createTextNode("");
    element.append(text);
    const card = document.getElementById(`u-${frame.block.replace(/\.out$/, "")}`);
    card?.querySelector(".tool-body")?.append(element);
    const held = { element, body: element, text, plain: true, length: 0, ended: false };
    this.live.set(frame.block, held);
    return held;
  }

  writeOutput(held, text) {
    const box = held.element;
    const follows = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
    held.text.appendData(text);
    if (follows) box.scrollTop = box.scrollHeight;
  }

  drop(block) {
    const held = this.live.get(block);
    if (!held) return;
    held.element.remove();
    this.live.delete(block);
  }
}

/* The beginning of what is open. Empty lines are the gap between two blocks, which they have anyway; the
   line that opens a block of code says what it is and is no part of it. */
function opening(held) {
  const code = /^\n*(?:`{3,}[^`\n]*|~{3,}[^\n]*)(\n|$)/.exec(held.open);
  held.body.classList.toggle("live-code", code !== null);
  return code ? held.open.slice(code[0].length) : held.open.replace(/^\n+/, "");
}

function foldsOf(unit) {
  const inner = [...unit.querySelectorAll("details")];
  return unit.localName === "details" ? [unit, ...inner] : inner;
}

function activate(element) {
  window.htmx?.process(element);
}

/* The server counts Unicode characters, a JavaScript string counts UTF-16 units. */
export function codePoints(text) {
  let number = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0xdc00 || unit > 0xdfff) number += 1;
  }
  return number;
}

export function afterCodePoints(text, number) {
  let at = 0;
  for (let left = number; left > 0 && at < text.length; left -= 1) {
    at += text.codePointAt(at) > 0xffff ? 2 : 1;
  }
  return text.slice(at);
}
