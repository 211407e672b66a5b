// All items: the ranking by the page, search, adding, retiring and bringing back.

import { button, call, follow, get, list, say } from "./owner.js";
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

follow(() => items.later());
