/* The chat page: one socket, one transcript, one composer. This file only connects them; drawing is
   the server's, and every decision too. */

import { Approvals } from "./chat/approvals.js";
import { Attachments } from "./attachments.js";
import { Composer, newKey } from "./chat/composer.js";
import { Connection } from "./chat/connection.js";
import { countDown } from "./chat/countdown.js";
import { sourceOf } from "./copying.js";
import { Editing } from "./chat/editing.js";
import { Mentions } from "./chat/mentions.js";
import { Reordering } from "./chat/reordering.js";
import { Pressing } from "./chat/pressing.js";
import { Questions } from "./chat/questions.js";
import { Scrolling } from "./chat/scrolling.js";
import { Status } from "./chat/status.js";
import { Transcript } from "./chat/transcript.js";
import { words } from "./chat/words.js";
import "./modelchoice.js";
import { storePrefix } from "./private.js";
import { setting } from "./settings.js";

/* Errors about a frame whose key the server could not read. */
const UNREAD = new Set(["too_large", "bad_frame"]);
const root = document.getElementById("conversation");
const byId = (id) => document.getElementById(id);
const store = `${storePrefix(document.body.dataset.user)}${root.dataset.uid}`;

const transcript = new Transcript(byId("log"), byId("queue"), {
  lost(unit) {
    leftCard = unit;
    return approvals.waiting.length > 0;
  },
});
const status = new Status({
  root,
  connection: byId("connection"),
  announcer: byId("announcer"),
  alert: byId("alert"),
  stop: root.querySelector('[data-action="stop"]'),
});
const pressing = new Pressing();
const scrolling = new Scrolling({
  pressing,
  scroller: document.querySelector("[data-scroller]"),
  log: byId("log"),
  jump: byId("jump"),
  loadOlder,
});
const approvals = new Approvals({
  log: byId("log"),
  panel: byId("panel-waiting"),
  scroller: document.querySelector("[data-scroller]"),
  moved: () => scrolling.moved(),
  async older() {
    if (root.dataset.hasOlder !== "true") return false;
    await scrolling.older();
    return true;
  },
});
const connection = new Connection(root.dataset.socket, Number(root.dataset.seq), {
  frame: (frame) => pressing.whenFree(() => takers[frame.type]?.(frame)),
  state: lineState,
});
// Before the composer: what is chosen with Enter is not sent.
const mentions = new Mentions({
  box: byId("composer-text"),
  list: byId("mentions"),
  announce: (text) => status.announce(text),
  typed: () => composer.typed(),
  attach: (address) => composer.files.fetch(address),
});
// What a dialog had attached.
document.addEventListener("attached", (event) => composer.files.give(event.detail.files));
const composer = new Composer({
  form: byId("composer"),
  pending: byId("pending"),
  store,
  files: (changed) =>
    new Attachments({
      form: byId("composer"),
      target: byId("composer-text"),
      zone: root,
      query: () => new URLSearchParams({ conversation: root.dataset.uid }),
      changed,
    }),
  send: (frame) => connection.send(frame),
  mayStop: () => status.mayStop,
  declined: (problem) => status.alert(problem),
  isWords: (text) => mentions.isWords(text),
  sent() {
    status.calm();
    scrolling.follow();
  },
});
const editing = new Editing({
  queue: byId("queue"),
  store,
  characters: Number(byId("composer").dataset.characters),
  save: (message, content, ends) => command({ type: "edit", message, content }, null, ends),
  rescue(text) {
    composer.give(text);
    status.alert(words.say("editTooLate"));
  },
  declined: (problem) => status.alert(problem),
});

const resending = new Editing({
  queue: byId("log"),
  store,
  characters: Number(byId("composer").dataset.characters),
  opener: "edit-sent",
  leaves: true,
  save: (message, content, ends) =>
    command({ type: "resend", message, content, files: ends.files }, null, {
      done() {
        ends.done();
        scrolling.follow();
        composer.box.focus({ preventScroll: true });
      },
      failed: ends.failed,
    }),
  rescue(text) {
    composer.give(text);
    status.alert(words.say("resendElsewhere"));
  },
  declined: (problem) => status.alert(problem),
});

