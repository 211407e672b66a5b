// All items: the ranking by the page, search, adding, retiring and bringing back.

import { button, call, element, follow, get, list, number, say, table } from "./owner.js";
import { ranking } from "./owner_ranking.js";

function action(row) {
  if (row.active) {
    return button(say("retire"), async () => {
      if (confirm(say("retire_sure", { name: row.name })) && await call("DELETE", `/items/${row.item}`)) items.load();
    }, say("retire_one", { name: row.name }));
  }
  return button(say("restore"), async () => {
    if (await call("POST", `/items/${row.item}/restore`)) items.load();
  }, say("restore_one", { name: row.name }));
}

const items = list("/ranking", get("ranking"), ({ rows, low, high }) => {
  ranking(get("ranking"), rows, low, high, action);
});

get("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { name, body, media, file } = event.target.elements;
  const described = [...event.target.querySelectorAll(".feature")];
  const features = Object.fromEntries(described.map((field) => [field.name, Number(field.value)]));
  const [content] = file.files;
  const form = new FormData();
  if (content) {
    form.set("name", name.value);
    form.set("medium", content.type.split("/")[0]);
    form.set("features", JSON.stringify(features));
    form.set("file", content);
  }
  const made = content
    ? await call("POST", "/items/upload", form)
    : await call("POST", "/items", [{ name: name.value, media: media.value, body: body.value, features }]);
  if (!made) return;
  event.target.reset();
  name.focus();
  items.load();
});

// ---- what participants suggest, where the study asks for it

const features = [...document.querySelectorAll("#add .feature")].map((field) => field.name);
const fill = get("suggestions") && table(get("suggestions"), [
  { name: say("item"), kind: "name" }, { name: say("people"), kind: "num" },
  ...features.map((name) => ({ name })), { name: say("actions"), kind: "act" }]);

async function suggestions() {
  const rows = await call("GET", "/suggestions") ?? [];
  fill(rows.slice(0, 50), ({ id, text, times }) => {
    const fields = features.map((name) => element("input", { type: "number", step: "any", "aria-label": `${name}: ${text}` }));
    const decide = (add) => async () => {
      const values = Object.fromEntries(fields.map((field, k) => [features[k], Number(field.value)]));
      if (add && fields.some((field) => field.value === "")) fields.find((field) => field.value === "").focus();
      else if (await call("POST", `/suggestions/${id}`, add ? { add, features: values } : { add })) {
        suggestions();
        items.load();
      }
    };
    return { cells: [text, number(times), ...fields, [
      button(say("add"), decide(true), say("add_one", { name: text })), " ",
      button(say("decline"), decide(false), say("decline_one", { name: text }))]] };
  });
}
if (fill) suggestions();

follow(() => items.later());
