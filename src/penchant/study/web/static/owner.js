// What the owner's pages share: words, calls, the live stream, tables and lists by the page.

export const get = (id) => document.getElementById(id);
export const study = get("page").dataset.study;
export const api = `/api/studies/${study}`;
const language = document.documentElement.lang;
const words = JSON.parse(get("words").textContent);
const status = get("status");

// the words of a name, with {places} filled in
export const say = (name, values = {}) =>
  (words[name] ?? name).replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
export const number = (value, digits = 0) =>
  value.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const percent = (p) =>
  p >= 0.995 ? "> 99 %" : p < 0.005 ? "< 1 %" : `${Math.round(100 * p)} %`;
export const moment = (seconds, options) =>
  new Date(1000 * seconds).toLocaleString(language, options);

export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

export function button(label, action, name = label, kind = "") {
  const node = element("button", { type: "button", "aria-label": name, class: kind || null }, label);
  node.addEventListener("click", action);
  return node;
}

// a request to the interface; null where it was refused, and the status line says why
export async function call(method, path, body) {
  const isForm = body instanceof FormData;  // a file travels in one; its headers are the browser's
  let reply, content;
  try {
    reply = await fetch(api + path, {
      method, headers: isForm || !body ? {} : { "Content-Type": "application/json" },
      body: isForm || !body ? body : JSON.stringify(body),
    });
    content = await reply.json();
  } catch {
    status.textContent = say("lost");
    return null;
  }
  status.textContent = reply.ok ? "" : content.message ?? JSON.stringify(content.detail);
  return reply.ok ? content : null;
}

// ---- tables: on a phone every row is a card whose cells carry the names of their columns

export function table(node, columns) {
  const head = columns.map(({ name, kind, head }) =>
    element("th", { scope: "col", role: "columnheader", class: kind ?? null }, head ?? name));
  node.replaceChildren(
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...head)),
    element("tbody", { role: "rowgroup" }));
  node.hidden = true;
  return (rows, make) => {
    node.hidden = !rows.length;
    const focus = document.activeElement?.getAttribute("aria-label");
    node.tBodies[0].replaceChildren(...rows.map((row) => {
      const { cells, kind } = make(row);
      return element("tr", { role: "row", class: kind ?? null }, ...cells.map((content, at) => {
        const { name, kind: column } = columns[at];
        return element("td", { role: "cell", class: column ?? null, "data-name": name },
          ...[content].flat());
      }));
    }));
    if (focus) node.querySelector(`[aria-label="${CSS.escape(focus)}"]`)?.focus();
  };
}

// a list of thousands, of which one page is read and drawn at a time
export function list(path, node, draw) {
  const search = get("search"), turn = get("turn");
  let page = 1, asked = 0, shown = "", timer = null;

  async function load() {
    clearTimeout(timer);
    timer = null;
    if (node.matches(":active")) return later();  // a row must not change under a finger
    asked += 1;
    const mine = asked;
    const found = await call("GET", `${path}?q=${encodeURIComponent(search.value)}&page=${page}`);
    if (!found || mine !== asked) return undefined;
    page = found.page;
    get("found").textContent = say(found.n === 1 ? "found_one" : "found", { n: number(found.n) });
    const content = JSON.stringify(found);
    if (content !== shown) draw(found);
    shown = content;
    turn.hidden = found.pages < 2;
    const to = (label, where) => {
      const key = button(say(label), () => { page = where; load(); node.scrollIntoView(); });
      key.disabled = where < 1 || where > found.pages || where === page;
      return key;
    };
    turn.replaceChildren(to("first", 1), to("before", page - 1),
      element("span", { class: "hint" }, say("page_of", { page: number(page), pages: number(found.pages) })),
      to("after", page + 1), to("last", found.pages));
    return undefined;
  }
  function later(ms = 400) {
    timer ??= setTimeout(load, ms);
  }
  search.addEventListener("input", () => {
    page = 1;
    clearTimeout(timer);
    timer = setTimeout(load, 200);
  });
  search.form.addEventListener("submit", (event) => event.preventDefault());
  load();
  return { load, later };
}

// ---- the state of the study, above every page

const states = [...document.querySelectorAll("#states button, #close")];

function header(state) {
  get("state").textContent = say(state.state);
  get("link").textContent = say(state.model.behind ? "catching_up" : "current");
  for (const one of states) one.disabled = one.dataset.state === state.state;
}

for (const one of states) {
  one.addEventListener("click", () => {
    const to = one.dataset.state;
    if (to !== "closed" || confirm(say("close_sure"))) call("PATCH", "", { state: to });
  });
}

// the one live stream of a page: every change of the study, a few kB each
export function follow(show) {
  const stream = new EventSource(`${api}/live`);
  stream.onmessage = (event) => {
    const state = JSON.parse(event.data);
    header(state);
    show(state);
  };
  stream.onerror = () => { get("link").textContent = say("lost"); };
}