const reordering = new Reordering({
  queue: byId("queue"),
  move(message, before, button) {
    const { action } = button?.dataset ?? {};
    const done = () => {
      const unit = byId(`u-${message}`);
      const again = [action, "move-up", "move-down"].map((name) =>
        unit?.querySelector(`[data-action="${name}"]`),
      );
      if (button) again.find((each) => each?.checkVisibility())?.focus({ preventScroll: true });
    };
    command({ type: "move", message, before }, button, { done });
  },
});

const questions = new Questions({
  log: byId("log"),
  store,
  rescue(text) {
    composer.give(text);
    status.alert(words.say("answeredElsewhere"));
  },
});

/* Commands under way: key → the control that sent it, the event it became, and what follows when it
   is done or failed. A control rests until that event is drawn, so that a second click cannot send the
   command again. */
const commands = new Map();
/* Folds of panels that a person opened or closed: panel and place → open. */
const panelFolds = new Map();
let filesTimer = 0;
/* The unit in which a question had the focus until it was answered. */
let leftCard = null;
/* The arrow with which another branch was chosen, until that is drawn. */
let leftArrow = null;
let stopWanted = false;
/* Up to which event the server was told that somebody has seen this. */
let toldSeen = 0;
let resyncing = false;

// --- frames from the server ----------------------------------------------------------------------

const takers = {
  changes(frame) {
    const focused = document.activeElement;
    const typing = focused?.matches("textarea, input, [contenteditable]") ?? false;
    const keepPlace = approvals.holdPlace();
    // Where the focus goes from a card that is decided depends on what waits by now.
    drawPanels(frame.panels);
    const arrow = frame.cut === null ? null : (arrowOf(focused) ?? leftArrow);
    if (frame.cut !== null) {
      leftArrow = null;
      knowEarlier(frame.cut);
    }
    const touched = transcript.apply(frame);
    if (arrow !== null) refocusArrow(arrow, frame.cut);
    editing.settle(focused);
    resending.settle(focused);
    questions.settle();
    root.dataset.seq = String(frame.seq);
    settleCommands();
    const inLog = touched.filter((unit) => byId("log").contains(unit));
    // Before the status: an answer may come together with the end that announces it.
    for (const unit of inLog) if (unit.dataset.kind === "text") status.heard(unit);
    status.refresh();
    composer.refresh();
    const news = inLog.filter((unit) => unit.dataset.kind !== "message").length;
    const changed = inLog.some(
      ({ dataset: { kind, state } }) => kind === "notice" || (kind === "tool" && state !== "running"),
    );
    if (changed || touched.some((unit) => unit.querySelector(".attached"))) filesMayHaveChanged();
    // Who types, decides or reads further up is told of a new question, and left where she is.
    if (!typing && !approvals.hasFocus && scrolling.following) askFirstOf(inLog);
    scrolling.arrived(news);
    // Last: only now does everything stand where it stays.
    if (leftCard) approvals.next(leftCard);
    else keepPlace();
    leftCard = null;
    status.unread(news);
    tellSeen();
  },
  snapshot(frame) {
    resyncing = false;
    transcript.snapshot(frame.blocks);
    scrolling.arrived(0);
  },
  delta(frame) {
    if (transcript.delta(frame)) {
      scrolling.settle();
    } else if (!resyncing) {
      resyncing = connection.send({ type: "resync" });
    }
  },
  rendered(frame) {
    transcript.rendered(frame);
    scrolling.settle();
  },
  closed(frame) {
    transcript.closed(frame.block);
  },
  accepted(frame) {
    if (composer.accepted(frame.key)) return;
    const sent = commands.get(frame.key);
    if (sent) sent.seq = frame.seq ?? 0;
    settleCommands();
  },
  error(frame) {
    if (frame.key) {
      composer.refused(frame.key);
      release(frame.key);
    } else if (UNREAD.has(frame.code)) {
      if (!composer.refusedUnread(frame.code)) {
        for (const key of [...commands.keys()]) release(key);
      }
    }
    if (status.stopping && commands.size === 0) {
      status.stopping = false;
      status.refresh();
    }
    // Without a key it is the line's last word, which tells of itself.
    if (frame.key || frame.code !== "anonymous") status.alert(frame.message, frame.hint);
  },
  reload() {
    window.location.reload();
  },
};

