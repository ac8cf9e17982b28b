/* What the agent does right now, said once and politely; the page's title; the line's state; and, to who
   is elsewhere, that it waits or has ended.

   The status is the server's: #panel-status carries it. Nothing here guesses. */

import { tell } from "../notices.js";
import { words } from "./words.js";

const FAILED = new Set(["failed", "limit", "refused"]);
const BUSY = new Set(["starting", "running", "rescheduling"]);
const LONGEST_READING = 2_000;

export class Status {
  constructor({ root, connection, announcer, alert, stop }) {
    this.root = root;
    this.line = connection;
    this.announcer = announcer;
    this.alertBox = alert;
    this.stop = stop;
    this.stopping = false;
    this.unseen = 0;
    /* How it ended while nobody looked: "", "titleDone" or "titleFailed". */
    this.ended = "";
    this.failure = this.lastFailure?.id;
    this.title = document.title;
    this.answer = null;
    this.known = this.current;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) {
        this.unseen = 0;
        this.ended = "";
      }
      this.showTitle();
    });
    this.refresh();
    this.showTitle();
  }

  get current() {
    const panel = document.getElementById("panel-status");
    const status = panel?.dataset.status ?? panel?.querySelector("[data-status]")?.dataset.status;
    return status ?? this.root.dataset.status ?? "idle";
  }

  get isBusy() {
    return BUSY.has(this.current);
  }

  /* Whether there is anything to stop: work, a question to a person, or a queue. */
  get mayStop() {
    return document.querySelector("#panel-status [data-may-stop]") !== null;
  }

  /* Call after every change: shows the stop button, announces what changed. */
  refresh() {
    const status = this.current;
    if (!this.mayStop) this.stopping = false;
    if (this.stop) {
      this.stop.hidden = !this.mayStop;
      this.stop.setAttribute("aria-disabled", String(this.stopping));
      const label = this.stop.querySelector("[data-label]") ?? this.stop;
      label.textContent = words.say(this.stopping ? "stopping" : "stop");
    }
    if (status === this.known) {
      // A whole turn may come in one frame.
      const failed = FAILED.has(status) && this.lastFailure?.id !== this.failure;
      if (failed || (this.answer && !BUSY.has(status) && status !== "waiting")) this.end(status);
      // As many wait as #panel-waiting says by now.
      this.showTitle();
      return;
    }
    const was = this.known;
    this.known = status;
    this.root.dataset.status = status;
    if (BUSY.has(status) && !BUSY.has(was)) this.announce(words.say("generating"));
    else if (status === "waiting") {
      this.announce(words.say(this.waitsForOthers ? "waitingOthers" : "waiting"));
      if (!this.waitsForOthers) tell(this.root.dataset.uid, words.say("titleWaiting"), this.title);
    } else if (!BUSY.has(status)) this.end(status);
    this.showTitle();
    document.body.dispatchEvent(new CustomEvent("conversations-changed"));
  }

  /* The error, or the rest short of an answer, that stands last. */
  get lastFailure() {
    return [...document.querySelectorAll("#log .unit.error, #log .unit.rest")].at(-1);
  }

  /* It rests: well, stopped by a person, or because something went wrong. */
  end(status) {
    if (FAILED.has(status)) {
      const unit = this.lastFailure;
      this.failure = unit?.id;
      this.answer = null;
      const why = unit?.querySelector("p")?.textContent.replace(/\s+/g, " ").trim() ?? "";
      this.announce(words.say("endedBadly", { text: why }).trim());
    } else if (status === "stopped") {
      this.answer = null;
      this.announce(words.say("stopped"));
    } else this.announceEnd();
    this.ended = FAILED.has(status) ? "titleFailed" : "titleDone";
    if (document.hidden) tell(this.root.dataset.uid, words.say(this.ended), this.title);
    this.showTitle();
  }

  /* The newest answer, read out when the run rests. */
  heard(unit) {
    this.answer = unit;
  }

  announceEnd() {
    const said = this.answer?.isConnected ? this.answer.querySelector(".prose") : null;
    const text = said?.textContent.trim() ?? "";
    this.answer = null;
    const short =
      text.length > LONGEST_READING ? `${text.slice(0, LONGEST_READING)} …` : text;
    this.announce(short ? words.say("doneWith", { text: short }) : words.say("done"));
  }

  announce(text) {
    if (this.announcer) this.announcer.textContent = text;
  }

  alert(message, hint = "") {
    if (!this.alertBox) return;
    this.alertBox.textContent = hint ? `${message} ${hint}` : message;
    this.alertBox.hidden = false;
  }

  calm() {
    if (!this.alertBox || this.alertBox.hidden) return;
    this.alertBox.hidden = true;
    this.alertBox.textContent = "";
  }

  beginStop() {
    this.stopping = true;
    this.announce(words.say("stoppingAnswer"));
    this.refresh();
  }

  connection(text) {
    if (!this.line) return;
    this.line.textContent = text;
    this.line.hidden = text === "";
  }

  // --- the page's title --------------------------------------------------------------------------

  rename(title) {
    for (const place of document.querySelectorAll("[data-conversation-title]")) {
      place.textContent = title;
    }
    const tail = this.root.dataset.site ? ` · ${this.root.dataset.site}` : "";
    this.title = `${title}${tail}`;
    this.showTitle();
  }

  unread(number) {
    if (!document.hidden || number === 0) return;
    this.unseen += number;
    this.showTitle();
  }

  /* What waits is for others to decide, and nothing for the reader. */
  get waitsForOthers() {
    const panel = document.getElementById("panel-waiting");
    const mine = panel?.querySelector("[data-call]") ?? document.querySelector("#log [data-questions]");
    return Boolean(panel?.querySelector(".waiting-others")) && !mine;
  }

  showTitle() {
    if (!document.hidden) this.ended = "";
    if (this.known === "waiting" && this.waitsForOthers) {
      document.title = `${words.say("titleWaitingOthers")} · ${this.title}`;
    } else if (this.known === "waiting") {
      const number = document.querySelectorAll("#panel-waiting [data-call]").length || 1;
      document.title = `(${number}) ${words.say("titleWaiting")} · ${this.title}`;
    } else if (this.ended) {
      document.title = `${words.say(this.ended)} · ${this.title}`;
    } else {
      document.title = this.unseen > 0 ? `(${this.unseen}) ${this.title}` : this.title;
    }
  }
}
