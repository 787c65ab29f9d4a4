// Corrections: choose results, say what they are or that their label is wrong, and take that back.

import { correct, undoCorrection } from "./api.js";
import { byId, count, el } from "./dom.js";
import { describe } from "./results.js";

const chosen = new Map(); // key: label
let boxes = [];
let last = null; // the correction that can be undone
let done = () => {};
let failed = () => {};

const bar = () => byId("correct");

/** A box at a result, to choose it by. */
export function chooser(match) {
  const { label } = describe(match);
  const box = el("input", {
    type: "checkbox",
    "aria-label": `Correct ${match.key}`,
    change: () => {
      if (box.checked) chosen.set(match.key, label);
      else chosen.delete(match.key);
      last = null;
      show();
    },
  });
  boxes.push(box);
  return el("label", { class: "choose", title: "Correct its label" }, box);
}

/** Forget what was chosen, as other results are shown. */
export function forgetChosen() {
  chosen.clear();
  boxes = [];
  if (!last) bar().hidden = true;
}

function show() {
  bar().hidden = !chosen.size && !last;
  byId("correct-form").hidden = !chosen.size;
  byId("correct-undo").hidden = !last || chosen.size > 0;
  const labels = new Set(chosen.values());
  const one = labels.size === 1 && [...labels][0];
  const what = chosen.size ? `${count(chosen.size, "item")} chosen${one ? `, labelled ${one}` : ""}` : "";
  byId("correct-what").textContent = chosen.size ? what : saidOf(last);
}

function saidOf(correction) {
  if (!correction) return "";
  const { items } = correction;
  const kept = items.filter((item) => item.labels.length && !item.code_changed).length;
  const codes = kept ? ` ${count(kept, "item")} keep${kept === 1 ? "s" : ""} the code until the model is updated.` : "";
  return `${count(items.length, "item")} corrected.${codes}`;
}

async function send(items) {
  try {
    last = await correct({ items });
    chosen.clear();
    byId("correct-label").value = "";
    show();
    done();
  } catch (problem) {
    failed(problem);
  }
}

const keys = () => [...chosen.keys()];

/** @param {object} info of the service @param {function} after is called when labels changed, or not: (problem) */
export function listenToCorrections(info, { changed, problem }) {
  [done, failed] = [changed, problem];
  const names = info.fields?.class?.values ?? [];
  byId("labels").replaceChildren(...names.map((name) => el("option", { value: name })));
  byId("correct-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const label = byId("correct-label").value.trim();
    if (label) send(keys().map((key) => ({ key, labels: [label] })));
  });
  byId("correct-wrong").addEventListener("click", () => send(keys().map((key) => ({ key, wrong: true }))));
  byId("correct-cancel").addEventListener("click", () => {
    for (const box of boxes) box.checked = false;
    chosen.clear();
    show();
  });
  byId("correct-undo").addEventListener("click", async () => {
    try {
      await undoCorrection(last.number);
      last = null;
      show();
      done();
    } catch (reason) {
      failed(reason);
    }
  });
}