function askFirstOf(units) {
  const asking = units.find((unit) =>
    unit.querySelector(
      '[data-action="allow"]:not([disabled]), [data-action="answer"]:not([disabled])',
    ),
  );
  asking?.querySelector("[data-approval]")?.focus();
}

/* --- branches: arrows at a message lead to its siblings */

/* Which arrow had the focus: of which kind, and to which side. */
function arrowOf(control) {
  const group = control?.closest?.(".branches");
  if (!group) return null;
  return { name: group.getAttribute("aria-label"), side: control.classList.contains("branch-before") };
}

/* The unit was drawn anew, or another one stands in its place: the same arrow, or the other one at an end. */
function refocusArrow({ name, side }, cut) {
  const groups = [...byId("log").querySelectorAll(".branches")].filter(
    (group) =>
      group.getAttribute("aria-label") === name &&
      Number(group.closest("[data-order]").dataset.order) >= cut,
  );
  const buttons = [...(groups[0]?.querySelectorAll("button:not([disabled])") ?? [])];
  const same = buttons.find((button) => button.classList.contains("branch-before") === side);
  (same ?? buttons[0])?.focus({ preventScroll: true });
  const number = groups[0]?.querySelector(".branch-number")?.textContent;
  if (number) status.announce(`${name}: ${number}`);
}

/* All that counts behind a place is in the frame; what is earlier is loaded from there on. */
function knowEarlier(cut) {
  if (Number(root.dataset.firstSeq) <= cut) return;
  root.dataset.firstSeq = String(cut + 1);
  root.dataset.hasOlder = String(cut > 0);
}

function drawPanels(panels) {
  for (const [name, html] of Object.entries(panels ?? {})) {
    if (name === "title") {
      status.rename(html);
      continue;
    }
    if (name === "features") {
      turnSwitches(html);
      continue;
    }
    if (name === "model") {
      for (const place of document.querySelectorAll("[data-model-words]")) place.textContent = html;
      document.body.dispatchEvent(new CustomEvent("model-changed"));
      continue;
    }
    if (name === "waiting") document.body.dispatchEvent(new CustomEvent("approvals-changed"));
    const panel = byId(`panel-${name}`);
    if (!panel) continue;
    const template = document.createElement("template");
    template.innerHTML = html;
    // What a person opened or folded stays so.
    template.content.querySelectorAll("details").forEach((fold, place) => {
      const open = panelFolds.get(`${panel.id}:${place}`);
      if (open !== undefined) fold.open = open;
    });
    const action = panel.contains(document.activeElement) && document.activeElement.dataset.action;
    panel.replaceChildren(template.content);
    window.htmx?.process(panel);
    if (action) panel.querySelector(`[data-action="${action}"]`)?.focus({ preventScroll: true });
  }
}

document.addEventListener(
  "click",
  (event) => {
    const fold = event.target.closest?.('[id^="panel-"] summary')?.parentElement;
    if (fold?.localName !== "details") return;
    const panel = fold.closest('[id^="panel-"]');
    const place = [...panel.querySelectorAll("details")].indexOf(fold);
    panelFolds.set(`${panel.id}:${place}`, !fold.open);
  },
  true,
);

/* `defaultChecked` holds what the server said last: a switch it refuses to turn falls back to that. */
function turnSwitches(features) {
  for (const box of document.querySelectorAll('input[data-action="feature"]')) {
    const stands = features[box.dataset.feature];
    if (stands === undefined) continue;
    box.defaultChecked = stands;
    if (!box.disabled) box.checked = stands;
  }
  saySwitches();
}

function saySwitches() {
  const fold = document.querySelector('[data-chip="switches"]');
  const said = fold?.querySelector("[data-chosen]");
  if (!said) return;
  const on = [...fold.querySelectorAll("input:checked")].map((box) => box.labels[0].textContent);
  said.textContent = on.join(", ") || said.dataset.none;
}

document.body.addEventListener("model-chosen", () => {
  const fold = document.querySelector('[data-chip="model"]');
  if (fold) fold.open = false;
  composer.box.focus({ preventScroll: true });
});

