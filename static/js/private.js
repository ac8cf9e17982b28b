/* What a browser keeps of what people type: in whose name, and when it is forgotten. Writing and
   reading it is chat's. Settings of the browser itself are nobody's and stay. */

import { NAMES } from "./settings.js";
import { PLACE as WRAP } from "./wrap.js";

const PREFIX = "agentsite:";
const SHARED = new Set([...NAMES.map((name) => `${PREFIX}${name}`), WRAP]);

/* Begins the name of everything that is kept for this person. */
export function storePrefix(user) {
  return `${PREFIX}${user}:`;
}

/* Somebody signs out: nothing stays for whoever comes next. */
export function forget() {
  clear(() => true);
}

/* Somebody is signed in: what others left here is not hers to see. */
export function forgetOthers(user) {
  clear((name) => !name.startsWith(storePrefix(user)));
}

function clear(isForgotten) {
  for (const area of ["localStorage", "sessionStorage"]) {
    try {
      const storage = window[area];
      for (const name of Object.keys(storage)) {
        if (name.startsWith(PREFIX) && !SHARED.has(name) && isForgotten(name)) {
          storage.removeItem(name);
        }
      }
    } catch {
      // Storage may be forbidden; then nothing was kept either.
    }
  }
}
