// Questions without reloading: the next ones are fetched ahead, answers are sent in the
// background and again until the server has them. The page works without this script too.

import { action, card, classOf, element, fold, listen, maySkip, mayUndo, t, text } from "./cards.js";

const main = document.getElementById("vote");
const base = main.dataset.base;
const status = document.getElementById("status");
const snack = document.getElementById("snack");
const boxName = `outbox ${base}`;
const MOMENT = 300;    // milliseconds: two clicks of a double click are closer together
const REMAINS = 5000;  // milliseconds for which the last answer is named
const TAUGHT = 3;      // answers after which swiping needs no hint

let queue = [];        // open questions; the first is on screen
let outbox = load();   // answers that the server has not confirmed
let undoable = null;   // the question whose answer can be taken back
let shownAt = 0;
let turns = 0;         // how many questions were shown
let taking = false;    // whether the one on screen takes input yet
let heard = true;      // whether everything that must be played was
let lately = "";       // what was done to the question before
let lastPlace = -1, lastAt = 0, hiding = null;
let order = [];        // while ranking: positions, best first
let done = 0, of = null;
let sending = null;

function load() {
  try { return JSON.parse(sessionStorage.getItem(boxName)) ?? []; } catch { return []; }
}

function keep() {
  try { sessionStorage.setItem(boxName, JSON.stringify(outbox)); } catch { /* private window */ }
}

async function call(path, body) {
  const options = body && {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  const reply = await fetch(base + path, options);
  if (reply.status >= 500 || reply.status === 429) throw new TypeError(`status ${reply.status}`);
  return { ok: reply.ok, status: reply.status, ...(await reply.json()) };
}

// again and again, slower and slower, at once when the connection is back
async function insist(path, body) {
  for (let wait = 300; ; wait = Math.min(2 * wait, 5000)) {
    try {
      const reply = await call(path, body);
      if (status.dataset.why === "offline") say("");
      return reply;
    } catch {
      if (wait > 300) say(t.offline, "offline");
      await new Promise((resume) => {
        const timer = setTimeout(resume, wait);
        addEventListener("online", () => { clearTimeout(timer); resume(); }, { once: true });
      });
    }
  }
}

function say(message, why = "") {
  status.textContent = message;
  status.dataset.why = why;
  status.classList.toggle("unseen", why === "unseen");
}

// ---- sending

function send() {
  sending ??= (async () => {
    try {
      while (outbox.length) {
        const reply = await insist("/answer", outbox[0]);
        if (reply.ok && !reply.repeated) done += outbox[0].order ? 1 : 0;
        outbox.shift();
        keep();
      }
      await refill();
    } finally { sending = null; }
  })();
  return sending;
}

async function refill() {
  const reply = await insist("/next?n=2");
  if (!reply.ok) return location.assign(base);
  if (outbox.length) return;  // answered meanwhile: the next round asks again
  ({ done, of, undo: undoable } = reply);
  progress();
  if (reply.state === "paused") {
    queue = [];
    wait(t.paused_live);
    setTimeout(refill, 5000);
  } else if (!reply.questions.length) {
    location.assign(`${base}/done`);
  } else {
    const before = queue[0]?.id;
    queue = reply.questions;
    if (queue[0].id !== before) show();
    else undoButton();
    queue.slice(1).flatMap((q) => q.options).forEach(fetchAhead);
  }
}

function fetchAhead(option) {
  if (option.kind === "image") new Image().src = option.url;
  else if (option.kind === "audio" || option.kind === "video") {
    const media = document.createElement(option.kind);
    media.preload = "auto";
    media.src = option.url;
  }
}

function answer(chosen, words) {
  if (!queue.length || !taking || (chosen && !heard)) return;
  const [question] = queue;
  outbox.push({ question: question.id, order: chosen, ms: Math.round(performance.now() - shownAt) });
  keep();
  queue.shift();
  undoable = question.id;
  if (chosen) { done += 1; progress(); done -= 1; }
  told(words, true);
  if (queue.length) show();
  else wait(t.loading);
  if (sending) sending.then(send); else send();
}

async function undo() {
  // the second tap of a double tap
  if (!mayUndo || !undoable || performance.now() - shownAt < MOMENT) return;
  const question = undoable;
  undoable = null;
  undoButton();
  told(t.undone, false);
  do await send(); while (outbox.length);  // what has not arrived cannot be taken back
  await insist("/undo", { question });
  queue = [];
  await refill();
}

// ---- showing

function progress() {
  const bar = document.getElementById("bar");
  const words = of ? text("progress", { done, of }) : text("progress_open", { done });
  document.getElementById("count").textContent = words;
  if (bar) { bar.value = done; bar.setAttribute("aria-label", words); }
}

function wait(words) {
  document.querySelector("dialog")?.close();
  main.replaceChildren(element("h1", {}, words));
}

// Names what was done, beside a way back.
function told(words, back) {
  lately = words;
  snack.replaceChildren(element("span", {}, words));
  if (back && mayUndo) snack.append(action("undo", undo, "tool"));
  snack.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { snack.hidden = true; }, REMAINS);
}

