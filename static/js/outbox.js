// What the server could not be told waits here, in this browser, and is sent once and
// in order. An entry says what it is, where it goes and what is sent; its name sorts.
// Beside it stands which showing of a card was graded, so that none is shown again.
(() => {
  "use strict";
  const [PREFIX, root] = ["outbox.", new URL("../..", document.currentScript.src).pathname];
  const waits = [5, 10, 20, 40, 60]; // seconds until the next try
  const page = `${Date.now()}.${Math.random()}`;
  const own = (to) => `${PREFIX}${to}~${page}`; // of an answer of this page
  let [timer, tries] = [0, 0];
  let why = ""; // it was not taken, in the words of the server
  let sent = []; // of what had to wait
  let lost = false;

  const read = (key) => JSON.parse(localStorage.getItem(key));
  const keys = () => Object.keys(localStorage).filter((k) => k.startsWith(PREFIX)).sort();
  const waiting = () => keys().filter((key) => !read(key)?.refusal);
  const graded = () => read("graded") || {};
  const note = (grades) => // the newest of them
    localStorage.setItem("graded", JSON.stringify(Object.fromEntries(Object.entries(grades).slice(-500))));

  const some = (items) =>
    ["grade", "answer"]
      .map((what) => [items.filter((item) => item.what === what).length, what])
      .filter(([count]) => count)
      .map(([count, what]) => `${count} ${what}${count === 1 ? "" : "s"}`)
      .join(" and ");
  const paint = () => {
    const wait = waiting().map(read).filter(Boolean);
    const told = keys().filter((key) => read(key)?.refusal);
    const said = [...new Set(told.map((key) => read(key).refusal))].map((refusal) => {
      const same = told.filter((key) => read(key).refusal === refusal);
      const kind = read(same[0]).saved ? ["warn", "tight", "Saved."] : ["bad", "alert", "Not counted:"];
      const away = () => { same.forEach((key) => localStorage.removeItem(key)); paint(); };
      return notice(...kind, same.length > 1 ? `${refusal} (${same.length} times)` : refusal, "Put away", away);
    });
    if (wait.length)
      said.push(notice("warn", "off", why || "No answer from the server.",
        `${some(wait)} ${wait.length === 1 ? "waits" : "wait"} in this browser to be sent.` +
          (document.querySelector("[data-left]") ? " The clock goes on." : ""), "Try now", () => send()));
    else if (sent.length) said.push(notice("good", "check", "Back.", `${some(sent)} saved.`));
    document.getElementById("outbox").replaceChildren(...said);
  };

  const post = async ({ to, body, at }) =>
    fetch(to, {
      method: "POST",
      headers: { "HX-Request": "true" },
      body: new URLSearchParams([...body, ["age", Math.max(1, Date.now() - at)]]),
      signal: AbortSignal.timeout(20000),
    });
  // Only this server names its answers; a proxy that asks for a password does not.
  const isFinal = (answer) =>
    answer.headers.has("x-request-id") && answer.status < 500 &&
    ![408, 425, 429].includes(answer.status);
  const words = (html, which) =>
    new DOMParser().parseFromString(html, "text/html").querySelector(which)?.textContent.replace(/\s+/g, " ").trim();
  const refusal = ({ status }, html) =>
    words(html, "[role=alert] p, [role=alert]")?.replace("Not counted:", "").trim() || `${status}`;
  // What has to be told of an answer that was taken, unless its own page does so.
  const told = ({ what, to }, html) =>
    (what === "answer" && !document.querySelector(`form[action="${to}"]`) && words(html, "[data-told]")) || "";
  const settle = (key, text, { refused, saved }) => {
    if (localStorage.getItem(key) !== text) return false; // changed meanwhile: send that too
    if (refused) localStorage.setItem(key, JSON.stringify({ ...JSON.parse(text), refusal: refused, saved }));
    else localStorage.removeItem(key);
    return true;
  };
  // Tabs see each other's storage late and would send anew what one has just sent. A cache
  // is the same for all at once: in it stands what became of the last fifty entries.
  const drain = async () => {
    const ledger = await self.caches?.open("sent").catch(() => null);
    for (let key; (key = waiting()[0]); ) {
      const text = localStorage.getItem(key);
      const item = JSON.parse(text);
      const name = `/${key}/${item.at}`;
      const known = await (await ledger?.match(name))?.json();
      if (known !== undefined) { settle(key, text, known); continue; }
      const answer = await post(item).catch(() => null);
      const html = (await answer?.text().catch(() => "")) ?? "";
      if (!answer || !isFinal(answer)) {
        lost = true;
        why = answer?.headers.has("x-request-id") ? refusal(answer, html).replace(/^\d+$/, "") : "";
        const after = Math.min(300, Number(answer?.headers.get("retry-after")) || 0);
        timer = setTimeout(send, 1000 * Math.max(after, waits[Math.min(tries++, waits.length - 1)]));
        return;
      }
      tries = 0;
      const outcome = { refused: answer.ok ? told(item, html) : refusal(answer, html), saved: answer.ok };
      await ledger?.put(name, Response.json(outcome)).catch(() => {});
      for (const old of (await ledger?.keys())?.slice(0, -50) ?? []) await ledger.delete(old);
      if (!settle(key, text, outcome)) continue;
      if (answer.ok && lost && !item.quiet) sent.push(item);
      const detail = { to: item.to, html, own: key === own(item.to) && item.body };
      document.dispatchEvent(new CustomEvent("sent", { detail }));
    }
  };
  // One tab sends, the others wait and find nothing; without locks a token that comes
  // twice is counted once.
  const send = async () => {
    clearTimeout(timer);
    if (!waiting().length) return paint();
    const slow = setTimeout(paint, 400);
    await (navigator.locks ? navigator.locks.request("outbox", drain) : drain());
    clearTimeout(slow);
    paint();
    lost &&= waiting().length > 0;
    const stuck = document.querySelector("[data-stuck]");
    if (stuck && !waiting().length) location.assign(stuck.dataset.stuck);
  };

  window.outbox = {
    graded,
    note,
    // An answer takes the place of what this page kept before, and of no other page's:
    // each says what was changed on it.
    keep(item) {
      const answer = item.what === "answer";
      const name = answer ? own(item.to) : `${PREFIX}${Date.now()}.${Math.random()}`;
      const body = answer ? item.body : Object.entries(item.body);
      localStorage.setItem(name, JSON.stringify({ ...item, body, at: Date.now() }));
      if (item.showing) note({ ...graded(), [item.showing]: item.body.rating });
      sent = [];
      return send();
    },
    waits: (to) => waiting().filter((key) => key.startsWith(`${PREFIX}${to}~`)).map(read)
      .sort((a, b) => a.at - b.at).at(-1)?.body,
    mine: (to) => read(own(to))?.body,
    forget: (to, before) => read(own(to))?.at < before && localStorage.removeItem(own(to)),
    // A form whose request got no answer: <form data-later="grade">. What stands in its
    // place meanwhile is the template that the form names.
    take({ elt, requestConfig: { path, formData, triggeringEvent } }) {
      if (elt.dataset.later === "answer") return this.keep({ what: "answer", to: path, body: [...formData] });
      const body = Object.fromEntries(formData);
      body.given = Math.round(Date.now() - performance.now() + triggeringEvent.timeStamp);
      delete body.since; // by the clock of the server
      this.keep({ what: "grade", to: path, body, showing: `${body.who}/${body.token}` });
      const instead = document.getElementById("later").content.cloneNode(true);
      if (!navigator.serviceWorker?.controller) instead.querySelector("a")?.remove();
      elt.replaceWith(instead);
    },
  };
  // Cards that were graded with a network are not shown once more without one.
  document.addEventListener("htmx:afterRequest", ({ detail: { successful, requestConfig } }) => {
    if (requestConfig.elt.dataset.later !== "grade" || !successful) return;
    const { who, token, rating } = Object.fromEntries(requestConfig.formData);
    note({ ...graded(), [`${who}/${token}`]: Number(rating) });
  });
  addEventListener("online", () => { tries = 0; send(); });
  addEventListener("storage", ({ key, oldValue, newValue }) => {
    if (!key?.startsWith(PREFIX)) return;
    paint();
    const { to, body } = JSON.parse(oldValue) ?? {};
    const done = key === own(to) && (!newValue || JSON.parse(newValue).refusal); // by another tab
    if (done) document.dispatchEvent(new CustomEvent("sent", { detail: { to, html: "", own: body } }));
  });
  addEventListener("load", () => {
    navigator.serviceWorker?.register(`${root}sw.js`);
    lost = waiting().length > 0;
    send();
  });
})();
