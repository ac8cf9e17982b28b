/* What a browser runs for a push, also when no page is open: it shows what the server said, and a click opens
   the page. It fetches nothing and keeps nothing (`notices/pushwords.py` says what comes). */

const SITE = "Agentsite";
/* Takes the permission away from who shows nothing for a push. */
const ALWAYS_SHOWS = /^((?!chrom|android).)*safari/i.test(navigator.userAgent);

self.addEventListener("push", (event) => {
  event.waitUntil(show(read(event.data)));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.url ?? "/"));
});

function read(data) {
  try {
    return data?.json() ?? {};
  } catch {
    return {};
  }
}

function pages() {
  return self.clients.matchAll({ type: "window", includeUncontrolled: true });
}

async function show({ title = SITE, body = "", url = "/", tag, away = false, lang, dir }) {
  if (away && !ALWAYS_SHOWS) {
    const looking = (await pages()).some((page) => page.visibilityState === "visible");
    if (looking) return;
  }
  await self.registration.showNotification(title, { body, tag, lang, dir, data: { url } });
}

async function open(url) {
  const wanted = new URL(url, self.registration.scope);
  // Only ever a page of this site.
  if (wanted.origin !== self.location.origin) return;
  const there = (await pages()).find((page) => new URL(page.url).pathname === wanted.pathname);
  if (there) await there.focus();
  else await self.clients.openWindow(wanted.href);
}
