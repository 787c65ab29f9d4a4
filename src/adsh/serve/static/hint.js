// Why there are no images of the items, and how to get them.

import { byId, el } from "./dom.js";

const START = "adsh serve MODEL --images photos/";
const ENOUGH = 4; // images that are missing, and none that is there

const WHY = {
  unset: "Only names are shown, because the service was started without --images. To see the images, start it with their folder:",
  elsewhere: "None of these images is in the folder that the service was given. Start it with the one that was indexed:",
};

export function imageHint(why) {
  const place = byId("hint");
  place.hidden = !why;
  if (why) place.replaceChildren(el("p", {}, WHY[why]), el("pre", { tabindex: "0", "aria-label": "Command" }, el("code", {}, START)));
}

/** Returns a function that is told of each image whether it is there; shows the hint once it seems that none is. */
export function countImages(of) {
  let [missing, there] = [0, 0];
  imageHint(null);
  return (is) => {
    is ? there++ : missing++;
    imageHint(!there && missing >= Math.min(ENOUGH, of) ? "elsewhere" : null);
  };
}
