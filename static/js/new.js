/* The form in which a conversation begins: files go with the first message. */

import { Attachments } from "./attachments.js";

const form = document.getElementById("new-form");
if (form) {
  const environment = form.querySelector("[name=environment]");
  let held = false;
  const files = new Attachments({
    form,
    target: form.querySelector("textarea"),
    zone: form,
    query: () => new URLSearchParams({ environment: environment.value }),
    changed: settle,
  });
  files.give(JSON.parse(files.area.dataset.kept));

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

  function settle() {
    if (!held || files.busy) return;
    held = false;
    form.requestSubmit();
  }
}
