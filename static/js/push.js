/* A browser signs up for pushes, by a button of the page of notifications; nothing asks by itself. What it shows
   for one is worker.js. */

const place = document.querySelector("[data-push]");
const form = place?.querySelector("form");
const status = place?.querySelector("[role=status]");

const knows = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

function show(word) {
  status.textContent = place.dataset[word] ?? "";
  form.hidden = !(word === "asked" || word === "refused");
}

function state() {
  if (!knows) return "none";
  if (Notification.permission === "denied") return "denied";
  return "here" in place.dataset && Notification.permission === "granted" ? "taken" : "asked";
}

function bytesOf(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

async function subscription() {
  const found = await navigator.serviceWorker.register(place.dataset.worker);
  await navigator.serviceWorker.ready;
  // One that stands may be for an older key of the server's, or somebody's who signed in here before.
  await (await found.pushManager.getSubscription())?.unsubscribe();
  return found.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: bytesOf(place.dataset.key),
  });
}

async function signUp() {
  if ((await Notification.requestPermission()) !== "granted") return show(state());
  let given;
  try {
    given = (await subscription()).toJSON();
  } catch {
    return show("refused");
  }
  const data = new FormData(form);
  data.set("endpoint", given.endpoint);
  data.set("p256dh", given.keys.p256dh);
  data.set("auth", given.keys.auth);
  const answer = await fetch(place.dataset.signUp, { method: "POST", body: data });
  // What the page says then is why, or that it worked.
  if (answer.ok || answer.status === 409) location.reload();
  else show("refused");
}

if (place) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    signUp();
  });
  show(state());
}

const guessed = document.querySelector("[data-guess-zone] [name=timezone]");
if (guessed) guessed.value = Intl.DateTimeFormat().resolvedOptions().timeZone || guessed.value;
