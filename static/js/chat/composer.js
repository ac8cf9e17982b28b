/* The composer: what a person types and attaches survives a reload, what she sends survives a lost line.

   A sent text is kept, with its key, until the server says `accepted`; after a reconnect it is sent
   again with the same key, so it is stored once. A refused text returns to the box. */

import { pressed } from "../enter.js";
import { recall, remember } from "../kept.js";
import { words } from "./words.js";

export class Composer {
  /* files: its Attachments, made with what is to be called when they change; send(frame) → whether it went out; mayStop() → whether there is anything to interrupt;
     sent() and declined(problem) follow a try to send; isWords(text) → whether it is to be sent, and no command. */
  constructor({ form, pending, store, files, send, mayStop, sent, declined, isWords }) {
    this.form = form;
    this.box = form.querySelector("textarea");
    this.pending = pending;
    this.draftName = `${store}:draft`;
    this.filesName = `${store}:files`;
    this.outboxName = `${store}:outbox`;
    this.send = send;
    this.mayStop = mayStop;
    this.sent = sent;
    this.declined = declined;
    this.isWords = isWords;
    this.judged = false;
    this.waiting = new Map(recall(sessionStorage, this.outboxName, []));
    /* Set while a message waits for its files: whether it interrupts. */
    this.held = null;
    this.files = files(() => this.settle());
    this.files.give(recall(localStorage, this.filesName, []));
    if (!this.box.value) this.box.value = recall(localStorage, this.draftName, "");
    this.box.addEventListener("input", () => this.typed());
    this.box.addEventListener("keydown", (event) => this.key(event));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.post(event.submitter?.dataset.action === "interrupt");
    });
    form.addEventListener("click", (event) => {
      const action = event.target.closest("button")?.dataset.action;
      if (action !== "interrupt") return;
      event.preventDefault();
      this.post(true);
    });
    this.typed();
    this.draw();
  }

  post(interrupt) {
    if (this.judged) return;
    if (!/^\/\S+$/.test(this.text) || !this.files.empty) return this.dispatch(interrupt);
    this.judged = true;
    this.isWords(this.text)
      .then((words) => words && this.dispatch(interrupt))
      .finally(() => (this.judged = false));
  }

  dispatch(interrupt) {
    const content = this.box.value;
    this.held = null;
    if (!content.trim() && this.files.empty) {
      this.box.focus();
      return;
    }
    const problem = tooLong(content, Number(this.form.dataset.characters));
    if (problem) {
      this.declined(problem);
      this.box.focus();
      return;
    }
    if (this.files.busy || this.files.stuck) {
      if (!this.files.stuck) this.held = interrupt;
      this.files.tell(this.files.say(this.files.stuck ? "stuck" : "waits"));
      return;
    }
    const frame = { type: "message", content, key: newKey() };
    if (interrupt && this.mayStop()) frame.interrupt = true;
    const attached = this.files.take();
    if (attached.length > 0) frame.files = attached.map((file) => file.id);
    this.waiting.set(frame.key, { frame, attached });
    this.keep();
    this.box.value = "";
    this.typed();
    this.send(frame);
    this.draw();
    this.sent();
    this.box.focus({ preventScroll: true });
  }

  /* The line is back: whatever was not accepted goes out again. */
  resend() {
    for (const { frame } of this.waiting.values()) this.send(frame);
  }

  accepted(key) {
    if (!this.waiting.delete(key)) return false;
    this.keep();
    this.draw();
    return true;
  }

  /* The server refused it: text and files return, before whatever was typed meanwhile. */
  refused(key) {
    const sent = this.waiting.get(key);
    if (!sent) return false;
    this.waiting.delete(key);
    this.keep();
    this.files.give(sent.attached);
    if (sent.frame.content) this.give(sent.frame.content);
    this.draw();
    return true;
  }

  /* The server could not read which frame it refused. One that is too large is the longest; any
     other is the newest. */
  refusedUnread(code) {
    const waiting = [...this.waiting.values()].map((sent) => sent.frame);
    if (code === "too_large") waiting.sort((a, b) => a.content.length - b.content.length);
    return waiting.length > 0 && this.refused(waiting.at(-1).key);
  }

  /* Text that has no other place any more. */
  give(text) {
    this.box.value = this.box.value ? `${text}\n\n${this.box.value}` : text;
    this.typed();
  }

  /* Words of somebody's, to be answered: they stand behind what was typed, with room below. */
  quote(text) {
    const typed = this.box.value.trimEnd();
    this.box.value = `${typed ? `${typed}\n\n` : ""}${text}\n\n`;
    this.typed();
    this.box.focus();
    this.box.setSelectionRange(this.box.value.length, this.box.value.length);
    this.box.scrollTop = this.box.scrollHeight;
  }

  get text() {
    return this.box.value.trim();
  }

  /* This text went another way, unless it was changed meanwhile. */
  take(text) {
    if (this.text !== text) return;
    this.box.value = "";
    this.typed();
  }

  typed() {
    remember(localStorage, this.draftName, this.box.value);
    this.fit();
    this.refresh();
  }

  /* A file was added, removed, uploaded or refused. */
  settle() {
    if (!this.files) return;
    remember(localStorage, this.filesName, this.files.done);
    this.refresh();
    if (this.held !== null && !this.files.busy) this.post(this.held);
  }

  /* Which buttons make sense right now. */
  refresh() {
    const interrupt = this.form.querySelector('[data-action="interrupt"]');
    const something = this.text !== "" || !this.files.empty;
    if (interrupt) interrupt.hidden = !(something && this.mayStop());
    const deny = document.querySelector('[data-action="deny-with"]');
    if (deny) deny.hidden = !this.text;
  }

  /* Browsers without `field-sizing` need help to grow with the text. */
  fit() {
    if (CSS.supports("field-sizing", "content")) return;
    this.box.rows = Math.min(12, Math.max(1, this.box.value.split("\n").length));
  }

  key(event) {
    const meant = event.defaultPrevented ? "" : pressed(event);
    if (!meant) return;
    event.preventDefault();
    this.post(meant === "demand");
  }

  keep() {
    remember(sessionStorage, this.outboxName, [...this.waiting]);
  }

  draw() {
    if (!this.pending) return;
    const items = [...this.waiting.values()].map(({ frame, attached }) => {
      const item = document.createElement("li");
      const text = document.createElement("span");
      text.className = "pending-text";
      text.textContent = frame.content || attached.map((file) => file.name).join(", ");
      const state = document.createElement("span");
      state.className = "pending-state";
      state.textContent = words.say("sending");
      item.append(text, state);
      return item;
    });
    this.pending.replaceChildren(...items);
    this.pending.hidden = items.length === 0;
  }
}

/* Why a text cannot be sent, or "". The limit counts Unicode characters, as the server does. */
export function tooLong(text, limit) {
  if (text.length <= limit) return "";
  const size = [...text].length;
  return size > limit ? words.say("tooLong", { size, limit }) : "";
}

export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
