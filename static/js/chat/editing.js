/* Changing a message, one that still waits or one that is said anew: its text becomes a box in place.

   What is typed lives here and in the tab's storage, never in what the server draws: a unit drawn
   anew takes its box back, and when the message has left the queue the text is handed to `rescue`. */

import { pressed } from "../enter.js";
import { recall, remember } from "../kept.js";
import { tooLong } from "./composer.js";
import { words } from "./words.js";

export class Editing {
  /* save(message, content, { done, failed, files }) → whether it went out; `files`: they go back as well;
     rescue(text);
     declined(problem) when it cannot go out; `opener` is the action that begins it; with `leaves`, the
     message goes from the page when its new words are taken */
  constructor({ queue, store, characters, save, rescue, declined, opener = "edit", leaves = false }) {
    this.queue = queue;
    this.storeName = `${store}:${opener}s`;
    this.opener = opener;
    this.leaves = leaves;
    this.save = save;
    this.rescue = rescue;
    this.characters = characters;
    this.declined = declined;
    this.editors = new Map();
    for (const [message, original, text] of recall(sessionStorage, this.storeName, [])) {
      this.editors.set(message, this.make(message, original, text));
    }
    this.settle(null);
  }

  begin(message) {
    const unit = this.waiting(message);
    if (!unit) return;
    if (!this.editors.has(message)) {
      const text = textOf(unit);
      this.editors.set(message, this.make(message, text, text));
    }
    const editor = this.editors.get(message);
    attach(editor, unit);
    editor.box.focus();
    editor.box.setSelectionRange(editor.box.value.length, editor.box.value.length);
  }

  /* Call after every change, with what had the focus before it. */
  settle(focused) {
    for (const [message, editor] of this.editors) {
      const unit = this.waiting(message);
      const wasFocused = editor.form.contains(focused);
      if (unit) {
        attach(editor, unit);
        if (wasFocused) focused.focus({ preventScroll: true });
        continue;
      }
      if (this.leaves && editor.box.readOnly) continue; // what became of it is not known yet
      this.drop(message);
      const text = editor.box.value;
      const taken = document.getElementById(`u-${message}`);
      const isNew = text !== editor.original && !(taken && textOf(taken) === text.trim());
      if (isNew && text.trim()) this.rescue(text);
      if (wasFocused) document.querySelector("#composer textarea")?.focus({ preventScroll: true });
    }
  }

  waiting(message) {
    const unit = document.getElementById(`u-${message}`);
    return unit && this.queue?.contains(unit) ? unit : null;
  }

  submit(message) {
    const editor = this.editors.get(message);
    const content = editor.box.value;
    if (editor.box.readOnly) return;
    if (content === editor.original) {
      this.close(message);
      return;
    }
    if (!content.trim()) {
      editor.box.focus();
      return;
    }
    const problem = tooLong(content, this.characters);
    if (problem) {
      this.declined(problem);
      editor.box.focus();
      return;
    }
    // Words typed after this point would be in neither place.
    const files = !editor.form.querySelector("input:checked");
    editor.box.readOnly = this.save(message, content, {
      files,
      done: () => this.close(message),
      failed: () => {
        editor.box.readOnly = false;
        this.settle(null);
      },
    });
  }

  close(message) {
    const editor = this.editors.get(message);
    if (!editor) return;
    const unit = editor.form.closest("[data-order]");
    const wasFocused = editor.form.contains(document.activeElement);
    this.drop(message);
    if (wasFocused) unit?.querySelector(`[data-action="${this.opener}"]`)?.focus({ preventScroll: true });
  }

  drop(message) {
    const { form } = this.editors.get(message);
    form.closest("[data-order]")?.classList.remove("editing");
    form.remove();
    this.editors.delete(message);
    this.keep();
  }

  keep() {
    const typed = [...this.editors].filter(([, editor]) => editor.box.value !== editor.original);
    remember(
      sessionStorage,
      this.storeName,
      typed.map(([message, editor]) => [message, editor.original, editor.box.value]),
    );
  }

  make(message, original, text) {
    const form = document.createElement("form");
    form.className = "message-editor";
    const box = document.createElement("textarea");
    box.value = text;
    box.rows = Math.min(8, text.split("\n").length);
    box.setAttribute("aria-label", words.say("editedText"));
    const save = button("submit", "button small primary", words.say(this.leaves ? "send" : "save"));
    const cancel = button("button", "button small", words.say("cancel"));
    const hint = document.createElement("span");
    hint.className = "hint";
    hint.id = `edit-hint-${message}`;
    hint.textContent = words.say(this.leaves ? "resendHint" : "editHint");
    box.setAttribute("aria-describedby", hint.id);
    const row = document.createElement("div");
    row.className = "button-row";
    row.append(save, cancel, hint);
    const leave = this.leaves ? leaveFiles(message) : null;
    form.append(box, ...(leave ? [leave] : []), row);
    box.addEventListener("input", () => this.keep());
    box.addEventListener("keydown", (event) => this.key(event, message));
    cancel.addEventListener("click", () => this.close(message));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit(message);
    });
    return { form, box, original };
  }

  key(event, message) {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape" && !event.defaultPrevented) {
      // What was sent is on its way; only what was not can be taken back.
      event.preventDefault();
      if (!event.target.readOnly) this.close(message);
      return;
    }
    if (!pressed(event)) return;
    event.preventDefault();
    this.submit(message);
  }
}

function attach(editor, unit) {
  unit.classList.add("editing");
  if (editor.form.parentElement !== unit) unit.append(editor.form);
}

function textOf(unit) {
  const texts = [...unit.querySelectorAll(".pieces pre.plain")].map((part) => part.textContent);
  return texts.join("\n\n").trim();
}

/* The choice beside an edit of what was sent; null where files never go back. */
function leaveFiles(message) {
  if (!words.say("leaveFiles")) return null;
  const field = document.createElement("div");
  field.className = "field";
  const box = document.createElement("input");
  box.type = "checkbox";
  box.id = `leave-files-${message}`;
  const label = document.createElement("label");
  label.htmlFor = box.id;
  label.textContent = words.say("leaveFiles");
  field.append(box, label);
  return field;
}

function button(type, className, label) {
  const made = document.createElement("button");
  made.type = type;
  made.className = className;
  made.textContent = label;
  return made;
}
