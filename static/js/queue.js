/* The review queue's keys and its choice of identical calls. Everything works without them. */

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
  a: () => current()?.querySelector("button[value=approve]")?.focus(),
  d: () => current()?.querySelector("input[name=reason]")?.focus(),
  o: () => current()?.querySelector("h2 a")?.click(),
  x: () => current()?.querySelector("input[name=approval]")?.click(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input:not([type=checkbox]), textarea, select");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

new MutationObserver(refresh).observe(queue, { childList: true });
refresh();
