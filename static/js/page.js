/* Small behaviours of every page that htmx has no attribute for: menus, the sidebar, the dialog,
   notices, the theme, progress of an upload. The chat is chat.js. */

import "./copying.js";
import "./keys.js";
import { forget, forgetOthers } from "./private.js";

const body = document.body;
const dialog = document.getElementById("dialog");
const notices = document.getElementById("notices");
const NOTICE_MILLISECONDS = 6_000;

// --- what was typed here belongs to one person ----------------------------------------------------

if (body.dataset.user) forgetOthers(body.dataset.user);
document.addEventListener("submit", (event) => {
  if (event.target.getAttribute("action") === body.dataset.signOut) forget();
});

// --- menus: one open at a time, closed by a click elsewhere or Escape -----------------------------

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
  const chosen = event.target.closest?.("details.menu .menu-item");
  if (chosen) {
    const menu = chosen.closest("details.menu");
    // After the form was sent: a closed menu would take its button out of the submission.
    setTimeout(() => {
      menu.open = false;
      if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
    });
  }
});

document.addEventListener(
  "keydown",
  (event) => {
    // A dialog closes by itself, and what is below it stays.
    if (event.key !== "Escape" || dialog?.open) return;
    const menu = document.querySelector("details.menu[open]");
    if (menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    } else if (body.dataset.sidebar) {
      toggleSidebar();
    } else if (body.dataset.aside) {
      toggleAside();
    } else {
      return;
    }
    event.preventDefault();
  },
  true,
);

// --- sidebar and side panel ----------------------------------------------------------------------

const narrow = window.matchMedia("(max-width: 55rem)");
let opener = null;

function toggleSidebar() {
  const opened = body.dataset.sidebar !== "open";
  if (opened) body.dataset.sidebar = "open";
  else delete body.dataset.sidebar;
  for (const toggle of document.querySelectorAll("a[data-toggle='sidebar']")) {
    toggle.setAttribute("aria-expanded", String(opened));
  }
  if (opened) {
    opener = document.activeElement;
    document.querySelector("#sidebar a, #sidebar input")?.focus();
  } else {
    opener?.focus();
  }
}

function toggleAside() {
  const opened = !body.dataset.aside;
  if (opened) body.dataset.aside = "open";
  else delete body.dataset.aside;
  for (const toggle of document.querySelectorAll("[data-toggle='aside']")) {
    toggle.setAttribute("aria-expanded", String(opened));
  }
  if (opened) document.getElementById("aside")?.focus({ preventScroll: true });
  else document.querySelector("[data-toggle='aside']")?.focus();
}

for (const toggle of document.querySelectorAll("a[data-toggle='sidebar']")) {
  toggle.setAttribute("role", "button");
  toggle.setAttribute("aria-expanded", "false");
  toggle.setAttribute("aria-controls", "sidebar");
}

document.addEventListener("click", (event) => {
  const toggle = event.target.closest?.("[data-toggle]");
  if (!toggle) return;
  event.preventDefault();
  if (toggle.dataset.toggle === "sidebar") toggleSidebar();
  if (toggle.dataset.toggle === "aside") toggleAside();
});

narrow.addEventListener("change", () => {
  delete body.dataset.sidebar;
  delete body.dataset.aside;
});

// --- how many conversations are unread: the title of a page says it; a conversation's says more (status.js)

const plainTitle = document.title;

function countUnread() {
  if (document.getElementById("conversation")) return;
  // Where the page is the list itself, none stands beside it.
  const list = document.getElementById("recent") ?? document;
  const count = list.querySelectorAll("[data-unread]").length;
  document.title = count > 0 ? `(${count}) ${plainTitle}` : plainTitle;
}

document.addEventListener("htmx:afterSettle", countUnread);
countUnread();

// --- how many calls wait for her decision: pages that show another number than one drawn now ask anew

const line = body.dataset.user && new BroadcastChannel(`approvals:${body.dataset.user}`);
let toldOthers = null;

function waitingNumber() {
  const badge = document.getElementById("approvals-badge");
  return badge && (badge.querySelector(".count")?.textContent ?? "");
}

function tellOthers() {
  const number = waitingNumber();
  if (!line || number === null || number === toldOthers) return;
  toldOthers = number;
  line.postMessage(number);
}

line?.addEventListener("message", ({ data }) => {
  if (data !== waitingNumber()) body.dispatchEvent(new CustomEvent("approvals-changed"));
});
document.addEventListener("htmx:afterSettle", tellOthers);
document.addEventListener("htmx:oobAfterSwap", tellOthers);
tellOthers();

// --- the dialog: shows what htmx puts into it ----------------------------------------------------

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target !== dialog) return;
  const heading = dialog.querySelector("h1, h2");
  if (heading) {
    heading.id ||= "dialog-title";
    dialog.removeAttribute("aria-label");
    dialog.setAttribute("aria-labelledby", heading.id);
  }
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("[autofocus]")?.focus();
});