function lineState(state, code) {
  if (state === "open") {
    status.connection("");
    composer.resend();
    sendWaiting();
    tellSeen();
    if (stopWanted && status.mayStop) command({ type: "stop" });
    stopWanted = false;
  } else if (state === "lost") {
    resyncing = false;
    for (const [key, { waits }] of [...commands]) if (!waits) release(key);
    status.connection(words.say("reconnecting"));
  } else if (state === "gone") {
    for (const key of [...commands.keys()]) release(key);
    if (code !== 4409) status.connection(words.say(code === 4401 ? "signedOut" : "gone"));
  }
}

/* What has come to rest before somebody's eyes is not unread; in a tab that nobody looks at it stays so. */
function tellSeen() {
  const seq = connection.after;
  if (document.hidden || status.isBusy || seq <= toldSeen) return;
  if (connection.send({ type: "seen", seq })) toldSeen = seq;
}

document.addEventListener("visibilitychange", tellSeen);

// --- commands ------------------------------------------------------------------------------------

/* What is asked for before the socket opens, or while it is away, goes out when it is there. */
function command(frame, control = null, ends = {}) {
  if (connection.isOver) {
    status.alert(words.say("notConnected"));
    return false;
  }
  const key = newKey();
  const keyed = { ...frame, key };
  const waits = connection.send(keyed) ? null : keyed;
  if (!waits) status.calm();
  commands.set(key, { control, ends, seq: null, waits });
  if (control) control.disabled = true;
  return true;
}

function sendWaiting() {
  for (const given of commands.values()) {
    if (given.waits && connection.send(given.waits)) given.waits = null;
  }
}

function settleCommands() {
  for (const [key, { control, ends, seq }] of commands) {
    if (seq === null || seq > connection.after) continue;
    commands.delete(key);
    if (control) rest(control);
    ends.done?.();
  }
}

/* It was not done: the control may be used again, a switch stands as before. */
function release(key) {
  const { control, ends } = commands.get(key) ?? {};
  commands.delete(key);
  if (control) rest(control);
  ends?.failed?.();
}

function rest(control) {
  control.disabled = false;
  if (control.type === "checkbox") control.checked = control.defaultChecked;
}

function stop() {
  if (!status.mayStop || status.stopping) return;
  status.beginStop();
  if (!connection.isOpen) stopWanted = true;
  else command({ type: "stop" });
}

const actions = {
  stop: () => stop(),
  allow: (button) => decide(button, true),
  deny: (button) => decide(button, false),
  "first-waiting": () => approvals.first(),
  "allow-all": (button) => allowAll(button),
  "deny-with": (button) => denyWith(button),
  "deny-with-message": (button) =>
    command(
      { type: "deny_calls", calls: callsWaiting(), message: button.dataset.message },
      button,
    ),
  answer: (button) => reply(button, questions.answersTo(button.dataset.call)),
  skip: (button) => reply(button, { skip: true }),
  result: (button) => giveResult(button, false),
  refuse: (button) => giveResult(button, true),
  "set-aside": (button) => command({ type: "set_aside", event: button.dataset.message }, button),
  withdraw: (button) => command({ type: "withdraw", message: button.dataset.message }, button),
  steer: (button) => command({ type: "steer", message: button.dataset.message }, button),
  edit: (button) => editing.begin(button.dataset.message),
  "edit-sent": (button) => resending.begin(button.dataset.message),
  regenerate: (button) => ask({ type: "regenerate", event: button.dataset.event }, button),
  branch(button) {
    leftArrow = arrowOf(button); // it rests, and loses the focus
    command({ type: "branch", event: button.dataset.event }, button);
  },
  quote: (button) => quote(button),
  feedback: (button) =>
    command(
      { type: "feedback", event: button.dataset.event, rating: button.dataset.rating },
      button,
    ),
  "cancel-background": (button) =>
    command({ type: "cancel_background", background: button.dataset.background }, button),
  "cancel-all-background": (button) => command({ type: "cancel_all_background" }, button),
  retry: (button) => command({ type: "retry" }, button),
  "move-up": (button) => reordering.up(button),
  "move-down": (button) => reordering.down(button),
  release: (button) => command({ type: "release" }, button),
  discard: (button) => command({ type: "discard" }, button),
};

