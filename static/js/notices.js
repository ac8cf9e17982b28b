/* Notices of the browser about a conversation that is open in a tab nobody looks at. Who wants them says so
   by a button of the settings; nothing asks by itself. */

import { setting } from "./settings.js";

const may = () => window.Notification?.permission ?? "none";

/* `about` is the conversation: a later notice of it takes the place of the one before. */
export function tell(about, title, body) {
  if (!document.hidden || may() !== "granted" || !setting("notices")) return;
  try {
    const shown = new Notification(title, { body, tag: about });
    shown.addEventListener("click", () => {
      window.focus();
      shown.close();
    });
  } catch {
    return; // some phones show none from a page
  }
}

const section = document.querySelector("[data-notices-section]");

function show() {
  const state = may();
  section.querySelector("[role=status]").textContent = section.dataset[state] ?? "";
  section.querySelector("button").hidden = state !== "default";
  section.querySelector(".switch").hidden = state !== "granted";
}

if (section) {
  section.querySelector("button").addEventListener("click", async () => {
    await Notification.requestPermission();
    show();
  });
  show();
}
