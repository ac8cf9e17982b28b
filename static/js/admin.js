/* What the admin's theme leaves to the mouse or without a name: its clickable words and icons become
   buttons for the keyboard, its scrolled parts and choosers are called by what they hold. The words come
   from #admin-words. What pages of ours hold is marked up by their own templates. */

const words = document.getElementById("admin-words")?.dataset ?? {};

/* Names of the theme's icons, by the word that its font draws as a picture. */
const ICONS = {
  dock_to_right: "menu",
  close: "closeMenu",
  forum: "home",
  search: "search",
  more_horiz: "more",
  more_vert: "more",
  visibility: "showPassword",
  visibility_off: "showPassword",
};
const NATIVE = "a[href], button, input, select, textarea, label, summary, [role='tab']";

function name(element) {
  const icon = element.textContent.trim();
  if (ICONS[icon] && !element.title && !element.hasAttribute("aria-label")) {
    element.setAttribute("aria-label", words[ICONS[icon]]);
  }
}

function makeButton(element) {
  element.setAttribute("role", "button");
  element.tabIndex = 0;
  name(element);
  element.addEventListener("keydown", (event) => {
    if (event.target === element && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      element.click();
    }
  });
}

function clickable(root) {
  for (const element of root.querySelectorAll("[x-on\\:click]")) {
    // The grey behind an open sheet closes it too; Escape does for the keyboard.
    const isBackdrop = element.id === "changelist-filter-close";
    if (!isBackdrop && !element.hasAttribute("role") && !element.matches(NATIVE)) {
      makeButton(element);
    }
  }
  const account = root.querySelector("[role=button][x-on\\:click*=openUserLinks]:not([aria-label])");
  account?.setAttribute("aria-label", `${words.account}: ${account.innerText.trim().split("\n")[0]}`);
}

/* Its font draws a word as a picture; nobody is to hear the word. */
function silence(root) {
  for (const icon of root.querySelectorAll(".material-symbols-outlined:not([role], [aria-hidden])")) {
    const holder = icon.closest("a, button, [role=button]");
    if (holder) {
      name(holder);
    }
    icon.setAttribute("aria-hidden", "true");
  }
}

/* Before simplebar takes them over, which calls them all alike. */
function scrolled() {
  const named = { "nav-sidebar-apps": words.navList };
  for (const element of document.querySelectorAll("[data-simplebar]")) {
    const label = element.querySelector("#result_list") ? words.table : named[element.id];
    element.setAttribute("data-simplebar-aria-label", label ?? words.scrolled);
  }
}

/* A chooser with search is drawn beside the select that it stands for, and has that one's name. */
function choosers() {
  for (const box of document.querySelectorAll(".select2-selection[role=combobox]")) {
    if (!box.hasAttribute("aria-labelledby")) {
      continue;
    }
    const select = box.closest(".select2")?.previousElementSibling;
    const label = select?.labels?.[0]?.textContent ?? select?.dataset.placeholder ?? words.more;
    const shown = box.querySelector("[role=textbox]");
    const text = label.trim().replace(/\s*\*$/, "");
    shown?.setAttribute("aria-label", text);
    box.removeAttribute("aria-labelledby");
    box.setAttribute("aria-label", text);
  }
  for (const tip of document.querySelectorAll("span.help-tooltip[aria-label]")) {
    tip.setAttribute("role", "img");
  }
}

/* The theme leaves out a level above the names of filters. */
function levels(root) {
  for (const heading of root.querySelectorAll("#changelist-filter h3:not([aria-level])")) {
    heading.setAttribute("aria-level", "2");
  }
}

function mend(root) {
  levels(root);
  clickable(root);
  silence(root);
  choosers();
}

scrolled();
mend(document);
/* The theme's other scripts draw their parts when they like. */
let asked = false;
new MutationObserver(() => {
  if (!asked) {
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      mend(document);
    });
  }
}).observe(document.body, { childList: true, subtree: true });
