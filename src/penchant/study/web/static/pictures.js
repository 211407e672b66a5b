// Pictures, drawn as SVG by hand; each stands above its numbers as a table.

import { element, moment, number, percent, say } from "./owner.js";

const WIDE = 360, HIGH = 220, LEFT = 58, RIGHT = 12, TOP = 12, BOTTOM = 40;

function drawn(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const line = (kind, x1, y1, x2, y2) => drawn("line", { class: kind, x1, y1, x2, y2 });
const label = (x, y, words, anchor = "middle") =>
  drawn("text", { x, y, "text-anchor": anchor }, words);
const path = (kind, points) =>
  drawn("path", { class: kind, d: `M${points.map((at) => at.join(",")).join("L")}` });

// show a picture in its figure, and its table below; an open table stays open
export function show(figure, picture, columns, rows) {
  figure.hidden = false;
  figure.querySelector(":scope > svg, :scope > .bars")?.remove();
  let details = figure.querySelector("details");
  if (!details) {
    details = element("details", {}, element("summary", {}, say("as_table")), element("table"));
    figure.append(details);
  }
  details.before(picture);
  const cells = (kind, row) => element("tr", {}, ...row.map((one) => element(kind, {}, String(one))));
  details.querySelector("table").replaceChildren(
    element("thead", {}, cells("th", columns)),
    element("tbody", {}, ...rows.map((row) => cells("td", row))));
}

// round values between two others, about n of them
export function ticks(low, high, n = 4) {
  const raw = (high - low || 1) / n, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= raw);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(k * step || 0);
  return { values: found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

const scale = (low, high, from, to) => (value) =>
  Math.round(10 * (from + ((to - from) * (value - low)) / (high - low || 1))) / 10;

// an empty chart with its axes: across and up are {low, high, name, format?, n?}
function chart(words, across, up) {
  const x = scale(across.low, across.high, LEFT, WIDE - RIGHT);
  const y = scale(up.low, up.high, HIGH - BOTTOM, TOP);
  const node = drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": words, class: "chart" });
  const marks = (axis) => {
    const { values, digits } = ticks(axis.low, axis.high, axis.n);
    return values.map((value) => [value, (axis.format ?? ((v) => number(v, digits)))(value)]);
  };
  for (const [value, name] of marks(up)) {
    node.append(line("grid", LEFT, y(value), WIDE - RIGHT, y(value)), label(LEFT - 5, y(value) + 4, name, "end"));
  }
  const shown = marks(across);
  for (const [at, [value, name]] of shown.entries()) {
    const outside = x(value) > WIDE - RIGHT - 14 && at === shown.length - 1;
    node.append(label(outside ? WIDE - 2 : x(value), HIGH - BOTTOM + 17, name, outside ? "end" : "middle"));
  }
  node.append(line("axis", LEFT, HIGH - BOTTOM, WIDE - RIGHT, HIGH - BOTTOM),
    drawn("text", { x: (LEFT + WIDE - RIGHT) / 2, y: HIGH - 6, "text-anchor": "middle", class: "name" }, across.name));
  if (up.name) {
    const at = [12, (TOP + HIGH - BOTTOM) / 2];
    node.append(drawn("text", { x: at[0], y: at[1], transform: `rotate(-90 ${at})`, "text-anchor": "middle", class: "name" }, up.name));
  }
  return { node, x, y };
}

// certainty over answers, the level that is wanted, and the forecast
export function growth(figure, rows, target, left) {
  const [now, level] = rows.at(-1);
  const ends = left ? [left.low, left.median, left.high].map((n) => (n === null ? null : now + n)) : [];
  const high = Math.max(10, now, ...ends.filter((end) => end !== null), ends.includes(null) ? now + 300 : 0);
  const { node, x, y } = chart(say("growth_words", { level: percent(level), answers: number(now) }),
    { low: 0, high: 1.04 * high, name: say("answers") },
    { low: 0, high: 1, name: say("certainty"), format: (p) => `${Math.round(100 * p)} %` });
  if (ends.length) {
    const [soon, median, late] = ends.map((end) => x(end ?? now + 300));
    node.append(path("band", [[x(now), y(level)], [soon, y(target)], [late, y(target)], [x(now), y(level)]]));
    if (ends[1] !== null) node.append(path("forecast", [[x(now), y(level)], [median, y(target)]]));
  }
  node.append(line("target", LEFT, y(target), WIDE - RIGHT, y(target)),
    label(LEFT + 4, y(target) + 13, say("wanted", { level: percent(target) }), "start"));
  if (rows.length > 1) node.append(path("curve", rows.map(([n, p]) => [x(n), y(p)])));
  node.append(drawn("circle", { class: "dot", cx: x(now), cy: y(level), r: 4 }));
  const beyond = (end) => (end === null ? say("beyond", { n: number(now + 300) }) : number(end));
  const told = ["forecast_low", "forecast_median", "forecast_high"].map((name, k) => [ends[k], name]);
  show(figure, node, [say("answers"), say("certainty")], [
    ...rows.map(([n, p]) => [number(n), percent(p)]),
    ...(ends.length ? told.map(([end, name]) => [beyond(end), `${percent(target)} (${say(name)})`]) : [])]);
}

// answers given over time
export function over_time(figure, rows) {
  const first = rows[0].at(-1), last = rows.at(-1).at(-1), days = (last - first) / 86400;
  const options = days > 1.5 ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit", ...(days < 0.01 && { second: "2-digit" }) };
  const { node, x, y } = chart(say("speed_words", { answers: number(rows.at(-1)[0]) }),
    { low: first, high: Math.max(last, first + 1), name: say("time"), format: (s) => moment(s, options), n: 3 },
    { low: 0, high: 1.05 * Math.max(4, ...rows.map(([n]) => n)), name: say("answers") });
  node.append(path("curve", rows.map(([n, , at]) => [x(at), y(n)])));
  show(figure, node, [say("time"), say("answers")], rows.map(([n, , at]) =>
    [moment(at, { dateStyle: "short", timeStyle: "medium" }), number(n)]));
}

// predictions for random questions against their answers: right ones lie on the diagonal
export function calibration(figure, rows) {
  const asPercent = (p) => `${Math.round(100 * p)} %`;
  const { node, x, y } = chart(say("calibration_words"),
    { low: 0.5, high: 1, name: say("predicted"), format: asPercent, n: 5 },
    { low: 0, high: 1, name: say("won"), format: asPercent });
  node.append(line("target", x(0.5), y(0.5), x(1), y(1)));
  for (const { expected, won } of rows) {
    node.append(line("span", x(expected), y(won.low), x(expected), y(won.high)),
      drawn("circle", { class: "dot", cx: x(expected), cy: y(won.k / won.n), r: 4.5 }));
  }
  show(figure, node, [say("predicted"), say("won"), say("interval"), say("n_questions")], rows.map(({ expected, won }) =>
    [percent(expected), percent(won.k / won.n), `${percent(won.low)} – ${percent(won.high)}`, number(won.n)]));
}

const SHAPES = [
  (x, y) => drawn("circle", { cx: x, cy: y, r: 4 }),
  (x, y) => drawn("rect", { x: x - 3.5, y: y - 3.5, width: 7, height: 7 }),
  (x, y) => drawn("path", { d: `M${x},${y - 5}L${x + 5},${y + 4}L${x - 5},${y + 4}Z` }),
  (x, y) => drawn("path", { d: `M${x},${y - 5}L${x + 5},${y}L${x},${y + 5}L${x - 5},${y}Z` }),
];
function shape(group, x, y) {
  const node = SHAPES[group % SHAPES.length](x, y);
  node.setAttribute("class", `camp camp-${group % SHAPES.length}`);
  return node;
}

export const sign = (group) =>
  drawn("svg", { class: "sign", viewBox: "0 0 14 14", "aria-hidden": "true" }, shape(group, 7, 7));

// people between their groups
export function map(figure, points, groups) {
  const range = (name) => {
    const values = points.map((point) => point[name]), room = 0.05 * (Math.max(...values) - Math.min(...values)) || 0.1;
    return { low: Math.min(...values) - room, high: Math.max(...values) + room, format: () => "", n: 2 };
  };
  const { node, x, y } = chart(say("map_words", { people: number(points.length), groups: number(groups.length) }),
    { ...range("x"), name: say("map_across") }, { ...range("y"), name: say("map_up") });
  for (const { participant, x: across, y: up, group } of points) {
    const mark = shape(group, x(across), y(up));
    mark.append(drawn("title", {}, `${participant.slice(0, 6)} · ${say("group", { n: group + 1 })}`));
    node.append(mark);
  }
  show(figure, node, [say("person"), say("group_name"), say("map_across"), say("map_up")], points.map((point) =>
    [point.participant.slice(0, 6), number(point.group + 1), number(point.x, 2), number(point.y, 2)]));
  const legend = figure.querySelector(".legend") ?? element("ul", { class: "legend" });
  figure.querySelector("details").before(legend);
  legend.replaceChildren(...groups.map(({ people, best }, at) =>
    element("li", {}, sign(at), say("legend", { n: at + 1, people: number(people), best: best.join(", ") }))));
}

// bars that lie: rows of [name, value, words]
export function bars(figure, rows, columns) {
  const most = Math.max(1, ...rows.map(([, value]) => value));
  const node = element("div", { class: "bars", role: "img", "aria-label": rows.map(([name, , words]) => `${name}: ${words}`).join("; ") });
  for (const [name, value, words] of rows) {
    node.append(element("span", {}, name), meter(value / most), element("span", { class: "num" }, words));
  }
  show(figure, node, columns, rows.map(([name, , words]) => [name, words]));
}

// a share of a whole as a bar; mark: a share to compare with
export function meter(share, mark = null) {
  const node = drawn("svg", { class: "meter", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("rect", { class: "ground", width: 100, height: 8 }),
    drawn("rect", { class: "filled", width: Math.min(100, Math.max(0, 100 * share)), height: 8 }));
  if (mark !== null) node.append(line("mark", 100 * mark, 0, 100 * mark, 8));
  return node;
}

// a value and its interval between low and high; dots keep their form however wide it is drawn
export function interval({ value, from, to }, low, high, words, marks = []) {
  const x = scale(low, high, 1, 99);
  const node = drawn("svg", { class: "interval", viewBox: "0 0 100 16", preserveAspectRatio: "none", role: "img", "aria-label": words });
  for (const at of marks) node.append(line("grid", x(at), 0, x(at), 16));
  if (from !== undefined) node.append(line("span", x(from), 8, x(to), 8));
  node.append(line("point", x(value), 8, x(value), 8));
  return node;
}

// the axis above a column of intervals: its name and round values where they lie
export function axis(low, high, name) {
  const { values, digits } = ticks(low, high, 4), node = element("span", { class: "scale", "aria-hidden": "true" });
  for (const value of values) {
    const mark = element("span", {}, number(value, digits).replace("-", "−"));
    mark.style.left = `${scale(low, high, 1, 99)(value)}%`;
    node.append(mark);
  }
  return { node: element("span", { class: "axis-head" }, name, node), values };
}

// a line without axes, for a tile
export function spark(values) {
  const low = Math.min(...values), high = Math.max(...values), last = values.length - 1;
  const points = values.map((value, at) => [(100 * at) / (last || 1), 22 - (20 * (value - low)) / (high - low || 1)]);
  return drawn("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" }, path("curve", points));
}
