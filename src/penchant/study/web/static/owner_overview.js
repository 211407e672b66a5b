// The overview: counts, progress to the goal, the leading items, groups of people.

import { element, follow, get, number, percent, say, table } from "./owner.js";
import { growth, meter, over_time, sign, spark } from "./pictures.js";
import { ranking } from "./owner_ranking.js";

function rates(rows) {
  return rows.slice(1).map(([n, , at], k) => Math.max(0, (60 * (n - rows[k][0])) / Math.max(1, at - rows[k][2])));
}

function tiles({ counts, progress, all_items: all }) {
  const model = counts.questions ? 1 - counts.without_model / counts.questions : null;
  const shown = [
    [number(counts.answers), "answers", progress.length > 1 ? spark(progress.map(([n]) => n)) : meter(0)],
    [number(counts.answers_last_minute), "last_minute", progress.length > 2 ? spark([...rates(progress), counts.answers_last_minute]) : meter(0)],
    [`${number(counts.here)} / ${number(counts.participants)}`, "people_here", meter(counts.here / (counts.participants || 1))],
    [number(counts.items), "items_asked", meter(counts.items / (all || 1))],
    [model === null ? "–" : percent(model), "by_model", meter(model ?? 0)],
  ];
  get("tiles").replaceChildren(...shown.map(([value, name, picture]) =>
    element("div", { class: "tile" }, element("strong", {}, value), element("span", {}, say(name)), picture)));
}

function enough({ stop, plan, left, progress, model, goal }) {
  if (!stop) return;
  const what = say(`goal_${goal.of}`, { k: number(goal.k), reason: stop.reason });
  get("enough").textContent = say(stop.stop ? "is_enough" : "not_enough",
    { what, level: percent(stop.value), target: percent(stop.target) });
  const share = Math.min(1, stop.value / stop.target);
  get("goal").replaceChildren(element("p", { class: "goal" },
    meter(stop.value, stop.target), element("span", {}, `${percent(stop.value)} / ${percent(stop.target)}`)));
  get("goal").classList.toggle("reached", share >= 1);
  // a forecast of none is older than what made it too few again
  const forecast = left?.high === 0 || stop.stop ? null : left;
  get("left").textContent = forecast ? needed(plan) : "";
  // of this stop rule, without answers that are gone again
  const rows = [...progress.filter(([n, level]) => level !== null && n < model.answers).sort((a, b) => a[0] - b[0]),
    [model.answers, stop.value]];
  growth(get("growth"), rows, stop.target, forecast);
  if (progress.length > 1) over_time(get("speed"), progress);
}

// about how many, and in brackets what 10 % and 90 % of the imagined futures take
function needed({ low, median, high }) {
  const value = (n, name) => (n !== null ? number(n) : name === "answers" ? say("beyond", { n: 300 }) : say("more"));
  const range = (name) => say("range", { low: value(low[name], name), high: value(high[name], name) });
  if (median.answers === null) return `${say("need_many")} ${range("answers")}`;
  const part = (name) => `${say(`need_${name}`, { n: number(median[name]) })} ${range(name)}`;
  return `${["answers", "people", "money"].filter((name) => median[name] !== null).map(part).join(", ")}.`;
}

function groups(known) {
  if (!known) {
    get("groups-text").textContent = say("groups_early");
    get("groups").replaceChildren();
    return;
  }
  const divisive = known.divisive.length ? ` ${say("divide", { items: known.divisive.join(", ") })}` : "";
  const sentence = say(`groups_${known.verdict.replace(" ", "_")}`, { n: number(known.groups.length) });
  get("groups-text").textContent = `${sentence}${divisive}`;
  get("groups-text").title = known.sentence;
  const node = element("table", { class: "rows loose", role: "table" });
  if (known.groups.length) {
    const whole = known.groups.reduce((sum, group) => sum + group.people, 0);
    const fill = table(node, [{ name: say("group_name"), kind: "name" }, { name: say("people"), kind: "num" },
      { name: say("like_best") }, { name: say("more_than_others") }]);
    fill(known.groups, ({ people, best, own }) => {
      const at = known.groups.findIndex((group) => group.best === best);
      return { cells: [[sign(at), say("group", { n: at + 1 })], [meter(people / whole), number(people)],
        best.join(", "), own.join(", ") || "–"] };
    });
  }
  get("groups").replaceChildren(...(known.groups.length ? [node] : []));
}

follow((state) => {
  tiles(state);
  enough(state);
  get("none-ranked").hidden = state.ranking.length > 0;
  if (state.ranking.length) {
    const low = Math.min(...state.ranking.map((row) => row.low));
    const high = Math.max(...state.ranking.map((row) => row.high));
    ranking(get("ranking"), state.ranking, low, high);
  }
  groups(state.communities);
});
