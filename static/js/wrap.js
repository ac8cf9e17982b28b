/* Whether long lines of code and of output are wrapped, everywhere on this browser: `data-wrap` of the body
   is "on" or "off" once a person chose; before that code runs on and output is wrapped. */

import { recall, remember } from "./kept.js";

export const PLACE = "agentsite:wrap";

function show() {
  const chosen = recall(localStorage, PLACE, "");
  if (chosen) document.body.dataset.wrap = chosen;
  else delete document.body.dataset.wrap;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.('button[data-action="wrap"]');
  if (!button) return;
  const wraps = document.body.dataset.wrap ?? (button.closest(".output-head") ? "on" : "off");
  remember(localStorage, PLACE, wraps === "on" ? "off" : "on");
  show();
});
window.addEventListener("storage", show);
show();
