// The ranking as a table of pictures: intervals on one axis.

import { element, number, percent, say, table } from "./owner.js";
import { axis, interval, meter } from "./pictures.js";

function thumbnail(row) {
  if (row.picture) {
    return element("img", { class: "thumb", src: `/media/${row.picture}`, alt: "", loading: "lazy", decoding: "async", width: 40, height: 40 });
  }
  const sign = { audio: "♪", video: "▶" }[row.media];
  return sign ? element("span", { class: "thumb", "aria-hidden": "true" }, sign) : "";
}

// a utility as a picture with its numbers; marks: values of the axis
export function utility(row, low, high, marks) {
  const numbers = [row.utility, row.low, row.high].map((value) => number(value, 2).replace("-", "−"));
  const words = say("interval_words", { value: numbers[0], low: numbers[1], high: numbers[2] });
  return [interval({ value: row.utility, from: row.low, to: row.high }, low, high, words, marks),
    element("span", { class: "figures" }, `${numbers[0]} (${numbers[1]} – ${numbers[2]})`)];
}

// actions: what stands in the last cell of a row
export function ranking(node, rows, low, high, actions = null) {
  const isKnown = low !== null && low !== undefined;
  const { node: head, values } = isKnown ? axis(low, high, say("utility")) : { node: say("utility"), values: [] };
  const fill = table(node, [
    { name: "#", kind: "rank" }, { name: say("item"), kind: "name" },
    { name: say("utility"), kind: "wide", head }, { name: say("p_best"), kind: "num" },
    { name: say("places"), kind: "num" }, { name: say("compared"), kind: "num" },
    ...(actions ? [{ name: say("actions"), kind: "act", head: element("span", { class: "sr" }, say("actions")) }] : []),
  ]);
  fill(rows, (row) => {
    const name = element("span", { class: "named" }, thumbnail(row), element("span", {}, row.name),
      row.active ? "" : element("span", { class: "badge" }, say("retired")));
    const last = actions ? [actions(row)] : [];
    const kind = row.active ? null : "retired";
    if (row.rank === null) return { kind, cells: ["–", name, element("span", { class: "hint" }, say("not_yet")), "–", "–", "0", ...last] };
    return { kind, cells: [
      number(row.rank), name, utility(row, low, high, values),
      [meter(row.prob_best), percent(row.prob_best)], `${number(row.rank_low)}–${number(row.rank_high)}`,
      number(row.comparisons), ...last] };
  });
}
