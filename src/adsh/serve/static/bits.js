// Codes as strips of bars: a one is a dark bar, a zero a pale one; where two codes differ the bar is tall and coloured.

import { svg } from "./dom.js";

const ROW = 64; // bits in one line of a strip

/** The bits of a code in hexadecimal, first bit first. */
export function bitsOf(hex, bits) {
  return Array.from({ length: bits }, (_, at) => (parseInt(hex[at >> 2], 16) >> (3 - (at & 3))) & 1);
}

/** Where two codes differ, counted from 0. */
export const differing = (one, other) => one.flatMap((bit, at) => (bit === other[at] ? [] : [at]));

/** "differs in bits 4, 17 and 30": for those who do not see the strip. */
export function differenceText(places, bits) {
  if (!places.length) return `all ${bits} bits are the same`;
  const named = places.slice(0, 12).map((at) => at + 1);
  const more = places.length - named.length;
  return `differs in ${places.length} of ${bits} bits: ${named.join(", ")}${more ? ` and ${more} more` : ""}`;
}

/** An SVG of the bits: all full bars, or where `marked` is given those tall and the others low. */
export function strip(bits, marked = null) {
  const [rows, width] = [Math.ceil(bits.length / ROW), Math.min(bits.length, ROW)];
  const tall = new Set(marked ?? []);
  const paths = { zero: "", one: "", marked: "" };
  bits.forEach((bit, at) => {
    const kind = tall.has(at) ? "marked" : bit ? "one" : "zero";
    const [x, y] = [at % ROW, Math.floor(at / ROW) * 10];
    const [top, height] = !marked || kind === "marked" ? [0, 9] : [2.5, 4];
    paths[kind] += `M${x + 0.1} ${y + top}h.8v${height}h-.8z`;
  });
  const viewBox = `0 0 ${width} ${rows * 10 - 1}`;
  return svg(
    "svg",
    { class: `bits rows-${Math.min(rows, 16)}`, viewBox, preserveAspectRatio: "none", "aria-hidden": "true" },
    Object.entries(paths).filter(([, d]) => d).map(([kind, d]) => svg("path", { class: kind, d })),
  );
}
