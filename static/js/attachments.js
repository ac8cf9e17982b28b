/* Files on their way into a message: chosen, pasted or dropped, uploaded one after the other, each shown by
   a chip that says how far it is or what is wrong. Sending them with a message is their form's business. */

import { filled } from "./chat/words.js";

export class Attachments {
  /* form holds the button, the list and the token; target takes what is pasted, zone what is dropped;
     query() says for what they are uploaded; changed() follows whatever changes here. */
  constructor({ form, target, zone, query, changed }) {
    this.area = form.querySelector("[data-attachments]");
    this.part = (name) => this.area.querySelector(`[data-${name}]`);
    this.token = form.querySelector("[name=csrfmiddlewaretoken]").value;
    this.target = target;
    this.query = query;
    this.changed = changed;
    this.items = [];
    const button = form.querySelector("[data-attach]");
    const input = this.part("input");
    button.hidden = false;
    button.addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.add(input.files);
      input.value = "";
      target.focus();
    });
    target.addEventListener("paste", (event) => {
      const { files, types } = event.clipboardData;
      // Office programs copy a picture of the text beside the text.
      if (files.length === 0 || types.includes("text/plain")) return;
      event.preventDefault();
      this.add(files);
    });
    zone.addEventListener("dragover", (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      zone.dataset.dragging = "";
    });
    zone.addEventListener("dragleave", (event) => {
      if (!zone.contains(event.relatedTarget)) delete zone.dataset.dragging;
    });
    zone.addEventListener("drop", (event) => {
      delete zone.dataset.dragging;
      if (event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      this.add(event.dataTransfer.files);
      target.focus();
    });
  }

  get busy() {
    return this.items.some((item) => item.state === "waiting" || item.state === "uploading");
  }

  get stuck() {
    return this.items.some((item) => item.state === "failed");
  }

  get empty() {
    return this.items.length === 0;
  }

  /* What is uploaded, as `give` takes it. */
  get done() {
    return this.items.filter((item) => item.state === "done").map((item) => item.kept);
  }

  say(name, values = {}) {
    return filled(this.area.dataset[name], values);
  }

  /* Why nothing is sent yet, for everybody to read; "" for nothing. */
  tell(text) {
    const words = this.part("words");
    words.textContent = text;
    words.hidden = text === "";
    if (text) this.announce(text);
  }

  announce(text) {
    this.part("status").textContent = text;
  }

  add(files) {
    const room = Number(this.area.dataset.most) - this.items.length;
    const taken = [...files].slice(0, Math.max(0, room));
    const left = files.length - taken.length;
    this.tell(left > 0 ? this.say("tooMany", { limit: this.area.dataset.most, n: left }) : "");
    const limit = Number(this.area.dataset.limit);
    for (const file of taken) {
      const picture = file.type.startsWith("image/");
      const item = this.draw({ name: file.name, size: file.size, picture });
      item.file = file;
      if (file.size > limit) this.fail(item, this.say("tooLarge", { limit: size(limit) }), false);
    }
    this.next();
    this.changed();
  }

  /* Files that are uploaded already: those of a draft, or of a message that was refused. */
  give(kept) {
    for (const each of kept) {
      if (this.items.some((item) => item.kept?.id === each.id)) continue;
      this.finish(this.draw(each), each);
    }
    this.changed();
  }

  /* What the server fetches from elsewhere and keeps for the message. Raises nothing: what is wrong is told. */
  async fetch(address) {
    const room = Number(this.area.dataset.most) - this.items.length;
    if (room <= 0) {
      this.tell(this.say("tooMany", { limit: this.area.dataset.most, n: 1 }));
      return;
    }
    this.tell(this.say("fetching"));
    const headers = { "X-CSRFToken": this.token, Accept: "application/json" };
    const response = await fetch(address, { method: "POST", headers }).catch(() => null);
    const answer = await response?.json().catch(() => null);
    this.tell("");
    if (response?.status === 201) this.give(answer.files);
    else if (answer?.error) this.tell(`${answer.error.message} ${answer.error.hint}`.trim());
    else this.tell(this.say(response?.redirected ? "signedOut" : "failed"));
  }

  /* The uploaded files, which are the message's from now on. */
  take() {
    const { done } = this;
    for (const item of this.items) item.element.remove();
    this.items = [];
    this.tell("");
    this.list();
    this.changed();
    return done;
  }

  // --- one file after the other: pictures of one person are opened one at a time -------------------

  next() {
    if (this.items.some((item) => item.state === "uploading")) return;
    const item = this.items.find((each) => each.state === "waiting");
    if (item) this.upload(item);
  }

  upload(item) {
    const request = new XMLHttpRequest();
    const body = new FormData();
    body.append("file", item.file);
    item.request = request;
    item.state = "uploading";
    item.element.dataset.state = "uploading";
    request.open("POST", `${this.area.dataset.address}?${this.query()}`);
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("X-CSRFToken", this.token);
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) item.bar.value = event.loaded / event.total;
    });
    request.addEventListener("load", () => {
      const answer = request.response;
      if (request.status === 201) {
        this.finish(item, answer);
        this.announce(this.say("attached", { name: item.name }));
      } else if (answer?.error) {
        const { message, hint } = answer.error;
        // What the file itself is refused for, it is refused for again.
        this.fail(item, `${message} ${hint}`.trim(), ![400, 413].includes(request.status));
      } else {
        const away = new URL(request.responseURL).pathname !== this.area.dataset.address;
        this.fail(item, this.say(away ? "signedOut" : "failed"), true);
      }
    });
    request.addEventListener("error", () => this.fail(item, this.say("failed"), true));
    request.addEventListener("loadend", () => {
      this.next();
      this.changed();
    });
    request.send(body);
  }

  finish(item, kept) {
    item.state = "done";
    item.kept = kept;
    item.element.dataset.state = "done";
    item.element.toggleAttribute("data-picture", kept.picture);
    item.bar.hidden = true;
    if (kept.picture && "blind" in this.area.dataset) this.remark(item, this.say("unseen"));
  }

  fail(item, problem, again) {
    item.state = "failed";
    item.element.dataset.state = "failed";
    item.bar.hidden = true;
    item.retry.hidden = !again;
    this.remark(item, problem);
    this.announce(this.say("refused", { name: item.name, problem }));
  }

  again(item) {
    item.state = "waiting";
    item.element.dataset.state = "waiting";
    item.bar.value = 0;
    item.bar.hidden = false;
    item.retry.hidden = true;
    this.remark(item, "");
    item.remove.focus();
    this.next();
    this.changed();
  }

  remove(item) {
    const place = this.items.indexOf(item);
    this.items.splice(place, 1);
    item.element.remove();
    if (item.state === "uploading") item.request.abort();
    if (item.kept) this.forget(item.kept.id);
    const beside = this.items[Math.min(place, this.items.length - 1)];
    (beside?.remove ?? this.target).focus();
    this.announce(this.say("removed", { name: item.name }));
    this.tell("");
    this.list();
    this.next();
    this.changed();
  }

  /* Nobody waits for it: what is not taken back goes by itself after a day. */
  forget(id) {
    const headers = { "X-CSRFToken": this.token, Accept: "application/json" };
    const address = this.area.dataset.takeBack.replace("ID", id);
    fetch(address, { method: "POST", headers }).catch(() => {});
  }

  // --- chips ---------------------------------------------------------------------------------------

  draw({ name, size: bytes, picture }) {
    const element = this.part("chip").content.firstElementChild.cloneNode(true);
    const find = (selector) => element.querySelector(selector);
    const item = {
      name,
      element,
      state: "waiting",
      bar: find("progress"),
      problem: find(".chip-problem"),
      retry: find(".chip-retry"),
      remove: find(".chip-remove"),
    };
    element.dataset.state = "waiting";
    element.toggleAttribute("data-picture", picture);
    find(".chip-name").textContent = name;
    find(".chip-name").title = name;
    find(".chip-size").textContent = size(bytes);
    item.bar.setAttribute("aria-label", this.say("progress", { name }));
    item.retry.setAttribute("aria-label", this.say("retry", { name }));
    item.remove.querySelector(".visually-hidden").textContent = this.say("remove", { name });
    item.remove.addEventListener("click", () => this.remove(item));
    item.retry.addEventListener("click", () => this.again(item));
    this.items.push(item);
    this.part("chips").append(element);
    this.list();
    return item;
  }

  remark(item, text) {
    item.problem.textContent = text;
    item.problem.hidden = text === "";
  }

  list() {
    this.part("chips").hidden = this.empty;
  }
}

function size(bytes) {
  const steps = ["byte", "kilobyte", "megabyte", "gigabyte"];
  let step = 0;
  let value = bytes;
  for (; value >= 1024 && step < steps.length - 1; step += 1) value /= 1024;
  const form = { style: "unit", unit: steps[step], unitDisplay: step ? "short" : "long" };
  const language = document.documentElement.lang || "en";
  return new Intl.NumberFormat(language, { ...form, maximumFractionDigits: 1 }).format(value);
}
