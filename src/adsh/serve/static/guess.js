// What the items around the query say it is. The service has the guess; here it gets words.

import { byId, count, el } from "./dom.js";

const SURE = 0.9; // a share from here: nine in ten such guesses are right, and about half of the others

const UNFAMILIAR = 0.01; // a share of known items: fewer look this unfamiliar

/** Whether the query probably shows nothing that the model was trained on. */
const isUnknown = (familiarity) => typeof familiarity === "number" && familiarity < UNFAMILIAR;

/** "94 %"; never 100 % or 0 %: nothing is that sure. */
const percent = (share) => (share > 0.99 ? "over 99 %" : `${Math.max(1, Math.round(100 * share))} %`);

const words = ({ label, share }) => [share < SURE ? "Perhaps" : "Looks like", label, percent(share)];

/** The guess in one line, for those who hear it; nothing where there is none. */
export function guessText(guess, familiarity) {
  if (isUnknown(familiarity)) return "Looks like nothing in this collection";
  if (!guess) return "";
  const [start, label, share] = words(guess);
  return `${start} ${label}, ${share}`;
}

/** Show the guess above the results, or none. */
export function showGuess(guess, familiarity) {
  const [place, meaning] = [byId("guess"), byId("guess-meaning")];
  place.hidden = meaning.hidden = !guess && !isUnknown(familiarity);
  if (isUnknown(familiarity)) {
    place.textContent = "Looks like nothing in this collection";
    const nearest = guess ? ` The nearest items are mostly “${guess.label}”.` : "";
    meaning.textContent = `Fewer than 1 in 100 images of the trained kinds look this unfamiliar.${nearest}`;
    return;
  }
  if (!guess) return;
  const [start, label, share] = words(guess);
  place.replaceChildren(`${start} `, el("b", {}, label), ", ", el("span", { class: "share" }, share));
  meaning.textContent = `The share of “${label}” among ${count(guess.items, "item")}, the nearer counting far more.`;
}
