/* What a press of Enter in a box of text means here: "send", "demand" (now, before all else) or "" for a
   new line. Who turned the switch off writes lines with Enter and sends with Ctrl. */

import { setting } from "./settings.js";

export function pressed(event) {
  if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return "";
  const held = event.ctrlKey || event.metaKey;
  if (!setting("enter")) return held ? (event.shiftKey ? "demand" : "send") : "";
  if (held) return "demand";
  // On a touch keyboard there is no Shift+Enter: Enter makes a line, the button sends.
  if (event.shiftKey || event.altKey || window.matchMedia("(pointer: coarse)").matches) return "";
  return "send";
}
