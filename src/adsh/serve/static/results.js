// The grid of what was found: a link for each item, which searches from it.

import { bitsOf, differenceText, differing, strip } from "./bits.js";
import { count, el } from "./dom.js";

const LABELS = ["class", "label", "labels", "classes", "name", "title"]; // what people call an item, best first

/** The field of the metadata that says what an item is. */
export const labelField = (names) => LABELS.find((name) => names.includes(name));

export const keyLink = (key) => `#key=${encodeURIComponent(key)}`;

export const apart = (distance) => (distance === 0 ? "same code" : `${count(distance, "bit")} apart`);

function said(value) {
  if (Array.isArray(value)) return value.map(said).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The image of an item, or its key where there is none. */
export function itemImage(key, images) {
  const frame = el("span", { class: "frame" });
  const none = () => frame.replaceChildren(el("span", { class: "none", "aria-hidden": "true" }, key.split("/").pop()));
  if (images) {
    const img = el("img", { alt: "", draggable: "false", loading: "lazy", decoding: "async", width: 160, height: 160 });
    frame.append(img);
    images.show(img, key, none);
  } else none();
  return frame;
}

function facts(metadata, label) {
  const others = Object.entries(metadata).filter(([name, value]) => name !== label && value !== null && value !== "");
  if (!others.length) return null;
  const text = others.map(([name, value]) => `${name} ${said(value)}`).join(" · ");
  return el("span", { class: "facts", title: text }, text);
}

/**
 * @param {{key: string, distance?: number, metadata: object?, code?: string}} match
 * @param {number[]?} queryBits the bits that were searched for
 */
export function card(match, images, queryBits) {
  const metadata = match.metadata ?? {};
  const label = labelField(Object.keys(metadata));
  const shown = label && said(metadata[label]);
  let bits = null;
  if (queryBits && match.code) {
    const own = bitsOf(match.code, queryBits.length);
    const places = differing(queryBits, own);
    const difference = differenceText(places, queryBits.length);
    bits = el("span", { class: "strip", role: "img", "aria-label": difference }, strip(own, places));
  }
  return el(
    "li",
    {},
    el(
      "a",
      { class: "card", href: keyLink(match.key) },
      itemImage(match.key, images),
      el(
        "span",
        { class: "line" },
        shown && el("b", { class: "label", title: shown }, shown),
        match.distance !== undefined && el("span", { class: "distance" }, apart(match.distance)),
      ),
      bits,
      el("span", { class: "key", title: match.key }, match.key),
      facts(metadata, label),
      el("span", { class: "away" }, "Search from this."),
    ),
  );
}

/** Grey cards of the same size, while the first results are on their way. */
export function skeletons(number) {
  const part = (kind) => el("span", { class: kind });
  const parts = () => ["frame", "bone", "bone short"].map(part);
  const one = () => el("li", { class: "skeleton", "aria-hidden": "true" }, parts());
  return Array.from({ length: number }, one);
}
