// The grid of what was found: a link for each item, which searches from it.

import { bitsOf, differenceText, differing, strip } from "./bits.js";
import { count, el, svg } from "./dom.js";

const LABELS = ["class", "label", "labels", "classes", "name", "title"]; // what people call an item, best first

/** The field of the metadata that says what an item is. */
export const labelField = (names) => LABELS.find((name) => names.includes(name));

export const keyLink = (key) => `#key=${encodeURIComponent(key)}`;

/** How near a result is, in words; docs/howto/serve.md says what they mean. */
export function closeness(distance, bits) {
  const word = [[16, "very close"], [8, "close"], [4, "less close"]].find(([part]) => distance <= bits / part);
  return word?.[1] ?? "far";
}

export const apart = (distance) => (distance === 0 ? "same code" : `${count(distance, "bit")} apart`);

function said(value) {
  if (Array.isArray(value)) return value.map(said).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The image of an item, or its key where there is none; `seen` is told which. */
export function itemImage(key, images, seen = () => {}) {
  const frame = el("span", { class: "frame" });
  const none = () => (seen(false), frame.replaceChildren(el("span", { class: "none", "aria-hidden": "true" }, key.split("/").pop())));
  if (images) {
    const img = el("img", { alt: "", draggable: "false", loading: "lazy", decoding: "async", width: 160, height: 160 });
    img.addEventListener("load", () => seen(true));
    frame.append(img);
    images.show(img, key, none);
  } else none();
  return frame;
}

/** What an item is, and what else is known of it. */
export function describe({ metadata }) {
  const label = labelField(Object.keys(metadata ?? {}));
  const others = Object.entries(metadata ?? {}).filter(([name, value]) => name !== label && value !== null && value !== "");
  return {
    label: label && said(metadata[label]),
    facts: others.map(([name, value]) => `${name} ${said(value)}`).join(" · "),
  };
}

/** How near a match is: a word and, next to its bits where these are shown, their number. */
function distanceOf({ distance }, bits) {
  if (distance === undefined) return null;
  return el(
    "span",
    { class: "distance", title: apart(distance) },
    el("span", { class: "in-words" }, closeness(distance, bits)),
    el("span", { class: "in-bits" }, apart(distance)),
  );
}

const LENS = "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm4.8 11.3L20 20M10.5 7.8v5.4M7.8 10.5h5.4";

/**
 * @param {{key: string, distance?: number, metadata: object?, code?: string}} match
 * @param {number[]?} queryBits the bits that were searched for
 * @param {{enlarge: function, seen: function, choose: Node?}} on shows the item's image large; is told whether there is
 *   one; a box to choose the item by
 */
export function card(match, images, queryBits, { enlarge, seen, choose }) {
  const { label: shown, facts } = describe(match);
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
      itemImage(match.key, images, images ? seen : undefined),
      el(
        "span",
        { class: "line" },
        shown && el("b", { class: "label", title: shown }, shown),
        distanceOf(match, queryBits?.length),
      ),
      bits,
      el("span", { class: "key", title: match.key }, el("bdi", {}, match.key)),
      facts && el("span", { class: "facts", title: facts }, facts),
      el("span", { class: "away" }, "Search from this."),
    ),
    choose,
    images &&
      el(
        "button",
        { type: "button", class: "enlarge", "aria-label": `Enlarge ${match.key}`, title: "Enlarge", click: enlarge },
        svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: LENS })),
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
