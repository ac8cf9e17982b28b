/* The form in which a conversation begins: Enter sends it, files go with the first message, and folded
   choices say what is chosen. */

import { Attachments } from "./attachments.js";
import { pressed } from "./enter.js";
import "./modelchoice.js";

const form = document.getElementById("new-form");
if (form) {
  const environment = form.querySelector("[name=environment]");
  const box = form.querySelector("textarea");
  let held = false;
  const files = new Attachments({
    form,
    target: box,
    zone: form,
    query: () => new URLSearchParams({ environment: environment.value }),
    changed: settle,
  });
  files.give(JSON.parse(files.area.dataset.kept));

  box.addEventListener("keydown", (event) => {
    if (!pressed(event)) return;
    event.preventDefault();
    // A conversation without a message is begun with the button.
    if (box.value.trim() || !files.empty) form.requestSubmit();
  });

  form.addEventListener("submit", (event) => {
    held = files.busy;
    if (files.busy || files.stuck) {
      event.preventDefault();
      files.tell(files.say(files.stuck ? "stuck" : "waits"));
    }
  });

  form.addEventListener("formdata", (event) => {
    for (const file of files.done) event.formData.append("files", file.id);
  });

  form.addEventListener("change", sayChosen);
  // Another agent brings its own switches.
  form.addEventListener("htmx:afterSettle", sayChosen);
  sayChosen();

  function settle() {
    if (!held || files.busy) return;
    held = false;
    form.requestSubmit();
  }

  function sayChosen() {
    for (const fold of form.querySelectorAll("details[data-fold]")) {
      const chosen = [...fold.querySelectorAll("input:checked:not([value=''])")].map(nameOf);
      const option = fold.querySelector("select:not([name=other_provider])")?.selectedOptions[0];
      if (option) chosen.push(option.textContent.trim());
      fold.querySelector("[data-chosen]").textContent = chosen.join(", ") || fold.dataset.none || "";
    }
  }
}

function nameOf(input) {
  const label = input.labels[0];
  return (label.querySelector(".choice-name") ?? label).firstChild.textContent.trim();
}
