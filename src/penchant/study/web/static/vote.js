// Questions without reloading: the next ones are fetched ahead, answers are sent in the
// background and again until the server has them. The page works without this script too.

const main = document.getElementById("vote");
const base = main.dataset.base;
const { t, skip: maySkip, undo: mayUndo } = JSON.parse(document.getElementById("strings").textContent);
const status = document.getElementById("status");
const boxName = `outbox ${base}`;
const MOMENT = 300;    // milliseconds: two clicks of a double click are closer together

let queue = [];        // open questions; the first is on screen
let outbox = load();   // answers that the server has not confirmed
let undoable = null;   // the question whose answer can be taken back
let shownAt = 0;
let turns = 0;         // how many questions were shown
let taking = false;    // whether the one on screen takes input yet
let order = [];        // while ranking: positions, best first
let done = 0, of = null;
let sending = null;

const text = (name, values = {}) =>
  Object.entries(values).reduce((s, [k, v]) => s.replace(`{${k}}`, v), t[name]);

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

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
    main.replaceChildren(element("h1", {}, t.paused_live));
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

function answer(chosen) {
  if (!queue.length || !taking) return;
  const [question] = queue;
  outbox.push({ question: question.id, order: chosen, ms: Math.round(performance.now() - shownAt) });
  keep();
  queue.shift();
  undoable = question.id;
  if (chosen) { done += 1; progress(); done -= 1; }
  if (queue.length) show();
  else main.replaceChildren(element("h1", {}, t.loading));
  if (sending) sending.then(send); else send();
}

async function undo() {
  if (!mayUndo || !undoable) return;
  const question = undoable;
  undoable = null;
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

function body(option, n) {
  if (option.kind === "text") return element("p", {}, option.text);
  if (option.kind === "markdown") {
    const prose = element("div", { class: "prose" });
    prose.innerHTML = option.html;  // the server made it harmless
    return prose;
  }
  if (option.kind === "image") return element("img", { src: option.url, alt: text("option", { n }) });
  if (option.kind === "html") {
    return element("iframe", { sandbox: "", title: text("option", { n }), src: option.url });
  }
  return element(option.kind, { controls: "", preload: "auto", playsinline: "", src: option.url });
}

function card(question, option, place) {
  const n = place + 1;
  const words = text("choose_option", { n }) + (option.text ? `: ${option.text}` : "");
  const button = element("button", { class: "choose", type: "button", "aria-label": words }, t.choose);
  button.addEventListener("click", () => choose(place));
  return element("div", { class: `option ${option.kind}` },
    element("div", { class: "body" }, body(option, n)), button);
}

function action(name, does, kind = "") {
  const button = element("button", { type: "button", class: kind }, t[name]);
  button.addEventListener("click", does);
  return button;
}

function show() {
  const [question] = queue;
  order = [];
  const options = element("div", { class: `options of-${question.options.length}` },
    ...question.options.map((option, place) => card(question, option, place)));
  const actions = element("div", { class: "actions" });
  if (question.form === "rank") actions.append(action("send", sendOrder, "primary"));
  if (question.tie) actions.append(action("tie", () => answer([[0, 1]])));
  if (maySkip) actions.append(action("skip", () => answer(null)));
  const title = element("h1", { id: "question", tabindex: "-1" }, question.prompt);
  const hint = element("p", { class: "hint" }, question.form === "rank" ? t.rank_hint : "");
  main.replaceChildren(title, hint, options, actions);
  undoButton();
  document.getElementById("keys").textContent = keysOf(question);
  title.focus({ preventScroll: true });
  scrollTo({ top: 0 });
  if (status.dataset.why !== "offline") say(t.new_question, "unseen");
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
  document.getElementById("undo")?.remove();
  if (!mayUndo || !undoable) return;
  const button = action("undo", undo, "quiet");
  button.id = "undo";
  main.querySelector(".actions")?.append(button);
}

function choose(place) {
  const [question] = queue;
  if (!question || !taking || place >= question.options.length) return;
  const others = question.options.map((_, k) => k).filter((k) => k !== place);
  if (question.form !== "rank") return answer([[place], others]);
  order = order.includes(place) ? order.filter((k) => k !== place) : [...order, place];
  if (order.length === question.options.length - 1) {
    order.push(question.options.findIndex((_, k) => !order.includes(k)));
  }
  mark();
}

function mark() {
  main.querySelectorAll(".option").forEach((node, place) => {
    node.querySelector(".badge")?.remove();
    const rank = order.indexOf(place);
    node.classList.toggle("chosen", rank >= 0);
    if (rank >= 0) node.append(element("span", { class: "badge" }, String(rank + 1)));
  });
  const send = main.querySelector(".actions .primary");
  if (send) send.disabled = order.length < (queue[0]?.options.length ?? 0);
}

function sendOrder() {
  if (order.length === queue[0]?.options.length) answer(order.map((place) => [place]));
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (["INPUT", "SELECT", "TEXTAREA", "AUDIO", "VIDEO"].includes(event.target.tagName)) return;
  const [question] = queue;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const pair = question?.form === "pair";
  const does =
    key === "z" ? undo :
    !question ? null :
    key === "s" && maySkip ? () => answer(null) :
    pair && key === "ArrowLeft" ? () => choose(0) :
    pair && key === "ArrowRight" ? () => choose(1) :
    pair && key === "ArrowUp" && question.tie ? () => answer([[0, 1]]) :
    key === "Enter" && question.form === "rank" && event.target.tagName !== "BUTTON" ? sendOrder :
    /^[1-9]$/.test(key) ? () => choose(Number(key) - 1) : null;
  if (does) { event.preventDefault(); does(); }
});

send();
