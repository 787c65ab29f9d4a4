// Line charts as SVG: shares from 0 to 100 % over a count, which may be on a logarithmic scale.

import { el, svg } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [480, 260, 44, 14, 10, 40];
const SHARES = [0, 0.25, 0.5, 0.75, 1];

export const percent = (value) => `${Math.round(value * 100)} %`;

export const swatch = (name) => el("span", { class: `swatch ${name}`, "aria-hidden": "true" });

/** Round numbers along the axis below. */
function ticks(most, log) {
  if (log) return [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000].filter((k) => k <= most);
  const step = [1, 2, 4, 8, 16, 32, 64, 128, 256].find((one) => most / one <= 8) ?? most;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, at) => at * step);
}

/**
 * @param {string} title
 * @param {string} axis what is counted below
 * @param {{name: string, title: string, points: [number, number][]}[]} lines
 */
export function chart(title, axis, lines, { log = false } = {}) {
  const most = Math.max(...lines[0].points.map(([count]) => count), 1);
  const share = log ? (count) => Math.log(count) / Math.log(Math.max(most, 2)) : (count) => count / most;
  const x = (count) => LEFT + share(count) * (WIDTH - LEFT - RIGHT);
  const y = (value) => TOP + (1 - value) * (HEIGHT - TOP - BOTTOM);
  const text = (content, at) => svg("text", { "text-anchor": "middle", ...at }, content);
  const path = ({ name, points }) => {
    const d = points.map(([count, value], at) => `${at ? "L" : "M"}${x(count).toFixed(1)} ${y(value).toFixed(1)}`);
    return svg("path", { class: `line ${name}`, d: d.join("") });
  };
  const summaries = lines.map((line) => {
    const [[first, high], [last, low]] = [line.points[0], line.points.at(-1)];
    return `${line.title}: ${percent(high)} at ${first}, ${percent(low)} at ${last}`;
  });
  return el(
    "figure",
    {},
    el("h3", {}, title),
    svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}. ${summaries.join("; ")}.` },
      SHARES.map((value) => svg("path", { class: "rule", d: `M${LEFT} ${y(value)}H${WIDTH - RIGHT}` })),
      SHARES.map((value) => text(percent(value), { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" })),
      ticks(most, log).map((count) => text(String(count), { x: x(count), y: HEIGHT - BOTTOM + 18 })),
      text(axis, { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4 }),
      lines.map(path),
    ),
    el("figcaption", {}, lines.map((line) => el("span", {}, swatch(line.name), line.title))),
  );
}
