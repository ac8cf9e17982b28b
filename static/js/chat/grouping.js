/* Folds consecutive steps (tool calls, thinking) into one group. What it makes depends on nothing
   but the order and attributes of the units, so that a page drawn live equals the page loaded anew. */

import { words } from "./words.js";

const STEPS = new Set(["tool", "thinking"]);
const TOLD_TITLES = 3;
const TITLE_LENGTH = 48;
const TITLE_END = 20;
const NEEDS_EYES = new Set(["waiting", "error", "unknown"]);

export function isUnit(element) {
  return element.hasAttribute("data-order");
}

export function unitsOf(log) {
  return log.querySelectorAll("[data-order]");
}

/* Bring the groups in line with the units. Touches only what is wrong, so it is cheap to call after
   every change. `chosen` maps a group's key to the open state a person gave it. */
export function regroup(log, chosen) {
  let run = [];
  for (const unit of [...unitsOf(log)]) {
    const last = run[run.length - 1];
    if (STEPS.has(unit.dataset.kind) && (!last || follows(last, unit, log))) {
      run.push(unit);
      continue;
    }
    settle(log, run, chosen);
    run = STEPS.has(unit.dataset.kind) ? [unit] : [];
  }
  settle(log, run, chosen);
  for (const group of log.querySelectorAll(":scope > details.group")) {
    if (!group.querySelector("[data-order]")) group.remove();
  }
}

/* Nothing but groups' edges lies between the two. */
function follows(first, second, log) {
  const outer = first.parentElement === log ? first : first.closest("details.group");
  const next = second.parentElement === log ? second : second.closest("details.group");
  return outer === next || outer.nextElementSibling === next;
}

function settle(log, run, chosen) {
  if (run.length === 0) return;
  const home = run[0].closest("details.group");
  if (run.length === 1) {
    if (home) home.before(run[0]);
    return;
  }
  let group = home;
  if (!group || unitsOf(group)[0] !== run[0]) {
    group = newGroup();
    (home ?? run[0]).before(group);
  }
  const body = group.querySelector(":scope > .group-body");
  run.forEach((unit, place) => {
    if (body.children[place] !== unit) body.insertBefore(unit, body.children[place] ?? null);
  });
  while (body.children.length > run.length) group.after(body.lastElementChild);
  describe(group, run, chosen);
}

/* A person has to look at it, or it prints something right now. */
function needsEyes(unit) {
  const printing = unit.hasAttribute("data-live") && unit.dataset.state === "running";
  return printing || NEEDS_EYES.has(unit.dataset.state);
}

function newGroup() {
  const group = document.createElement("details");
  group.className = "group";
  const summary = document.createElement("summary");
  const body = document.createElement("div");
  body.className = "group-body";
  group.append(summary, body);
  return group;
}

function describe(group, run, chosen) {
  const calls = run.filter((unit) => unit.dataset.kind === "tool");
  const number = (...states) => calls.filter((unit) => states.includes(unit.dataset.state)).length;
  const waiting = number("waiting");
  const failed = number("failed", "error", "unknown");
  const parts = [words.count("steps", run.length), titlesOf(calls)];
  if (waiting) parts.push(words.count("waiting", waiting));
  const denied = number("denied");
  if (failed) parts.push(words.count("failed", failed));
  if (denied) parts.push(words.count("denied", denied));
  const told = document.createElement("summary");
  told.append(parts.filter(Boolean).join(" · "), ...linesChanged(calls));
  const summary = group.querySelector(":scope > summary");
  if (summary.innerHTML !== told.innerHTML) summary.replaceChildren(...told.childNodes);
  const key = `group:${run[0].id}`;
  if (group.dataset.group !== key) group.dataset.group = key;
  const open = chosen.get(key) ?? calls.some(needsEyes);
  if (group.open !== open) group.open = open;
}

/* "+12 −3": the lines that the calls' diffs add and remove, summed up in a copy of the first one's
   counts; nothing where no call has a diff. */
function linesChanged(calls) {
  const counts = calls.map((unit) => unit.querySelector(".diff-counts")).filter(Boolean);
  if (counts.length === 0) return [];
  const sum = counts[0].cloneNode(true);
  for (const kind of [".count-added", ".count-removed"]) {
    const lines = counts.map((one) => numberIn(one.querySelector(kind)));
    sum.querySelector(kind).lastChild.data = String(lines.reduce((all, more) => all + more, 0));
  }
  return [sum];
}

function numberIn(count) {
  return Number(count.lastChild.data.replace(/\D/g, ""));
}

/* Cut in the middle: what is done stands first, the name of the file last. */
function shortened(title) {
  return `${title.slice(0, TITLE_LENGTH - TITLE_END)}…${title.slice(-TITLE_END)}`;
}

/* "Created a.py ×2, Read b.md, …": what the first calls did, in their order. */
function titlesOf(calls) {
  const titles = new Map();
  for (const unit of calls) {
    const title = unit.querySelector(".tool-title")?.textContent.trim();
    if (title) titles.set(title, (titles.get(title) ?? 0) + 1);
  }
  const told = [...titles].slice(0, TOLD_TITLES).map(([title, times]) => {
    const short = title.length > TITLE_LENGTH ? shortened(title) : title;
    return times > 1 ? `${short} ×${times}` : short;
  });
  return (titles.size > TOLD_TITLES ? [...told, "…"] : told).join(", ");
}
