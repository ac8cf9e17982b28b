/* The socket of one conversation: opens, comes back after the last event it saw, never gives up
   except where the server says that there is nothing to come back to. What frames mean is not its
   business. */

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;
const PING_EVERY = 25_000;
const SILENCE = 10_000;

const ANONYMOUS = 4401;
const FINAL = new Set([4400, ANONYMOUS, 4404, 4409]);

export class Connection {
  /* handlers: frame(object), state("connecting" | "open" | "lost" | "gone", code) */
  constructor(address, after, handlers) {
    this.address = address;
    this.after = after;
    this.handlers = handlers;
    this.attempts = 0;
    this.socket = null;
    this.timer = 0;
    this.pulse = 0;
    this.deadline = 0;
    this.isOver = false;
    window.addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.hurry();
    });
    window.addEventListener("offline", () => this.abandon());
    window.addEventListener("pagehide", () => this.leave());
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) this.open();
    });
  }

  get isOpen() {
    return this.socket !== null && this.socket.readyState === WebSocket.OPEN;
  }

  open() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.handlers.state("connecting");
    const url = new URL(this.address, window.location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.searchParams.set("after", String(this.after));
    const socket = new WebSocket(url);
    this.socket = socket;
    let greeted = false;
    socket.addEventListener("message", (event) => {
      if (socket !== this.socket) return;
      clearTimeout(this.deadline);
      this.deadline = 0;
      const frame = JSON.parse(event.data);
      if (frame.type === "changes") this.after = frame.seq;
      this.handlers.frame(frame);
      // Only the first changes frame says that the server let us in and that nothing is missing.
      if (!greeted && frame.type === "changes") {
        greeted = true;
        this.attempts = 0;
        this.handlers.state("open");
      }
    });
    socket.addEventListener("close", (event) => {
      if (socket !== this.socket) return;
      this.quiet();
      this.socket = null;
      if (FINAL.has(event.code)) {
        this.isOver = true;
        this.handlers.state("gone", event.code);
      } else this.retry();
    });
    this.pulse = setInterval(() => this.ping(), PING_EVERY);
  }

  /* Whether the frame went out. What must not get lost is kept by its sender until `accepted`. */
  send(frame) {
    if (!this.isOpen) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  ping() {
    if (!this.send({ type: "ping" }) || this.deadline) return;
    this.deadline = setTimeout(() => this.abandon(), SILENCE);
  }

  /* A dead line may take minutes to be noticed by the browser; do not wait for it. */
  abandon() {
    const socket = this.socket;
    this.quiet();
    this.socket = null;
    if (socket) socket.close();
    this.retry();
  }

  retry() {
    this.handlers.state("lost");
    const longest = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** this.attempts);
    this.attempts += 1;
    this.timer = setTimeout(() => this.open(), longest * (0.5 + Math.random() / 2));
  }

  hurry() {
    if (this.timer) this.open();
    else if (this.isOpen) this.ping();
  }

  leave() {
    const socket = this.socket;
    this.quiet();
    clearTimeout(this.timer);
    this.timer = 0;
    this.socket = null;
    if (socket) socket.close();
  }

  quiet() {
    clearInterval(this.pulse);
    clearTimeout(this.deadline);
    this.deadline = 0;
  }
}