function show() {
  const [question] = queue;
  const { options, form } = question;
  order = [];
  document.querySelector("dialog")?.close();
  const cards = element("div", { class: classOf(options) }, ...options.map((_, place) => card(options, place, choose)));
  const actions = element("div", { class: "actions" });
  if (form === "rank") actions.append(action("send", sendOrder, "primary"));
  if (question.tie) actions.append(action("tie", tie, "tie"));
  if (maySkip) actions.append(action("skip", skip));
  if (mayUndo) actions.append(action("undo", undo, "quiet undo"));
  const title = element("h1", { id: "question", tabindex: "-1" }, question.prompt);
  const hint = element("p", { class: "hint" });
  main.replaceChildren(title, hint, cards, actions);
  heard = listen(main, options, () => { heard = true; mark(); say(t.may_choose, "unseen"); });
  hint.textContent = !heard ? t.play_hint : form === "rank" ? t.rank_hint : "";
  if (!hint.textContent && done < TAUGHT) hint.append(element("span", { class: "touch" }, t.swipe_hint));
  undoButton();
  document.getElementById("keys").textContent = keysOf(question);
  fold(main);
  title.focus({ preventScroll: true });
  scrollTo({ top: 0 });
  if (status.dataset.why !== "offline") say([lately, t.new_question].filter(Boolean).join(". "), "unseen");
  lately = "";
  mark();
  takeInput();
}

// The second click of a double click, or one that was meant for the question before, is no answer:
// input counts once the pictures are there, the question is painted and a moment old.
async function takeInput() {
  const turn = ++turns;
  taking = false;
  main.classList.add("waiting");
  shownAt = performance.now();
  const pictures = [...main.querySelectorAll(".option img")];
  await Promise.all(pictures.map((picture) => picture.decode().catch(() => {})));
  await new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted)));
  if (turn !== turns) return;  // another question is shown meanwhile, and waits for itself
  shownAt = performance.now();
  await new Promise((old) => setTimeout(old, MOMENT));
  if (turn !== turns) return;
  taking = true;
  main.classList.remove("waiting");
}

function keysOf({ form, tie, options }) {
  const keys = [form === "pair" ? t.key_pair : text("key_many", { n: options.length })];
  if (form === "rank") keys.push(t.key_send);
  if (tie) keys.push(t.key_tie);
  if (maySkip) keys.push(t.key_skip);
  if (mayUndo) keys.push(t.key_undo);
  return `${t.keys} ${keys.join(", ")}`;
}

function undoButton() {
  const button = main.querySelector(".actions .undo");
  if (button) button.disabled = !undoable;
}

const tie = () => answer([[0, 1]], t.tied);
const skip = () => answer(null, t.skipped);

// onto: it is chosen after this, also where a tap would take it out of the order again
function choose(place, onto = false) {
  const [question] = queue;
  if (!question || !taking || !heard || place >= question.options.length) return;
  const others = question.options.map((_, k) => k).filter((k) => k !== place);
  if (question.form !== "rank") return answer([[place], others], text("chosen", { n: place + 1 }));
  if (place === lastPlace && performance.now() - lastAt < MOMENT) return;
  [lastPlace, lastAt] = [place, performance.now()];
  if (!order.includes(place)) {
    order.push(place);
    const rest = question.options.map((_, k) => k).filter((k) => !order.includes(k));
    if (rest.length === 1) order.push(...rest);
  } else if (!onto) order = order.filter((k) => k !== place);
  mark();
}

function mark() {
  main.querySelectorAll(".option").forEach((node, place) => {
    node.querySelector(".badge")?.remove();
    const rank = order.indexOf(place);
    node.classList.toggle("chosen", rank >= 0);
    if (rank >= 0) node.append(element("span", { class: "badge" }, String(rank + 1)));
    const button = node.querySelector(".choose");
    button.disabled = !heard;
    button.textContent = heard ? t.choose : t.play_first;
  });
  const tied = main.querySelector(".actions .tie");
  if (tied) tied.disabled = !heard;
  const send = main.querySelector(".actions .primary");
  if (send) send.disabled = order.length < (queue[0]?.options.length ?? 0);
}

function sendOrder() {
  if (order.length === queue[0]?.options.length) answer(order.map((place) => [place]), t.sent);
}

addEventListener("keydown", (event) => {
  if (document.querySelector("dialog")) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (["INPUT", "SELECT", "TEXTAREA", "AUDIO", "VIDEO"].includes(event.target.tagName)) return;
  const [question] = queue;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const pair = question?.form === "pair";
  const does =
    key === "z" ? undo :
    !question ? null :
    key === "s" && maySkip ? skip :
    pair && key === "ArrowLeft" ? () => choose(0) :
    pair && key === "ArrowRight" ? () => choose(1) :
    pair && key === "ArrowUp" && question.tie ? tie :
    key === "Enter" && question.form === "rank" && event.target.tagName !== "BUTTON" ? sendOrder :
    /^[1-9]$/.test(key) ? () => choose(Number(key) - 1) : null;
  if (does) { event.preventDefault(); does(); }
});

addEventListener("resize", () => fold(main));

send();
