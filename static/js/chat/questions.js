/* Answers being made: to questions of the agent, and to a program's call in the program's place.

   What is chosen and typed survives a reload of this tab; when somebody else's answer came first, the
   typed words are handed to `rescue`. The server draws the forms and checks what they say. */

import { recall, remember } from "../kept.js";

export class Questions {
  constructor({ log, store, rescue }) {
    this.log = log;
    this.storeName = `${store}:answers`;
    this.rescue = rescue;
    this.held = new Map(recall(sessionStorage, this.storeName, []));
    this.sent = new Set();
    this.restored = new WeakSet();
    log.addEventListener("input", (event) => this.changed(event.target));
    log.addEventListener("change", (event) => this.changed(event.target));
    this.settle();
  }

  /* Call after every change of the transcript. */
  settle() {
    for (const [call, values] of this.held) {
      const form = this.formOf(call);
      if (form) {
        if (!this.restored.has(form)) restore(form, values);
        this.restored.add(form);
        continue;
      }
      // Its unit may be on an earlier page; only one that is here and asks no more was answered.
      if (!document.getElementById(`u-${call}`)) continue;
      this.held.delete(call);
      this.keep();
      const typed = values.filter(([, value, kind]) => kind === "text" && value.trim());
      if (!this.sent.delete(call) && typed.length > 0) {
        this.rescue(typed.map(([, value]) => value).join("\n\n"));
      }
    }
  }

  /* What is said to the questions of this call, or null where nothing is. */
  answersTo(call) {
    const answers = [...this.formOf(call).querySelectorAll("[data-question]")].map((question) => ({
      chosen: [...question.querySelectorAll("input:checked")].map((input) => input.value),
      text: question.querySelector("textarea")?.value.trim() ?? "",
    }));
    const blank = answers.every((answer) => answer.chosen.length === 0 && !answer.text);
    return blank ? null : { answers };
  }

  /* Our own answer is on its way, or came back. */
  taken(call, sent) {
    if (sent) this.sent.add(call);
    else this.sent.delete(call);
  }

  changed(control) {
    const form = control.closest?.("[data-questions], [data-by-hand]");
    if (!form) return;
    const values = [...form.querySelectorAll("input, textarea")]
      .map((input) =>
        input.localName === "textarea"
          ? [input.name, input.value, "text"]
          : [input.name, input.value, input.checked ? "chosen" : ""],
      )
      .filter(([, value, kind]) => (kind === "text" ? value : kind));
    this.restored.add(form);
    this.held.set(form.dataset.questions ?? form.dataset.byHand, values);
    this.keep();
  }

  keep() {
    remember(sessionStorage, this.storeName, [...this.held]);
  }

  formOf(call) {
    const unit = document.getElementById(`u-${call}`);
    return unit?.querySelector("[data-questions], [data-by-hand]") ?? null;
  }
}

function restore(form, values) {
  for (const input of form.querySelectorAll("input, textarea")) {
    for (const [name, value, kind] of values) {
      if (input.name !== name) continue;
      if (kind === "text" && input.localName === "textarea") input.value = value;
      else if (kind === "chosen" && input.value === value) input.checked = true;
    }
  }
}
