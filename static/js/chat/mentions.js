/* What is offered while one types: files behind `@`, commands behind a `/` at the beginning; chosen by key or
   click. Which there are is the server's to say. A file that is chosen is only text in the box; what others' servers
   have is fetched and attached; a command presses what is on the page, or leads somewhere. */

import { words } from "./words.js";

const FILE = /(?:^|\s)@([^\s@]{0,100})$/;
const COMMAND = /^\/([\w.:-]{0,100})$/;
const PAUSE = 120;
const PATIENCE = 3000;

export class Mentions {
  /* box: where is typed; list: the empty `ul` for what is offered, with the addresses where that is asked for;
     typed() follows a choice, attach(address) has what it names attached. */
  constructor({ box, list, announce, typed, attach }) {
    Object.assign(this, { box, list, announce, typed, attach });
    this.timer = 0;
    this.asked = 0;
    this.offered = [];
    this.offeredFor = "";
    box.setAttribute("aria-autocomplete", "list");
    box.setAttribute("aria-controls", list.id);
    box.addEventListener("input", () => this.look());
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("blur", () => this.close());
    // Before the blur that would close it.
    list.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const option = event.target.closest("[role=option]");
      if (option) this.choose(option);
    });
  }

  /* What is being typed: of which kind, and its beginning without the sign. */
  get begun() {
    const { selectionStart, selectionEnd, value } = this.box;
    if (selectionStart !== selectionEnd) return null;
    const before = value.slice(Math.max(0, selectionStart - 120), selectionStart);
    const command = selectionStart === value.length && COMMAND.exec(value);
    if (command) return { kind: "commands", text: command[1] };
    const file = FILE.exec(before);
    return file && { kind: "files", text: file[1] };
  }

  look() {
    clearTimeout(this.timer);
    if (this.begun) this.timer = setTimeout(() => this.ask(), PAUSE);
    else this.close();
  }

  async ask() {
    const begun = this.begun;
    if (!begun) return this.close();
    const turn = ++this.asked;
    const found = await this.found(begun);
    if (turn !== this.asked || !found || !this.begun) return;
    const { paths, attachables, commands } = found;
    this.offeredFor = begun.text;
    if (commands) return this.offer(commands.filter(does).map(named));
    const files = paths.map((path) => ({ label: path, path }));
    this.offer([...files, ...attachables.map((each) => ({ ...each, attachable: true }))]);
  }

  /* What the server has for it; null where it cannot be asked. */
  async found({ kind, text }) {
    const url = new URL(this.list.dataset[kind], window.location.href);
    url.searchParams.set("q", text);
    const signal = AbortSignal.timeout(PATIENCE);
    const headers = { "X-Requested-With": "fetch" };
    const answer = await fetch(url, { headers, signal }).catch(() => null);
    return answer?.ok && !answer.redirected ? answer.json().catch(() => null) : null;
  }

  /* For whoever is quicker than the list: carries out the command that this whole text names. Whether it is
     none, and is to be sent. */
  async isWords(text) {
    const name = COMMAND.exec(text)?.[1];
    if (!name) return true;
    const found = await this.found({ kind: "commands", text: name });
    const command = found?.commands?.find((each) => each.name === name && does(each));
    if (!command || this.box.value.trim() !== text) return !command;
    this.close();
    this.box.value = command.text;
    this.typed();
    carryOut(command);
    return false;
  }

  offer(offered) {
    this.offered = offered;
    this.list.replaceChildren(
      ...offered.map(({ label, about }, place) => {
        const option = document.createElement("li");
        option.id = `${this.list.id}-${place}`;
        option.setAttribute("role", "option");
        option.textContent = label;
        if (about) {
          const told = document.createElement("span");
          told.className = "offered-about";
          told.textContent = about;
          option.append(" ", told);
        }
        return option;
      }),
    );
    this.list.hidden = offered.length === 0;
    if (offered.length === 0) return this.close();
    this.mark(0);
    const kind = offered[0].command ? "commandsOffered" : "filesOffered";
    this.announce(words.count(kind, offered.length));
  }

  mark(place) {
    const options = [...this.list.children];
    const marked = options.at(place % options.length);
    for (const option of options) option.setAttribute("aria-selected", String(option === marked));
    this.box.setAttribute("aria-activedescendant", marked.id);
    marked.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    if (this.list.hidden || event.isComposing) return;
    const options = [...this.list.children];
    const place = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
    if (event.key === "ArrowDown") this.mark(place + 1);
    else if (event.key === "ArrowUp") this.mark(place - 1);
    else if (event.key === "Escape") this.close();
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) {
      // Quicker than the list: what it offers for what stood there before is not what is meant.
      if (!this.stillFits(this.offered[place])) return this.close();
      this.choose(options[place]);
    } else return;
    event.preventDefault();
  }

  stillFits({ label }) {
    const typed = this.begun?.text ?? "";
    return typed === this.offeredFor || label.toLowerCase().includes(typed.toLowerCase());
  }

  choose(option) {
    const { begun } = this;
    const chosen = this.offered[[...this.list.children].indexOf(option)];
    this.close();
    if (!begun) return;
    if (chosen.attachable) {
      const end = this.box.selectionStart;
      this.box.setRangeText("", end - begun.text.length - 1, end, "end");
      this.typed();
      this.attach(chosen.address);
      return;
    }
    if (chosen.path !== undefined) {
      const end = this.box.selectionStart;
      this.box.setRangeText(`${chosen.path} `, end - begun.text.length, end, "end");
      this.typed();
      return;
    }
    this.box.value = chosen.command.text;
    this.typed();
    carryOut(chosen.command);
  }

  close() {
    clearTimeout(this.timer);
    this.asked += 1;
    this.list.hidden = true;
    this.list.replaceChildren();
    this.box.removeAttribute("aria-activedescendant");
  }
}

function named(command) {
  return { label: `/${command.name}`, about: command.about, command };
}

/* Whether there is anything that it would do here and now. */
function does({ press }) {
  return !press || control(press) !== undefined;
}

function control(name) {
  const found = document.querySelectorAll(`[data-command="${name}"], [data-action="${name}"]`);
  return [...found].filter((each) => !each.disabled && each.checkVisibility()).at(-1);
}

function carryOut({ press, address, dialog }) {
  // After the key that chose it: what it opens must not hear of it.
  if (press) {
    setTimeout(() => {
      const pressed = control(press);
      pressed?.focus({ preventScroll: true });
      pressed?.click();
    });
  }
  if (dialog) window.htmx.ajax("GET", dialog, { target: "#dialog", swap: "innerHTML" });
  else if (address) window.location.assign(address);
}