dialog?.addEventListener("click", (event) => {
  if (event.target === dialog || event.target.closest("[data-close]")) {
    event.preventDefault();
    dialog.close();
  }
});

dialog?.addEventListener("close", () => dialog.replaceChildren());

document.addEventListener("htmx:afterRequest", (event) => {
  const { successful, elt, requestConfig } = event.detail;
  // What only asks for more to show is no answer to the dialog.
  if (successful && requestConfig.verb !== "get" && elt.closest?.("dialog form")) dialog.close();
});

// --- notices -------------------------------------------------------------------------------------

function notice(text, isError = false) {
  const box = document.createElement("div");
  box.className = isError ? "notice error" : "notice";
  const words = document.createElement("p");
  words.textContent = text;
  box.append(words);
  notices.append(box);
  arm(box);
}

function arm(box) {
  if (box.dataset.armed) return;
  box.dataset.armed = "";
  const close = document.createElement("button");
  close.type = "button";
  close.className = "button quiet small";
  close.textContent = body.dataset.dismiss;
  close.addEventListener("click", () => box.remove());
  box.append(close);
  // Errors stay until they are read.
  if (!box.classList.contains("error")) setTimeout(() => box.remove(), NOTICE_MILLISECONDS);
}

// A list that draws itself anew would take away what is chosen or open in it.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (!event.detail.elt.matches?.("[data-unless-chosen]")) return;
  if (document.querySelector("#results :checked, #results details[open]")) event.preventDefault();
});

// What went wrong before is settled by trying again.
document.addEventListener("htmx:beforeRequest", () => {
  for (const box of notices.querySelectorAll(".error")) box.remove();
});

document.addEventListener("notice", (event) => notice(event.detail.text));

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target === notices) for (const box of notices.children) arm(box);
});

// A refusal says where it belongs (HX-Retarget) or is a form that came back; any other error page
// must not land in the middle of this one.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr } = event.detail;
  if (body.dataset.signIn && xhr.responseURL.includes(`//${location.host}${body.dataset.signIn}`)) {
    // Signed out meanwhile, in another tab say: the sign-in page belongs in a window, not in a part.
    event.detail.shouldSwap = false;
    if (!asksAgain(event.target)) notice(body.dataset.signedOut, true);
    return;
  }
  if (xhr.status < 400 || xhr.status === 422 || xhr.getResponseHeader("HX-Retarget")) return;
  event.detail.shouldSwap = false;
  notice(body.dataset.failed, true);
});

document.addEventListener("htmx:sendError", (event) => {
  if (!asksAgain(event.target)) notice(body.dataset.failed, true);
});

function asksAgain(element) {
  // Nobody waits for what asks again by itself; the next time it may work.
  return Boolean(element.getAttribute?.("hx-trigger")?.startsWith("every"));
}

// --- theme: at once, and remembered by the form's own request -------------------------------------

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-theme-form]") || !event.submitter) return;
  event.preventDefault();
  const { value } = event.submitter;
  const data = new FormData(form, event.submitter);
  fetch(form.action, { method: "POST", body: data, redirect: "manual" });
  document.documentElement.dataset.theme = value;
  for (const button of form.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button === event.submitter));
  }
});

// --- uploads -------------------------------------------------------------------------------------

document.addEventListener("change", (event) => {
  const input = event.target;
  if (!input.matches?.("[data-upload] input[type='file']") || input.files.length === 0) return;
  input.form.requestSubmit();
});

document.addEventListener("htmx:beforeRequest", (event) => {
  const bar = event.detail.elt.matches?.("[data-upload]") && progressOf(event.detail.elt);
  if (!bar) return;
  bar.hidden = false;
  bar.value = 0;
});

document.addEventListener("htmx:xhr:progress", (event) => {
  const bar = event.target.matches?.("[data-upload]") && progressOf(event.target);
  if (bar && event.detail.lengthComputable) {
    bar.value = event.detail.loaded / event.detail.total;
  }
});

document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.detail.elt;
  const bar = form.matches?.("[data-upload]") && progressOf(form);
  if (!bar) return;
  bar.hidden = true;
  form.reset();
});

function progressOf(form) {
  return form.querySelector("progress");
}

const dropZone = document.querySelector("[data-drop]");

dropZone?.addEventListener("dragover", (event) => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  dropZone.dataset.dragging = "";
});

dropZone?.addEventListener("dragleave", (event) => {
  if (!dropZone.contains(event.relatedTarget)) delete dropZone.dataset.dragging;
});

dropZone?.addEventListener("drop", (event) => {
  delete dropZone.dataset.dragging;
  if (event.dataTransfer.files.length === 0) return;
  event.preventDefault();
  const form = document.querySelector("[data-upload]");
  form.querySelector("input[type='file']").files = event.dataTransfer.files;
  form.requestSubmit();
});
