// People: how they answer, leaving some out with the effect shown before, the map, invitations.

import { button, call, element, follow, get, list, moment, number, percent, say, table } from "./owner.js";
import { utility } from "./owner_ranking.js";
import { axis, interval, map, meter } from "./pictures.js";

const selected = new Set();
let marked = [], groups = [], points = [];

function share({ k, n, low, high } = { n: 0 }, marks = []) {
  if (!n) return "–";
  const words = say("share_words", { k: number(k), n: number(n), low: percent(low), high: percent(high) });
  return [interval({ value: k / n, from: low, to: high }, 0, 1, words, marks),
    element("span", { class: "figures" }, `${number(k)}/${number(n)}`)];
}

const short = (id) => id.slice(0, 6);
const fill = table(get("people"), [
  { name: say("selected"), kind: "pick", head: element("span", { class: "sr" }, say("selected")) },
  { name: say("person"), kind: "name" }, { name: say("answers"), kind: "num" }, { name: say("skipped"), kind: "num" },
  { name: say("seconds_each"), kind: "num" }, { name: say("same_again") }, { name: say("chose_first") },
  { name: say("checks"), kind: "num" }, { name: say("look_closer"), kind: "why" },
  { name: say("actions"), kind: "act", head: element("span", { class: "sr" }, say("actions")) },
]);

function drawPeople(found) {
  ({ marked, map: points } = found);
  get("mark").disabled = !marked.length;
  const most = Math.max(1, ...found.rows.map((row) => row.answers));
  fill(found.rows, (row) => {
    const name = short(row.id);
    const pick = element("input", { type: "checkbox", value: row.id, "aria-label": say("select_one", { name }) });
    pick.checked = selected.has(row.id);
    pick.addEventListener("change", () => {
      if (pick.checked) selected.add(row.id);
      else selected.delete(row.id);
      buttons();
    });
    const erase = button(say("erase"), async () => {
      if (confirm(say("erase_sure", { name })) && await call("DELETE", `/participants/${row.id}`)) {
        selected.delete(row.id);
        people.load();
      }
    }, say("erase_one", { name }));
    const { right = 0, wrong = 0 } = row.checks ?? {};
    return { kind: row.excluded ? "retired" : null, cells: [
      pick, [element("span", {}, name), row.excluded ? element("span", { class: "badge" }, say("left_out")) : ""],
      [meter(row.answers / most), number(row.answers)], number(row.skipped ?? 0),
      row.seconds ? number(row.seconds, 1) : "–", share(row.reliability), share(row.left, [0.5]),
      right + wrong ? [meter(right / (right + wrong)), `${right}/${right + wrong}`] : "–",
      row.look_closer.length ? element("span", { class: "warn" }, row.look_closer.map((why) => say(`why_${why}`)).join(", ")) : "–",
      erase] };
  });
  buttons();
  drawMap();
}

function buttons() {
  const n = number(selected.size);
  for (const name of ["exclude", "include"]) get(name).disabled = !selected.size;
  get("exclude").textContent = selected.size ? say("exclude_n", { n }) : say("exclude_selected");
  get("include").textContent = selected.size ? say("include_n", { n }) : say("include_selected");
}

function drawMap() {
  get("map").hidden = !points.length;
  if (points.length) map(get("map"), points, groups);
}

const people = list("/people", get("people"), drawPeople);

get("mark").addEventListener("click", () => {
  for (const id of marked) selected.add(id);
  for (const pick of get("people").querySelectorAll("input")) pick.checked = selected.has(pick.value);
  buttons();
});

// the effect is shown first; only the button below it takes it
async function preview(excluded) {
  const ids = [...selected], box = get("effect");
  const body = { people: ids, excluded };
  const [now, then] = await Promise.all([call("GET", "/ranking"), call("POST", "/participants/exclude", { ...body, preview: true })]);
  if (!now || !then) return;
  const before = new Map(now.rows.map((row) => [row.item, row]));
  const node = element("table", { class: "rows", role: "table" });
  const rows = then.ranking.slice(0, 10);
  const low = Math.min(...rows.map((row) => row.low)), high = Math.max(...rows.map((row) => row.high));
  const { node: head, values } = axis(low, high, say("utility"));
  const draw = table(node, [{ name: "#", kind: "rank" }, { name: say("item"), kind: "name" },
    { name: say("utility"), kind: "wide", head }, { name: say("rank_now"), kind: "num" }]);
  draw(rows, (row) => {
    const was = before.get(row.item)?.rank ?? null;
    const moved = was === null || was === row.rank ? "" : was > row.rank ? " ↑" : " ↓";
    return { cells: [number(row.rank), row.name, utility(row, low, high, values),
      `${was === null ? "> 50" : number(was)}${moved}`] };
  });
  const take = button(say(excluded ? "do_exclude" : "do_include", { n: number(ids.length) }), async () => {
    if (!await call("POST", "/participants/exclude", { ...body, preview: false })) return;
    selected.clear();
    box.hidden = true;
    people.load();
  }, undefined, "primary");
  box.replaceChildren(
    element("h3", {}, say(excluded ? "effect_out" : "effect_in", { people: number(then.people), answers: number(then.answers) })),
    node, element("p", { class: "actions" }, take, button(say("cancel"), () => { box.hidden = true; })));
  box.hidden = false;
  box.focus();
}
get("exclude").addEventListener("click", () => preview(true));
get("include").addEventListener("click", () => preview(false));

// ---- invitations

const fillInvites = table(get("invitations"), [
  { name: say("label"), kind: "name" }, { name: say("role") }, { name: say("uses_left"), kind: "num" },
  { name: say("ends") }, { name: say("actions"), kind: "act", head: element("span", { class: "sr" }, say("actions")) }]);

async function invitations() {
  const rows = (await call("GET", "/invites"))?.reverse() ?? [];
  fillInvites(rows.slice(0, 50), (row) => ({ cells: [
    row.label || "–", say(`role_${row.role}`), row.uses_left === null ? say("no_limit") : number(row.uses_left),
    row.expires ? moment(row.expires, { dateStyle: "medium" }) : say("never"),
    button(say("revoke"), async () => {
      if (confirm(say("revoke_sure")) && await call("DELETE", `/invites/${row.id}`)) invitations();
    }, say("revoke_one", { name: row.label || row.id.slice(0, 6) }))] }));
}
invitations();

get("invite").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { n, label, uses, days, role } = event.target.elements;
  const made = await call("POST", "/invites", {
    n: Number(n.value), label: label.value, role: role.value,
    uses: role.value === "owner" || !uses.value ? null : Number(uses.value),
    days: days.value ? Number(days.value) : null,
  });
  if (!made) return;
  get("invites").replaceChildren(...made.paths.map((path) => element("li", {}, element("code", {}, location.origin + path))));
  invitations();
});

const open = get("open-link");
if (open.textContent.startsWith("/")) open.textContent = location.origin + open.textContent;

follow(({ communities }) => {
  groups = communities?.groups ?? [];
  const name = communities ? `groups_${communities.verdict.replace(" ", "_")}` : "groups_early";
  get("groups-text").textContent = say(name, { n: number(groups.length) });
  drawMap();
  people.later();
});
