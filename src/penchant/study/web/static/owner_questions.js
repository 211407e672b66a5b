// Questions: whether predictions are right, what was asked and how long answers took.

import { call, follow, get, number, percent, say } from "./owner.js";
import { bars, calibration } from "./pictures.js";
import "./forms.js";

let due = null;

async function counts() {
  due = null;
  const found = await call("GET", "/questions");
  if (!found || !found.kinds.length) return;
  bars(get("kinds"), found.kinds.map(({ kind, asked, answered, skipped }) =>
    [say(`kind_${kind}`), asked, say("asked_answered", { asked: number(asked), answered: number(answered), skipped: number(skipped) })]),
  [say("kind"), say("asked")]);
  const ends = found.seconds.map(({ below }) => below);
  bars(get("seconds"), found.seconds.map(({ below, answers }, k) =>
    [below === null ? say("longer", { n: number(ends[k - 1]) }) : say("shorter", { n: number(below, below < 1 ? 1 : 0) }), answers, number(answers)]),
  [say("time"), say("answers")]);
}

follow(({ calibration: known }) => {
  if (known?.n) {
    const score = number(known.log_score, 3).replace("-", "−");
    get("calibration-text").textContent = say("calibration_text", { n: number(known.n), score, coin: number(-0.693, 3).replace("-", "−") });
    calibration(get("calibration"), known.rows.filter((row) => row.won.n));
  }
  due ??= setTimeout(counts, due === null ? 0 : 1000);
});
