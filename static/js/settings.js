/* Switches of this browser, whoever uses it: `data-setting` boxes show and turn them, and `data-<name>`
   of the body says how they stand. All are on until somebody turns one off. */

import { recall, remember } from "./kept.js";

export const NAMES = ["shortcuts", "enter", "notices"];

const place = (name) => `agentsite:${name}`;

export function setting(name) {
  return recall(localStorage, place(name), true) !== false;
}

function show() {
  for (const name of NAMES) document.body.dataset[name] = setting(name) ? "on" : "off";
  for (const box of document.querySelectorAll("input[data-setting]")) {
    box.checked = setting(box.dataset.setting);
  }
}

document.addEventListener("change", (event) => {
  const box = event.target;
  if (!box.matches?.("input[data-setting]")) return;
  remember(localStorage, place(box.dataset.setting), box.checked);
  show();
});
window.addEventListener("storage", show);
show();