function decide(button, allow) {
  const unit = button.closest("[data-order]") ?? button.parentElement;
  const reason = unit.querySelector('[name="reason"]')?.value ?? "";
  /* Who allows a call allows the question and the arguments that the card shows. */
  const { call, shown, round } = button.dataset;
  const seen = allow ? { shown, round: Number(round) } : {};
  // A button that rests loses the focus, and with it the place.
  unit.querySelector("[data-approval]")?.focus({ preventScroll: true });
  command({ type: "decide", call, allow, reason, ...seen }, button);
}

function callsWaiting() {
  return approvals.waiting.map(({ call }) => call);
}

function allowAll(button) {
  const calls = approvals.seen();
  const done = () => composer.box.focus({ preventScroll: true });
  if (calls) command({ type: "allow_calls", calls }, button, { done });
  else status.alert(words.say("lookFirst"));
}

/* The text stays in the box until the server has taken it. */
function denyWith(button) {
  const reason = composer.text;
  command({ type: "deny_calls", calls: callsWaiting(), reason }, button, {
    done: () => composer.take(reason),
  });
}

/* `given` is null while no question has an answer. */
function reply(button, given) {
  const { call } = button.dataset;
  if (given === null) {
    status.alert(words.say("noAnswer"));
    return;
  }
  command({ type: "answer", call, ...given }, button, { failed: () => questions.taken(call, false) });
  questions.taken(call, true);
}

function giveResult(button, refuse) {
  const { call } = button.dataset;
  const box = button.closest("[data-by-hand]").querySelector("textarea");
  if (!refuse && !box.value.trim()) {
    box.focus();
    return;
  }
  command({ type: "result", call, content: box.value, refuse }, button, {
    failed: () => questions.taken(call, false),
  });
  questions.taken(call, true);
}

/* It leads to an answer at the end of the page. */
function ask(frame, button) {
  command(frame, button, { done: () => scrolling.follow() });
}

/* What is chosen of the text, or all of it, before what stands in the box. */
function quote(button) {
  const unit = button.closest("[data-order]");
  const chosen = window.getSelection();
  const within = chosen && !chosen.isCollapsed && unit.contains(chosen.anchorNode);
  const text = (within ? chosen.toString() : sourceOf(button)).trim();
  const lines = text.split("\n").map((line) => (line ? `> ${line}` : ">"));
  composer.quote(lines.join("\n"));
}

document.addEventListener("copied", (event) => {
  if (event.detail) status.announce(words.say("copied"));
  else status.alert(words.say("copyFailed"));
});

document.addEventListener("click", (event) => {
  const control = event.target.closest?.("[data-action]");
  if (!control || control.matches('input[type="checkbox"]')) return;
  const act = actions[control.dataset.action];
  if (!act || control.disabled) return;
  event.preventDefault();
  act(control);
});

document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.matches?.('input[data-action="feature"]')) {
    const sent = command(
      { type: "feature", feature: box.dataset.feature, enabled: box.checked },
      box,
    );
    if (!sent) box.checked = !box.checked;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
  if (!setting("shortcuts")) return;
  if (document.querySelector("dialog[open], [popover]:popover-open")) return;
  const field = event.target.closest?.("input, textarea, select");
  if (field && !field.closest("#composer")) return;
  if (status.mayStop) {
    event.preventDefault();
    stop();
  }
});


// --- older units and files -----------------------------------------------------------------------

async function loadOlder(keepPlace) {
  if (root.dataset.hasOlder !== "true") return;
  const url = new URL(root.dataset.older, window.location.href);
  url.searchParams.set("before", root.dataset.firstSeq);
  const answer = await fetch(url, { headers: { "X-Requested-With": "fetch" } });
  if (!answer.ok || answer.redirected) return;
  const html = await answer.text();
  root.dataset.firstSeq = answer.headers.get("X-First-Seq") ?? root.dataset.firstSeq;
  root.dataset.hasOlder = answer.headers.get("X-Has-Older") ?? "false";
  keepPlace(() => transcript.prepend(html));
}

function filesMayHaveChanged() {
  clearTimeout(filesTimer);
  filesTimer = setTimeout(() => {
    document.body.dispatchEvent(new CustomEvent("files-changed", { bubbles: true }));
  }, 300);
}

countDown(root);
connection.open();
