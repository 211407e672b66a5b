// Data: what there is, taking votes in, ending the study.

import { call, follow, get, number, say } from "./owner.js";
import { bars } from "./pictures.js";

get("import").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData();
  form.set("file", event.target.elements.file.files[0]);
  get("imported").textContent = say("working");
  const taken = await call("POST", "/import", form);
  get("imported").textContent = taken ? say("taken_in", { n: number(taken.rows) }) : get("status").textContent;
  if (taken) event.target.reset();
});

follow(({ counts }) => {
  bars(get("rows"), [
    [say("given_here"), counts.answers - counts.imported, number(counts.answers - counts.imported)],
    [say("imported"), counts.imported, number(counts.imported)],
    [say("skipped"), counts.skips, number(counts.skips)],
  ], [say("kind"), say("answers")]);
});
