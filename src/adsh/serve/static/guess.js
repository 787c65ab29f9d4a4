// What the items around the query say it is. The service has the guess; here it gets words.

import { byId, count, el } from "./dom.js";

const SURE = 0.9; // a share from here: nine in ten such guesses are right, and about half of the others

/** "94 %"; never 100 % or 0 %: nothing is that sure. */
const percent = (share) => (share > 0.99 ? "over 99 %" : `${Math.max(1, Math.round(100 * share))} %`);

const words = ({ label, share }) => [share < SURE ? "Perhaps" : "Looks like", label, percent(share)];

/** The guess in one line, for those who hear it; nothing where there is none. */
export function guessText(guess) {
  if (!guess) return "";
  const [start, label, share] = words(guess);
  return `${start} ${label}, ${share}`;
}

/** Show the guess above the results, or none. */
export function showGuess(guess) {
  const [place, meaning] = [byId("guess"), byId("guess-meaning")];
  place.hidden = meaning.hidden = !guess;
  if (!guess) return;
  const [start, label, share] = words(guess);
  place.replaceChildren(`${start} `, el("b", {}, label), ", ", el("span", { class: "share" }, share));
  meaning.textContent = `The share of “${label}” among ${count(guess.items, "item")}, the nearer counting far more.`;
}
