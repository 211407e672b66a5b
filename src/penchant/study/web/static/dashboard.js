// The owner's page, kept current by server-sent events.

const study = document.getElementById("dashboard").dataset.study;
const api = `/api/studies/${study}`;
const get = (id) => document.getElementById(id);
const status = get("status");

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function drawn(name, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

async function call(method, path, body) {
  const isForm = body instanceof FormData;  // a file travels in one; its headers are the browser's
  const reply = await fetch(api + path, {
    method, headers: isForm ? {} : { "Content-Type": "application/json" },
    body: isForm || !body ? body : JSON.stringify(body),
  });
  const content = await reply.json();
  status.textContent = reply.ok ? "" : content.message ?? JSON.stringify(content.detail);
  return reply.ok ? content : null;
}

const percent = (p) => (p >= 0.995 ? "> 99 %" : p < 0.005 ? "< 1 %" : `${Math.round(100 * p)} %`);
const cell = (content, kind = "") => element("td", kind ? { class: kind } : {}, String(content));

function tiles(state) {
  const { counts } = state;
  const hits = counts.questions ? 1 - counts.without_model / counts.questions : null;
  const shown = [
    [counts.answers, "answers"],
    [counts.answers_last_minute, "in the last minute"],
    [`${counts.here} / ${counts.participants}`, "people here / in all"],
    [counts.items, "items"],
    [hits === null ? "–" : percent(hits), "questions by the model"],
  ];
  get("tiles").replaceChildren(...shown.map(([value, name]) =>
    element("div", { class: "tile" }, element("strong", {}, String(value)), element("span", {}, name))));
}

function interval(row, low, high) {
  const x = (value) => 4 + (192 * (value - low)) / (high - low || 1);
  const words = `${row.utility.toFixed(2)}, from ${row.low.toFixed(2)} to ${row.high.toFixed(2)}`;
  const picture = drawn("svg", { viewBox: "0 0 200 16", role: "img", "aria-label": words });
  picture.append(
    drawn("line", { class: "axis", x1: x(0), x2: x(0), y1: 0, y2: 16 }),
    drawn("line", { class: "span", x1: x(row.low), x2: x(row.high), y1: 8, y2: 8 }),
    drawn("circle", { class: "dot", cx: x(row.utility), cy: 8, r: 5 }),
  );
  return element("td", {}, picture);
}

function ranking(rows) {
  const low = Math.min(0, ...rows.map((row) => row.low));
  const high = Math.max(0, ...rows.map((row) => row.high));
  fill("ranking", rows, (row) => {
    const retire = element("button", { type: "button", "aria-label": `Retire ${row.name}` }, "Retire");
    retire.addEventListener("click", () => {
      if (confirm(`Ask about “${row.name}” no more?`)) call("DELETE", `/items/${row.item}`);
    });
    return element("tr", { class: row.active ? "" : "retired" },
      cell(row.rank), cell(row.name, "name"), interval(row, low, high),
      cell(percent(row.prob_best), "num"), cell(`${row.rank_low}–${row.rank_high}`, "num"),
      cell(row.comparisons, "num"),
      element("td", {}, row.active ? retire : "retired"));
  });
}

function fill(table, rows, make) {
  const focus = document.activeElement?.getAttribute("aria-label");
  get(table).tBodies[0].replaceChildren(...rows.map(make));
  if (focus) get(table).querySelector(`[aria-label="${CSS.escape(focus)}"]`)?.focus();
}

function enough(state) {
  if (!state.stop) return;
  const { stop, value, target, reason } = state.stop;
  get("enough").textContent =
    `${stop ? "Yes" : "Not yet"}: ${reason} is ${percent(value)}, wanted ${percent(target)}.`;
  get("left").textContent = state.plan && !stop ? left(state.plan) : "";
}

// about how many, and in brackets what 10 % and 90 % of the imagined futures take
function left({ low, median, high }) {
  const range = (name, beyond) => `(10 %: ${low[name] ?? beyond}; 90 %: ${high[name] ?? beyond})`;
  if (median.answers === null) {
    return `More than 300 more answers ${range("answers", "more than 300")}.`;
  }
  const parts = [`About ${median.answers} more answers ${range("answers", "more than 300")}`];
  if (median.people !== null) parts.push(`${median.people} people ${range("people", "more")}`);
  if (median.money !== null) parts.push(`a cost of ${median.money} ${range("money", "more")}`);
  return `${parts.join(", ")}.`;
}

function calibration(known) {
  if (!known) return;
  get("calibration-text").textContent = known.n
    ? `${known.n} questions drawn at random, predicted before they were asked. Mean log-probability of the answers ${known.log_score.toFixed(3).replace("-", "−")} (a coin: −0.693).`
    : "No random question has been answered yet.";
  get("calibration").hidden = !known.n;
  fill("calibration", known.rows.filter((row) => row.won.n), (row) => element("tr", {},
    cell(`${percent(row.expected)} (${row.from}–${row.to})`),
    cell(`${Math.round((100 * row.won.k) / row.won.n)} % (${percent(row.won.low)} to ${percent(row.won.high)})`),
    cell(row.won.n, "num")));
}

function groups(known) {
  if (!known) return;
  const divisive = known.divisive.length ? ` They divide over ${known.divisive.join(", ")}.` : "";
  const sentence = known.sentence[0].toUpperCase() + known.sentence.slice(1);
  get("groups-text").textContent = `${sentence.replace(/\.?$/, ".")}${divisive}`;
  get("groups").replaceChildren(...known.groups.map(({ people, best, own }) => element("li", {},
    element("strong", {}, `${people} people`), ` like ${best.join(", ")} best`,
    own.length ? `, and more than others ${own.join(", ")}` : "")));
}

const reasons = { checks: "failed checks", fast: "very fast", side: "one side", repeats: "contradicts themselves" };

function raters(rows) {
  const share = ({ k, n, low, high }) => n ? `${k}/${n} (${percent(low)} to ${percent(high)})` : "–";
  const closer = (row) => row.look_closer.length;
  fill("raters", [...rows].sort((a, b) => closer(b) - closer(a)), (row) => {
    const name = row.participant.slice(0, 6);
    const erase = element("button", { type: "button", "aria-label": `Erase ${name}` }, "Erase");
    erase.addEventListener("click", () => {
      if (confirm(`Remove ${name} and all their answers for good?`)) call("DELETE", `/participants/${row.participant}`);
    });
    return element("tr", {},
      cell(name), cell(row.answers, "num"), cell(row.skipped, "num"), cell(row.seconds ?? "–", "num"),
      cell(share(row.reliability)), cell(share(row.left)),
      cell(row.checks.right + row.checks.wrong ? `${row.checks.right}/${row.checks.right + row.checks.wrong}` : "–"),
      cell(row.look_closer.map((why) => reasons[why]).join(", "), "warn"), element("td", {}, erase));
  });
}

function show(state) {
  get("state").textContent = state.state;
  get("link").textContent = state.model.behind ? "the model is catching up" : "current";
  document.querySelectorAll("#states button").forEach((button) => {
    button.disabled = button.dataset.state === state.state;
  });
  tiles(state);
  enough(state);
  ranking(state.ranking);
  groups(state.communities);
  calibration(state.calibration);
  raters(state.raters);
}

document.querySelectorAll("#states button").forEach((button) => {
  button.addEventListener("click", () => call("PATCH", "", { state: button.dataset.state }));
});

get("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [name] = event.target;
  const described = [...event.target.querySelectorAll(".feature")];
  const features = Object.fromEntries(described.map((field) => [field.name, Number(field.value)]));
  const [content] = event.target.querySelector("[type=file]").files;
  const form = new FormData();
  if (content) {
    form.set("name", name.value);
    form.set("medium", content.type.split("/")[0]);
    form.set("features", JSON.stringify(features));
    form.set("file", content);
  }
  const made = content
    ? await call("POST", "/items/upload", form)
    : await call("POST", "/items", [{ name: name.value, features }]);
  if (made) event.target.reset();
});

get("invite").addEventListener("submit", async (event) => {
  event.preventDefault();
  const made = await call("POST", "/invites", { n: Number(event.target.n.value) });
  if (made) get("invites").replaceChildren(...made.paths.map((path) =>
    element("li", {}, element("code", {}, location.origin + path))));
});

const open = get("open-link");
if (open.textContent.startsWith("/")) open.textContent = location.origin + open.textContent;

const stream = new EventSource(`${api}/live`);
stream.onmessage = (event) => show(JSON.parse(event.data));
stream.onerror = () => { get("link").textContent = "connection lost, trying again"; };
