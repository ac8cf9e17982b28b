/* Keys of every page: Ctrl+K goes somewhere by name, ? lists the keys; arrows move in what was found. */

import { setting } from "./settings.js";

const { go, keyboard } = document.body.dataset;

/* What was typed since the palette was asked for, and whether Enter came, until it is there; null at any other time. */
let early = null;

function open(address) {
  if (!address || early || document.querySelector("dialog[open]")) return;
  early = address === go ? { text: "", enter: false } : null;
  window.htmx.ajax("GET", address, { target: "#dialog", swap: "innerHTML" }).finally(() => (early = null));
}

/* Nothing else shall have what is typed for the palette that is on its way: a message that Enter would send least
   of all. So it is taken before it reaches the field that has the focus. */
document.addEventListener(
  "keydown",
  (event) => {
    if (!early || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter") early.enter = true;
    else if (event.key === "Backspace") early.text = early.text.slice(0, -1);
    else if (event.key.length === 1) early.text += event.key;
    else return;
    event.preventDefault();
    event.stopPropagation();
  },
  { capture: true },
);

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const palette = event.target.closest?.("[data-palette]");
  if (palette) return move(palette, event);
  if (!setting("shortcuts") || event.repeat) return;
  const held = event.ctrlKey || event.metaKey;
  const writing = event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (held && !event.shiftKey && event.key.toLowerCase() === "k") open(go);
  else if (event.key === "?" && !held && !writing) open(keyboard);
  else return;
  event.preventDefault();
});

function move(palette, event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const box = palette.querySelector("input");
  const links = [...palette.querySelectorAll(".go-list a")];
  if (event.key === "Enter" && event.target === box && !isAnswered(palette)) {
    event.preventDefault();
    palette.dataset.chosen = "";
    window.htmx.trigger(box, "search");
  } else if (event.key === "Enter" && event.target === box && links.length > 0) {
    event.preventDefault();
    links[0].click();
  } else if (step) {
    event.preventDefault();
    const stops = [box, ...links];
    stops[(stops.indexOf(event.target) + step + stops.length) % stops.length].focus();
  }
}

/** Whether what is listed was found for what stands in the box now, and not for what stood there before. */
function isAnswered(palette) {
  return palette.querySelector("#go-found").dataset.q === palette.querySelector("input").value.trim();
}

document.addEventListener("htmx:afterSwap", ({ detail: { target } }) => {
  const palette = target.querySelector?.("[data-palette]");
  if (!palette || !early) return;
  palette.querySelector("input").value += early.text;
  if (early.text && early.enter) palette.dataset.chosen = "";
  early = null;
});

document.addEventListener("htmx:load", ({ detail: { elt } }) => {
  const palette = elt.closest?.("[data-palette]");
  if (elt === palette && palette && !isAnswered(palette)) {
    // Typed before the box was listened to.
    window.htmx.trigger(palette.querySelector("input"), "search");
  } else if (elt.id === "go-found" && palette && "chosen" in palette.dataset) {
    delete palette.dataset.chosen;
    if (isAnswered(palette)) palette.querySelector(".go-list a")?.click();
  }
});
