// The service worker: pages once visited, the glossary and the due cards work without a
// network. The server puts VERSION and FILES before it, so that it renews itself.
const [PAGES, SHELF] = ["pages", "static"];
const [MOST, PATIENCE] = [120, 8000]; // pages kept, where a mock exam has 50; milliseconds
const ROOT = new URL("./", location).pathname; // "/", or the prefix behind a proxy
const [UNREACHABLE, DESK] = [`${ROOT}unreachable`, `${ROOT}flashcards`];
const READY = [`${DESK}/offline`, `${ROOT}glossary`]; // once the learner uses cards
const inside = (path) => path.slice(ROOT.length - 1);
const NEVER = /^\/((api|authoring|settings|continue|healthz)\b|exams\/sittings\/\d+\/(?!questions)|flashcards$)/;

self.addEventListener("install", (event) => {
  self.skipWaiting();
  const files = FILES.map((file) => ROOT + file.slice(1));
  event.waitUntil(caches.open(SHELF).then((shelf) => shelf.addAll([UNREACHABLE, ...files])));
});
self.addEventListener("activate", (event) => event.waitUntil(begin()));
self.addEventListener("fetch", (event) => {
  const { method, mode, url, headers } = event.request;
  const address = new URL(url);
  if (address.origin !== location.origin) return;
  if (method === "POST" && /^\/flashcards\/.*\/reviews$/.test(inside(address.pathname))) event.waitUntil(soon());
  const form = method === "POST" && mode === "navigate" && !/multipart/.test(headers.get("content-type"));
  if (form) event.respondWith(fetch(event.request).catch(() => caches.match(UNREACHABLE)));
  if (method !== "GET") return;
  if (inside(address.pathname).startsWith("/static/")) event.respondWith(file(event.request));
  else if (mode === "navigate") event.respondWith(page(event, address));
});

// A page names others that belong to it: the questions of a mock exam.
self.addEventListener("message", (event) => event.waitUntil(fetched(event.data)));
async function fetched(paths) {
  const pages = await caches.open(PAGES);
  for (const path of paths) if (!(await pages.match(path))) await keep(new URL(path, location));
}

async function begin() {
  await self.registration.navigationPreload?.enable();
  await self.clients.claim();
  await trim(SHELF, 200, []);
  if (await (await caches.open(PAGES)).match(READY[0])) await ready();
  for (const { url } of await self.clients.matchAll()) await keep(new URL(url)); // it came without us
}

// Network first; what was kept where nothing comes, or nothing in time. No file to save is copied into memory.
async function page(event, address) {
  const asked = ask(event);
  event.waitUntil(asked.then((answer) => keep(address, copy(answer))).catch(() => {}));
  const late = new Promise((_, give_up) => setTimeout(give_up, PATIENCE));
  return Promise.race([asked, late]).catch(
    async () => (await kept(address)) || asked.catch(() => caches.match(UNREACHABLE)),
  );
}
const copy = (answer) => (answer.headers.has("content-disposition") ? new Response(null, answer) : answer.clone());
async function ask(event) {
  const answer = (await event.preloadResponse) || (await fetch(event.request));
  if (answer.status > 501 && answer.status < 505 && !answer.headers.has("x-request-id")) throw new Error("no answer");
  return answer;
}

// A hashed address names its content for ever.
async function file(request) {
  const shelf = await caches.open(SHELF);
  const known = await shelf.match(request, { ignoreVary: true });
  if (known) return known;
  const answer = await fetch(request);
  if (/immutable/.test(answer.headers.get("cache-control"))) await shelf.put(request, answer.clone());
  return answer;
}

// One after the other, asking included: nothing of a former learner comes after the clearing.
let line = Promise.resolve();
async function keep(address, answer) {
  const { pathname } = address;
  const got = () => {
    if (!answer && NEVER.test(inside(pathname))) throw new Error("this is never kept");
    return answer || fetch(address, { signal: AbortSignal.timeout(PATIENCE) });
  };
  await (line = line.then(got).then((given) => put(address, given)).catch(() => {}));
  if (pathname === DESK) await ready();
}
async function put(address, { headers, status, redirected, body }) {
  if (headers.has("x-new-browser")) await caches.delete(PAGES); // another learner's from here on
  if (status !== 200 || redirected || NEVER.test(inside(address.pathname))) return;
  if (!/html/.test(headers.get("content-type")) || /no-store/.test(headers.get("cache-control"))) return;
  const said = new Headers(headers);
  for (const name of ["content-encoding", "content-length", "vary"]) said.delete(name);
  said.set("x-kept", new Date().toISOString());
  const pages = await caches.open(PAGES);
  await pages.delete(address);
  await pages.put(address, new Response(body, { headers: said }));
  await trim(PAGES, MOST, READY);
}
async function kept(address) {
  if (address.pathname === DESK) return Response.redirect(READY[0]);
  const found = await (await caches.open(PAGES)).match(address);
  if (!found) return null;
  const when = new Date(found.headers.get("x-kept"));
  const day = when.toLocaleString("en-US", { day: "numeric", month: "long", hour: "numeric", minute: "2-digit" });
  const mark =
    `<div id="kept" class="msg warn" data-age="${(Date.now() - when) / 1000}">` +
    '<svg class="i" aria-hidden="true"><use href="#i-off"/></svg>' +
    `<p><b>Kept copy of ${day}.</b> The server does not answer.</p></div>`;
  const text = (await found.text()).replace('<div id="kept"></div>', mark);
  return new Response(text, { headers: found.headers });
}
async function trim(name, most, spared) {
  const cache = await caches.open(name);
  const old = (await cache.keys()).filter(({ url }) => !spared.includes(new URL(url).pathname));
  for (const request of old.slice(0, -most)) await cache.delete(request);
}

// Grades come in quick succession: the cards are fetched anew once for many.
let waiting = null;
const soon = () =>
  (waiting ??= new Promise((go_on) => setTimeout(go_on, 10000)).then(ready).finally(() => (waiting = null)));
async function ready() {
  for (const path of READY) await keep(new URL(path, location));
}
