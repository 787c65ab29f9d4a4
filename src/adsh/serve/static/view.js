// One item, large: from its card, with arrows to those before and after it.

import { ItemImages } from "./api.js";
import { byId, el } from "./dom.js";
import { apart, closeness, describe, keyLink } from "./results.js";

let items = [];
let at = 0;
let bits = 0;
let images = new ItemImages();

/** How near an item is; nothing of one that was not searched for. */
const nearness = ({ distance }) => (distance === undefined ? "" : `${closeness(distance, bits)}, ${apart(distance)}`);

function show(to) {
  at = to;
  const item = items[at];
  const { label, facts } = describe(item);
  images.close();
  images = new ItemImages();
  const img = el("img", { alt: label ? `${label}, ${item.key}` : item.key, draggable: "false" });
  byId("view-image").replaceChildren(img);
  images.show(img, item.key, () => byId("view-image").replaceChildren(el("span", { class: "none" }, "There is no image of it.")));
  byId("view-title").textContent = label ?? item.key.split("/").pop();
  byId("view-place").textContent = `${at + 1} of ${items.length}`;
  byId("view-distance").textContent = nearness(item);
  byId("view-key").textContent = item.key;
  byId("view-facts").textContent = facts;
  byId("view-search").href = keyLink(item.key);
  byId("view-back").disabled = at === 0;
  byId("view-next").disabled = at === items.length - 1;
}

const step = (by) => items[at + by] && show(at + by);

/** Show one of these items large. */
export function enlarge(all, first, codeLength) {
  [items, bits] = [all, codeLength];
  show(first);
  byId("view").showModal();
  byId("view-title").focus(); // not a button: Enter should not leave at once
}

export const closeView = () => byId("view").open && byId("view").close();

export function listenToView() {
  const view = byId("view");
  byId("view-close").addEventListener("click", closeView);
  byId("view-back").addEventListener("click", () => step(-1));
  byId("view-next").addEventListener("click", () => step(1));
  byId("view-search").addEventListener("click", closeView);
  view.addEventListener("click", (event) => event.target === view && closeView()); // what is around it
  view.addEventListener("close", () => images.close());
  view.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    step(by);
  });
}
