// What is shown of an option, and what fingers do with it: tap, swipe to the right, hold.

export const { t, skip: maySkip, undo: mayUndo } =
  JSON.parse(document.getElementById("strings").textContent);

const LONG = 160;      // characters: more of them are read, so a tap on them is no choice
const HOLD = 450;      // milliseconds of a finger that stays
const EDGE = 24;       // pixels: a swipe from the edge of the screen is the browser's
const LISTENED = 20;   // seconds of what must be played, or nearly all of it
const OWN = "a, audio, video, iframe, pre, table, .tool";  // these have gestures of their own

export const text = (name, values = {}) =>
  Object.entries(values).reduce((s, [k, v]) => s.replace(`{${k}}`, v), t[name]);

export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export function action(name, does, kind = "", values = {}) {
  const button = element("button", { type: "button", class: kind }, text(name, values));
  button.addEventListener("click", does);
  return button;
}

function sanitised(kind, html) {
  const node = element("div", { class: kind });
  node.innerHTML = html;  // the server made it harmless
  return node;
}

function body(option, n) {
  if (option.kind === "text") {
    return option.difference ? sanitised("words", option.difference) : element("p", {}, option.text);
  }
  if (option.kind === "markdown") return sanitised("prose", option.html);
  if (option.kind === "image") return element("img", { src: option.url, alt: text("option", { n }) });
  if (option.kind === "html") {
    return element("iframe", { sandbox: "", title: text("option", { n }), src: option.url });
  }
  const named = { "aria-label": text("option", { n }), src: option.url };
  return element(option.kind, { controls: "", preload: "auto", playsinline: "", ...named });
}

export function classOf(options) {
  const pictures = options.every((o) => o.kind === "image" || o.kind === "video");
  return `options of-${options.length}${pictures ? " pictures" : ""}`;
}

export function card(options, place, choose) {
  const option = options[place], n = place + 1;
  const content = body(option, n);
  const words = option.text ?? option.caption ?? "";
  const name = text("choose_option", { n }) + (words && words.length <= LONG ? `: ${words}` : "");
  const button = action("choose", () => held || choose(place), "choose");
  button.setAttribute("aria-label", name);
  const foot = element("div", { class: "foot" }, button);
  const node = element("div", { class: `option ${option.kind}` },
    element("div", { class: "body" }, content), foot);
  if (content.textContent.length > LONG) node.classList.add("long");
  if (option.caption) node.firstChild.after(element("p", { class: "caption" }, option.caption));
  let held = false;
  const enlarge = () => { held = true; zoom(options, place, choose); };
  if (option.kind === "image") {
    const glass = element("button", { type: "button", class: "tool glass", "aria-label": text("enlarge", { n }) });
    glass.addEventListener("click", enlarge);
    node.append(glass);
  }
  node.addEventListener("pointerdown", () => { held = false; }, { capture: true });
  node.addEventListener("keydown", () => { held = false; }, { capture: true });
  fingers(node, () => choose(place, true), option.kind === "image" ? enlarge : null);
  return node;
}

// ---- long text

// Shows the beginning of long texts, with a button for the rest; again when the window changes.
export function fold(main) {
  const pinned = main.querySelector(".actions")?.offsetHeight ?? 0;
  document.documentElement.style.setProperty("--pinned", `${pinned}px`);
  const closed = [...main.querySelectorAll(".option.long:not(.open)")];
  for (const node of closed) {
    node.querySelector(".more")?.remove();
    node.classList.add("folded");
  }
  const boxes = closed.map((node) => node.querySelector(".body"));
  const hides = boxes.map((box) => box.scrollHeight > box.clientHeight + 8);
  closed.forEach((node, k) => {
    if (hides[k]) node.querySelector(".foot").prepend(unfold(node));
    else node.classList.remove("folded");
  });
}

function unfold(node) {
  const button = action("more", () => {
    const open = node.classList.toggle("open");
    node.classList.toggle("folded", !open);
    button.textContent = open ? t.less : t.more;
    button.setAttribute("aria-expanded", open);
    if (node.getBoundingClientRect().top < 0) node.scrollIntoView();
  }, "more tool");
  button.setAttribute("aria-expanded", "false");
  return button;
}

// ---- fingers

