/* Files by name: `@` and some letters offer the files of the conversation, to be chosen by key or click.
   Which there are is the server's to say; what is chosen is only text in the box. */

import { words } from "./words.js";

const TYPING = /(?:^|\s)@([^\s@]{0,100})$/;
const PAUSE = 120;

export class Mentions {
  /* box: where is typed; list: the empty `ul` for what is offered; address: where names are asked for;
     typed() follows a choice. */
  constructor({ box, list, address, announce, typed }) {
    Object.assign(this, { box, list, address, announce, typed });
    this.timer = 0;
    this.asked = 0;
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

  get begun() {
    const { selectionStart, selectionEnd, value } = this.box;
    if (selectionStart !== selectionEnd) return null;
    return TYPING.exec(value.slice(Math.max(0, selectionStart - 120), selectionStart));
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
    const url = new URL(this.address, window.location.href);
    url.searchParams.set("q", begun[1]);
    const answer = await fetch(url, { headers: { "X-Requested-With": "fetch" } }).catch(() => null);
    if (turn !== this.asked || !answer?.ok || answer.redirected || !this.begun) return;
    this.offer((await answer.json()).paths);
  }

  offer(paths) {
    this.list.replaceChildren(
      ...paths.map((path, place) => {
        const option = document.createElement("li");
        option.id = `${this.list.id}-${place}`;
        option.setAttribute("role", "option");
        option.textContent = path;
        return option;
      }),
    );
    this.list.hidden = paths.length === 0;
    if (paths.length === 0) return this.close();
    this.mark(0);
    this.announce(words.count("filesOffered", paths.length));
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
      this.choose(options[place]);
    } else return;
    event.preventDefault();
  }

  choose(option) {
    const begun = this.begun;
    if (begun) {
      const end = this.box.selectionStart;
      this.box.setRangeText(`${option.textContent} `, end - begun[1].length, end, "end");
      this.typed();
    }
    this.close();
  }

  close() {
    clearTimeout(this.timer);
    this.asked += 1;
    this.list.hidden = true;
    this.list.replaceChildren();
    this.box.removeAttribute("aria-activedescendant");
  }
}
