// The forms of settings: what was changed is sent, and what was refused is said beside it.

import { button, call, element, get, say } from "./owner.js";

function check(given = { prompt: "", options: [], right: 0 }) {
  const prompt = element("input", { value: given.prompt, required: true });
  const options = element("textarea", { rows: 3, required: true });
  options.value = given.options.join("\n");
  const right = element("input", { type: "number", min: 1, value: given.right + 1, required: true });
  const node = element("fieldset", {}, element("label", {}, say("check_prompt"), " ", prompt),
    element("label", {}, say("check_options"), " ", options), element("label", {}, say("check_right"), " ", right));
  node.append(button(say("remove"), () => node.remove()));
  node.read = () => ({ prompt: prompt.value, options: lines(options.value), right: Number(right.value) - 1 });
  return node;
}

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

function read(setting) {
  const { kind, optional } = setting.dataset;
  const field = setting.querySelector("input, select, textarea");
  if (kind === "boolean") return field.checked;
  if (kind === "checks") return [...setting.querySelectorAll("fieldset")].map((node) => node.read());
  if (kind === "number") return field.value === "" && optional ? null : Number(field.value);
  if (kind === "lines") return lines(field.value);
  if (kind === "json") return JSON.parse(field.value || "null");
  return field.value;
}

for (const setting of document.querySelectorAll('[data-kind="checks"]')) {
  const place = setting.querySelector(".checks");
  place.append(...JSON.parse(place.dataset.value).map(check));
  setting.querySelector(".new-check").addEventListener("click", () => {
    place.append(check());
    place.lastChild.querySelector("input").focus();
  });
}

for (const form of document.querySelectorAll("form.settings")) {
  const settings = [...form.querySelectorAll(".setting")];
  const before = new Map(settings.map((setting) => [setting, JSON.stringify(read(setting))]));
  const saved = form.querySelector(".saved");
  form.addEventListener("input", () => { saved.textContent = ""; });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const config = {};
    try {
      for (const setting of settings) {
        const value = read(setting);
        if (JSON.stringify(value) !== before.get(setting)) config[setting.dataset.name] = value;
      }
    } catch (error) {
      saved.textContent = error.message;
      return;
    }
    if (!Object.keys(config).length) {
      saved.textContent = say("nothing_changed");
      return;
    }
    const done = await call("PATCH", "", { config });
    saved.textContent = done ? say("saved") : get("status").textContent;
    if (done) for (const setting of settings) before.set(setting, JSON.stringify(read(setting)));
  });
}