function fingers(node, taken, hold) {
  let from = null, sliding = false, waiting = null;
  const rest = () => {
    clearTimeout(waiting);
    from = null;
    sliding = false;
    node.style.transform = "";
    node.classList.remove("sliding", "far");
  };
  const far = (event) => event.clientX - from.x > Math.min(120, node.offsetWidth / 3);
  node.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" || !event.isPrimary) return rest();  // two fingers zoom
    if (event.target.closest(OWN) || event.clientX < EDGE) return;
    from = { x: event.clientX, y: event.clientY };
    if (hold) waiting = setTimeout(() => { rest(); hold(); }, HOLD);
  });
  node.addEventListener("pointermove", (event) => {
    if (!from || !event.isPrimary) return;
    const x = event.clientX - from.x, y = event.clientY - from.y;
    if (Math.hypot(x, y) > 10) clearTimeout(waiting);
    if (!sliding && x > 10 && x > 1.5 * Math.abs(y)) {
      sliding = true;
      node.classList.add("sliding");
      node.setPointerCapture(event.pointerId);
    }
    if (!sliding) return;
    node.style.transform = `translateX(${Math.max(0, x)}px)`;
    node.classList.toggle("far", far(event));
  });
  node.addEventListener("pointerup", (event) => {
    const took = sliding && far(event);
    rest();
    if (took) taken();
  });
  node.addEventListener("pointercancel", rest);
  if (hold) node.addEventListener("contextmenu", noMenu);
}

// a finger that stays would open the browser's own menu
function noMenu(event) {
  if (event.pointerType === "touch") event.preventDefault();
}

// ---- a picture, as large as the screen

function zoom(options, at, choose) {
  const pictures = options.flatMap((o, place) => (o.kind === "image" ? [place] : []));
  const picture = element("img"), caption = element("p", { class: "caption" });
  const larger = element("button", { type: "button", class: "larger" }, picture);
  const pane = element("div", { class: "pane" }, larger);
  const dialog = element("dialog", { class: "zoom" }, pane, caption);
  const show = (place) => {
    at = place;
    picture.src = options[at].url;
    picture.alt = text("option", { n: at + 1 });
    caption.textContent = [picture.alt, options[at].caption].filter(Boolean).join(": ");
    dialog.setAttribute("aria-label", picture.alt);
  };
  // the finger that was held to open this is lifted over it
  let fresh = false;
  dialog.addEventListener("pointerdown", () => { fresh = true; });
  dialog.addEventListener("contextmenu", (event) => fresh || noMenu(event));
  larger.setAttribute("aria-label", t.larger);
  larger.addEventListener("click", (event) => {
    if (event.detail && !fresh) return;
    const spot = larger.getBoundingClientRect();
    const x = (event.clientX - spot.left) / spot.width, y = (event.clientY - spot.top) / spot.height;
    larger.setAttribute("aria-pressed", pane.classList.toggle("large"));
    // what was tapped stays in the middle
    pane.scrollTo(x * pane.scrollWidth - pane.clientWidth / 2, y * pane.scrollHeight - pane.clientHeight / 2);
  });
  const close = action("close", () => dialog.close());
  const next = action("next_picture", () => show(pictures[(pictures.indexOf(at) + 1) % pictures.length]));
  const take = action("choose", () => { dialog.close(); choose(at, true); }, "primary");
  dialog.append(element("div", { class: "actions" }, close, next, take));
  dialog.addEventListener("close", () => dialog.remove());
  show(at);
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
}

// ---- sound and film

// One plays at a time. `heard` is called once everything that must be played was.
export function listen(main, options, heard) {
  const media = [...main.querySelectorAll(".option :is(audio, video)")];
  for (const one of media) {
    one.addEventListener("play", () => media.forEach((other) => other === one || other.pause()));
  }
  const players = [...main.querySelectorAll(".option")].map((node) => node.querySelector("audio, video"));
  const left = new Set(players.filter((it, place) => it && options[place].must_play));
  for (const it of left) {
    const look = (event) => {
      let played = 0;  // parts that were skipped are not in it
      for (let k = 0; k < it.played.length; k += 1) played += it.played.end(k) - it.played.start(k);
      // what cannot be played must not hold anybody up
      if (event.type !== "error" && played < Math.min(LISTENED, 0.95 * it.duration)) return;
      if (left.delete(it) && !left.size) heard();
    };
    for (const name of ["timeupdate", "ended", "error"]) it.addEventListener(name, look);
  }
  return left.size === 0;
}
