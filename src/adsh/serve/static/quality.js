// "How good is this model?": the figures of its evaluation, in words first.

import { chart, percent, swatch } from "./chart.js";
import { count, el } from "./dom.js";

/** What a column of the evaluation means to somebody who searches. */
const MEANING = {
  learned: "items of the training database, with the codes that were learned from their labels",
  network: "items of the training database, encoded by the network like a query",
  hashed: "items of the database, encoded by the method's hash function",
  new: "items that no training saw: each query searched among the others",
};
const MAP = "MAP, the mean average precision, is 1 where all of the same kind come first.";

const figure = (value) => value?.toFixed(3) ?? "–"; // a column over fewer items has fewer places
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const term = ([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))];
const terms = (pairs) => el("dl", {}, pairs.flatMap(term));

export function showQuality(place, info) {
  const evaluation = info.evaluations[0];
  place.replaceChildren(...(evaluation ? figures(evaluation) : [notEvaluated(info.runtime === "onnx")]), about(info));
}

function notEvaluated(exported) {
  const commands = exported ? "adsh evaluate MODEL\nadsh export MODEL --out NEW" : "adsh evaluate MODEL";
  const then = exported
    ? "This is an export, which has the figures if its model was evaluated before: serve the new one, and they appear here."
    : "Then start the service again: the figures appear here.";
  return el(
    "div",
    { class: "empty" },
    el("h2", {}, "This model has not been evaluated yet"),
    el("p", {}, "An evaluation searches with labelled images that the model has not seen, and counts how many results are right."),
    el("pre", { tabindex: "0", "aria-label": "Command" }, el("code", {}, commands)),
    el("p", { class: "soft" }, then),
  );
}

function figures({ columns, queries, database, bits }) {
  const all = Object.entries(columns);
  const [[, first]] = all;
  const places = first.ks.map((_, at) => at).filter((at) => at === 0 || first.ks[at] <= database);
  const ten = places.findLast((at) => first.ks[at] <= 10) ?? 0; // the first ten, or as many as there are
  const lines = (points) => all.map(([name, column]) => ({ name, title: column.title, points: points(column) }));
  const byPlace = lines((column) => places.filter((at) => at < column.ks.length).map((at) => [column.ks[at], column.precision[at]]));
  const byRadius = lines((column) => column.radius_precision.map((value, radius) => [radius, value]));
  const measured = `${count(queries, "query", "queries")} over ${count(database, "item")}, ${bits} bits each`;
  return [
    el(
      "p",
      { class: "lead" },
      `Of the ${count(first.ks[ten], "nearest item")} to an image it has not seen, `,
      el("b", {}, percent(first.precision[ten])),
      " are of the same kind, on average.",
    ),
    el("p", { class: "soft" }, `Measured with ${measured}. ${MAP}`),
    el("div", { class: "numbers" }, all.map(([name, column]) => numbers(name, column, ten))),
    el(
      "div",
      { class: "figures" },
      chart("How many of the first results are right", "results looked at", byPlace, { log: true }),
      chart("How many are right within a distance", "bits apart, at most", byRadius),
    ),
    table(all.map(([, column]) => column), places),
  ];
}

function numbers(name, column, at) {
  return el(
    "section",
    { class: "number", "aria-label": column.title },
    el("h2", {}, swatch(name), capital(column.title)),
    el("p", { class: "soft" }, MEANING[name] ?? ""),
    el("p", { class: "big" }, el("b", {}, figure(column.map_expected)), el("span", { class: "soft" }, " MAP")),
    terms([
      [`precision of the first ${column.ks[at] ?? "few"}`, figure(column.precision[at])],
      ["MAP, ties in the index's order", figure(column.map_stable)],
      ["NDCG", figure(column.ndcg)],
      ["distinct codes", column.distinct_codes.toLocaleString("en")],
    ]),
  );
}

/** Everything that is drawn, as numbers. */
function table(columns, places) {
  const cell = (value) => el("td", {}, figure(value));
  const heading = (text) => el("th", { scope: "col" }, text);
  const heads = columns.flatMap(({ title }) => [heading(`precision, ${title}`), heading(`recall, ${title}`)]);
  const rows = places.map((at) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, String(columns[0].ks[at])),
      columns.flatMap(({ precision, recall }) => [cell(precision[at]), cell(recall[at])]),
    ),
  );
  return el(
    "details",
    { class: "all" },
    el("summary", {}, "The figures as a table"),
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Precision and recall" },
      el("table", {}, el("thead", {}, el("tr", {}, heading("first"), heads)), el("tbody", {}, rows)),
    ),
  );
}

function about(info) {
  const facts = Object.entries({
    ...info.model,
    "items in the index": info.items.toLocaleString("en"),
    "distinct codes in the index": info.distinct_codes.toLocaleString("en"),
    runtime: info.runtime,
  });
  const plain = facts.filter(([, value]) => ["string", "number", "boolean"].includes(typeof value) && value !== "");
  const named = plain.map(([name, value]) => [name.replaceAll("_", " "), value]);
  return el("section", { class: "about" }, el("h2", {}, "What is served"), terms(named));
}
