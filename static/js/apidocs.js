/* Names and levels that the library's page of the API leaves out, for whoever hears it. What it shows and
   does stays the library's. Its words come from #swagger-ui. */

const page = document.getElementById("swagger-ui");

function landmark(element, role, label) {
  element?.setAttribute("role", role);
  element?.setAttribute("aria-label", label);
}

function mend() {
  // Ours is the page's heading; the library's own comes below it, and the groups below that.
  for (const heading of page.querySelectorAll("h1:not([aria-level])")) {
    heading.setAttribute("aria-level", "2");
  }
  // The library has the levels of what is folded out two below the groups.
  for (const heading of page.querySelectorAll("h4:not([aria-level]), h5:not([aria-level])")) {
    heading.setAttribute("aria-level", "4");
  }
  for (const field of page.querySelectorAll("select:not([aria-label]), textarea:not([aria-label])")) {
    if (!field.labels.length) {
      field.setAttribute("aria-label", page.dataset.choose);
    }
  }
  for (const field of page.querySelectorAll("input:not([aria-label])")) {
    if (!field.labels.length) {
      field.setAttribute("aria-label", field.placeholder || page.dataset.type);
    }
  }
  landmark(page.querySelector(".information-container"), "region", page.dataset.about);
  landmark(page.querySelector(".filter-container"), "search", page.dataset.filter);
  landmark(page.querySelector(".schemes"), "region", page.dataset.signIn);
  for (const table of page.querySelectorAll("table[role=region]:not([aria-label])")) {
    const path = table.closest(".opblock")?.querySelector(".opblock-summary-path")?.innerText ?? "";
    table.setAttribute("aria-label", `${page.dataset.answers} ${path}`);
  }
  for (const box of page.querySelectorAll("pre:not([tabindex]), .highlight-code > *:not([tabindex])")) {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) {
      box.tabIndex = 0;
    }
  }
}

let asked = false;
new MutationObserver(() => {
  if (!asked) {
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      mend();
    });
  }
}).observe(page, { childList: true, subtree: true });
mend();
