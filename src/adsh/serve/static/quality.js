// "How good is this model?": the figures of its evaluation, in words first.

import { count, el, svg } from "./dom.js";

const figure = (value) => value.toFixed(3);
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const percent = (value) => `${Math.round(value * 100)} %`;

/** What a column of the evaluation means to somebody who searches. */
const MEANING = {
  learned: "items that were there, with their labels, when the model learned",
  network: "items that the network codes from their pixels alone",
  hashed: "items coded by the method's hash function",
};

export function showQuality(place, info) {
  const judged = info.evaluations[0];
  place.replaceChildren(...(judged ? figures(judged) : [notJudged()]), about(info));
}

function notJudged() {
  return el(
    "div",
    { class: "empty" },
    el("h2", {}, "This model has not been judged yet"),
    el("p", {}, "Judging it searches with labelled pictures that it has not seen, and counts how many of those found are right."),
    el("pre", { tabindex: "0", "aria-label": "Command" }, el("code", {}, "adsh evaluate MODEL")),
    el("p", { class: "soft" }, "Then start the service again: the figures appear here."),
  );
}

function figures(judged) {
  const columns = Object.entries(judged.columns);
  const [, first] = columns[0];
  const at = first.ks.reduce((best, k, i) => (k <= Math.min(10, judged.database) ? i : best), 0);
  const right = first.precision[at];
  const ks = first.ks.map((k, i) => [k, i]).filter(([k, i]) => k <= judged.database || i === 0);
  const lines = (values) => columns.map(([name, column]) => ({ name, title: column.title, points: values(column) }));
  return [
    el(
      "p",
      { class: "lead" },
      `Of the ${count(first.ks[at], "nearest item")} to a picture it has not seen, `,
      el("b", {}, percent(right)),
      " are of the same kind, on average.",
    ),
    el("p", { class: "soft" }, `Measured with ${count(judged.queries, "query", "queries")} over ${count(judged.database, "item")}, ${judged.bits} bits each. MAP, the mean average precision, is 1 where all of the same kind come first.`),
    el("div", { class: "numbers" }, columns.map(([name, column]) => number(name, column, at))),
    el(
      "div",
      { class: "figures" },
      chart("How many of the first results are right", "results looked at", true, lines((c) => ks.map(([k, i]) => [k, c.precision[i]]))),
      chart("How many are right within a distance", "bits apart, at most", false, lines((c) => c.radius_precision.map((p, r) => [r, p]))),
    ),
    table(columns, ks),
  ];
}

function number(name, column, at) {
  const fact = (term, text) => [el("dt", {}, term), el("dd", {}, text)];
  return el(
    "section",
    { class: "number", "aria-label": column.title },
    el("h2", {}, el("span", { class: `swatch ${name}`, "aria-hidden": "true" }), capital(column.title)),
    el("p", { class: "soft" }, MEANING[name] ?? ""),
    el("p", { class: "big" }, el("b", {}, figure(column.map_expected)), el("span", { class: "soft" }, " MAP")),
    el(
      "dl",
      {},
      fact(`precision of the first ${column.ks[at]}`, figure(column.precision[at])),
      fact("MAP, ties in the index's order", figure(column.map_stable)),
      fact("NDCG", figure(column.ndcg)),
      fact("distinct codes", column.distinct_codes.toLocaleString("en")),
    ),
  );
}

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [480, 260, 40, 40, 10];

/** Round numbers along an axis. */
function ticks(most, log) {
  if (log) return [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000].filter((k) => k <= most);
  const step = [1, 2, 4, 8, 16, 32, 64, 128, 256].find((s) => most / s <= 8) ?? most;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
}

function chart(title, axis, log, lines) {
  const most = Math.max(...lines[0].points.map(([x]) => x));
  const least = log ? 1 : 0;
  const scale = log ? (x) => Math.log(x) / Math.log(Math.max(most, 2)) : (x) => (x - least) / (most - least || 1);
  const x = (value) => LEFT + scale(value) * (WIDTH - LEFT - 14);
  const y = (value) => TOP + (1 - value) * (HEIGHT - TOP - BOTTOM);
  const label = (attributes, text) => svg("text", attributes, text);
  const ends = lines.map((l) => `${l.title}: ${figure(l.points[0][1])} at ${l.points[0][0]}, ${figure(l.points.at(-1)[1])} at ${l.points.at(-1)[0]}`);
  return el(
    "figure",
    {},
    el("h3", {}, title),
    svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}. ${ends.join("; ")}. The table below has every figure.` },
      [0, 0.25, 0.5, 0.75, 1].map((v) => svg("g", {}, svg("path", { class: "rule", d: `M${LEFT} ${y(v)}H${WIDTH - 14}` }), label({ x: LEFT - 8, y: y(v) + 4, "text-anchor": "end" }, percent(v)))),
      ticks(most, log).map((v) => label({ x: x(v), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, String(v))),
      label({ x: (LEFT + WIDTH) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, axis),
      lines.map((line) => svg("path", { class: `line ${line.name}`, d: line.points.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("") })),
    ),
    el("figcaption", {}, lines.map((line) => el("span", {}, el("span", { class: `swatch ${line.name}`, "aria-hidden": "true" }), line.title))),
  );
}

function table(columns, ks) {
  const head = el("tr", {}, el("th", { scope: "col" }, "first"), columns.flatMap(([, c]) => [el("th", { scope: "col" }, `precision, ${c.title}`), el("th", { scope: "col" }, `recall, ${c.title}`)]));
  const rows = ks.map(([k, i]) => el("tr", {}, el("th", { scope: "row" }, String(k)), columns.flatMap(([, c]) => [el("td", {}, figure(c.precision[i])), el("td", {}, figure(c.recall[i]))])));
  return el("details", { class: "all" }, el("summary", {}, "The figures as a table"), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Precision and recall" }, el("table", {}, el("thead", {}, head), el("tbody", {}, rows))));
}

function about(info) {
  const told = Object.entries({
    ...info.model,
    "items in the index": info.items.toLocaleString("en"),
    "distinct codes in the index": info.distinct_codes.toLocaleString("en"),
    runtime: info.runtime,
  }).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value) && value !== "");
  return el("section", { class: "about" }, el("h2", {}, "What is served"), el("dl", {}, told.flatMap(([name, value]) => [el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, String(value))])));
}
