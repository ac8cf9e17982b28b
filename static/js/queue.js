/* The review queue's keys and its choice of identical calls. Everything works without them. */

import { setting } from "./settings.js";

const queue = document.querySelector("[data-queue]");
const bar = document.getElementById("chosen-calls");
const empty = document.querySelector("[data-empty]");

const cards = () => [...queue.querySelectorAll(".approval-card")];
const boxes = () => [...queue.querySelectorAll("input[name=approval]")];

function refresh() {
  if (empty) empty.hidden = cards().length > 0;
  if (!bar) return;
  const chosen = boxes().filter((box) => box.checked);
  bar.hidden = chosen.length === 0;
  bar.querySelector("[data-chosen]").textContent = String(chosen.length);
  const kind = chosen[0]?.dataset.alike;
  // What is not the same cannot be decided together.
  for (const box of boxes()) box.disabled = kind !== undefined && box.dataset.alike !== kind;
}

queue.addEventListener("change", refresh);
queue.addEventListener("click", (event) => {
  const kind = event.target.closest?.("[data-choose]")?.dataset.choose;
  if (kind === undefined) return;
  for (const box of boxes()) box.checked = box.dataset.alike === kind;
  refresh();
  bar.querySelector("button").focus();
});

function current() {
  return document.activeElement?.closest?.(".approval-card");
}

function go(step) {
  const all = cards();
  if (!all.length) return;
  const place = all.indexOf(current());
  const next = all[Math.min(all.length - 1, Math.max(0, place + step))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

const keys = {
  j: () => go(1),
  k: () => go(-1),
  a: () => current()?.querySelector("button[value=approve]")?.click(),
  r: () => current()?.querySelector("input[name=reason]")?.focus(),
  e: () => current()?.querySelector("h2 a")?.click(),
  x: () => current()?.querySelector("input[name=approval]")?.click(),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && current() && !event.defaultPrevented) {
    const card = current();
    if (document.activeElement === card) card.blur();
    else card.focus({ preventScroll: true });
    event.preventDefault();
    return;
  }
  if (event.repeat || !setting("shortcuts")) return;
  const typing = event.target.closest?.("input:not([type=checkbox]), textarea, select");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

// --- the answered card is drawn anew in its place, and the next one has the focus ------------------

let answered = "";

document.addEventListener("htmx:beforeRequest", (event) => {
  const card = event.target.matches?.(".approval-form") && event.target.closest(".approval-card");
  if (card) answered = card.id;
});

document.addEventListener("htmx:afterSettle", () => {
  const card = document.getElementById(answered);
  if (!card) return;
  answered = "";
  refresh();
  if (card.querySelector('[role="alert"]')) {
    card.focus({ preventScroll: true });
    return;
  }
  const open = cards().filter((one) => one.querySelector("button[value=approve]"));
  const behind = open.find(
    (one) => card.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING,
  );
  const next = behind ?? open.find((one) => one !== card) ?? card;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
});

new MutationObserver(refresh).observe(queue, { childList: true });
refresh();
