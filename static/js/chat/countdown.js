/* How long it still is until a failed request is made again, beside the line that says when. */

import { words } from "./words.js";

export function countDown(root) {
  let told = null;
  const tell = () => {
    const waits = root.dataset.status === "rescheduling";
    const last = waits ? [...root.querySelectorAll("#log [data-due]")].at(-1) : null;
    if (told && told !== last) told.textContent = "";
    told = last;
    if (!last) return;
    const left = Math.ceil((Date.parse(last.dataset.due) - Date.now()) / 1000);
    last.textContent = left > 0 ? words.say("inSeconds", { n: left }) : "";
  };
  setInterval(tell, 500);
  // Its status has changed.
  document.body.addEventListener("conversations-changed", tell);
}
