// How many, how far, and of which class: the controls beside the query.

import { byId, count, el } from "./dom.js";
import { closeness, labelField } from "./results.js";

const MOST = 100; // results that a person looks through
const CHIPS = 12; // more classes than that go into a list
const PAUSE = 180; // milliseconds after the last change

/**
 * Set up the controls; `changed` is called once they rest. Returns what reads the search options, and what allows a
 * larger distance.
 */
export function options(info, changed) {
  const [k, radius] = [byId("k"), byId("radius")];
  let timer = 0;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(changed, PAUSE);
  };
  k.max = Math.max(1, Math.min(MOST, info.limits.max_k, info.items || MOST));
  radius.max = info.bits; // nothing is farther: the end of the slider means any distance
  radius.value = info.bits;
  const show = () => {
    const distance = Number(radius.value);
    const far = distance >= info.bits ? "any distance" : `${closeness(distance, info.bits)} · ${count(distance, "bit")}`;
    byId("k-value").textContent = k.value;
    byId("radius-value").textContent = far;
    k.setAttribute("aria-valuetext", count(Number(k.value), "result"));
    radius.setAttribute("aria-valuetext", far);
  };
  for (const slider of [k, radius]) {
    slider.disabled = false;
    slider.addEventListener("input", () => (show(), soon()));
  }
  show();
  const conditions = classes(info, soon);
  const read = () => ({
    k: Number(k.value),
    radius: Number(radius.value) >= info.bits ? undefined : Number(radius.value),
    filter: conditions(),
  });
  const widen = (distance) => {
    radius.value = distance;
    show();
    changed();
  };
  return { read, widen };
}

/** Chips for the field that says what an item is, or a list where it has many values. */
function classes(info, changed) {
  const hasChoice = (field) => (field.all_values ? field.values.length > 1 : field.type === "text");
  const usable = Object.entries(info.fields).filter(([, field]) => hasChoice(field));
  const informative = ([, field]) => field.type === "text" && field.values.length < Math.max(3, info.items / 2);
  const name = labelField(usable.map(([one]) => one)) ?? usable.find(informative)?.[0];
  if (!name) return () => undefined;
  const { values, all_values: all } = info.fields[name];
  const place = byId("classes");
  const legend = `Only of ${{ labels: "label", classes: "class" }[name] ?? name}`;
  place.querySelector("legend").textContent = legend;
  place.hidden = false;
  if (!all) {
    // a large index was looked at in part: other values can be typed
    const known = el("datalist", { id: "known" }, values.map((value) => el("option", { value: String(value) })));
    const typed = el("input", { type: "text", list: "known", "aria-label": legend, placeholder: "any", input: changed });
    byId("chips").replaceChildren(typed, known);
    return () => (typed.value.trim() ? { [name]: typed.value.trim() } : undefined);
  }
  if (values.length > CHIPS) {
    const choices = values.map((value, at) => el("option", { value: at }, String(value)));
    const list = el("select", { "aria-label": legend, change: changed }, el("option", { value: "" }, "any"), choices);
    byId("chips").replaceChildren(list);
    return () => (list.value === "" ? undefined : { [name]: values[Number(list.value)] });
  }
  const boxes = values.map(() => el("input", { type: "checkbox", change: changed }));
  const chip = (value, at) => el("label", { class: "chip" }, boxes[at], el("span", {}, String(value)));
  byId("chips").replaceChildren(...values.map(chip));
  return () => {
    const chosen = values.filter((_, at) => boxes[at].checked);
    return chosen.length ? { [name]: { in: chosen } } : undefined;
  };
}
