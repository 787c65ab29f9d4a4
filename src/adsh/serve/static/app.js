// The page: the query, its results, and messages. The address holds the query, so that links and the back button
// work: #key=… and #code=…; images are remembered until the page is closed.

import { Failure, info as askInfo, ItemImages, search } from "./api.js";
import { bitsOf, strip } from "./bits.js";
import { chooser, forgetChosen, listenToCorrections } from "./correct.js";
import { byId, count, el } from "./dom.js";
import { listenToDrops } from "./drop.js";
import { guessText, showGuess } from "./guess.js";
import { countImages, imageHint } from "./hint.js";
import { tabs, themeButton } from "./look.js";
import { options } from "./options.js";
import { showQuality } from "./quality.js";
import { card, closeness, itemImage, skeletons } from "./results.js";
import { askToken } from "./token.js";
import { closeView, enlarge, listenToView } from "./view.js";

const FORMATS = "a JPEG, PNG, GIF, WebP, BMP or AVIF file";
const RETRIES = 5; // times that a busy server is tried again

let info = null;
let controls = { read: () => ({}), widen: () => {} };
let query = null; // {image, name} or {key} or {code}
let resultImages = new ItemImages(); // of the results that are shown
let thumb = ""; // the query's own image: a blob: URL of a file,
let thumbImage = new ItemImages(); // or that of an item
let running = null;
let early = null; // a file that came before the page knew what is served
let retry = 0;
const uploads = new Map(); // the images searched with so far, for the back button

const { openSearch } = tabs();
const say = (text) => (byId("said").textContent = text);

// What goes wrong ---------------------------------------------------------------------------------------------------

function notice(title, text, action, run) {
  clearTimeout(retry);
  const button = action && el("button", { type: "button", class: "plain", click: run }, action);
  byId("notice").replaceChildren(el("div", {}, el("h2", {}, title), el("p", {}, text)), ...(button ? [button] : []));
  byId("notice").hidden = false;
  byId("notice").scrollIntoView({ block: "nearest" });
}

function quiet() {
  clearTimeout(retry);
  byId("notice").hidden = true;
  byId("notice").replaceChildren();
}

/** Show what went wrong; `again` repeats it. */
function explain(problem, again, tries = 0) {
  if (!(problem instanceof Failure)) throw problem;
  say("");
  if (problem.kind === "token") {
    notice("This service needs a token", "Ask the administrator for one.", "Enter the token", () => signIn(again));
  } else if (problem.kind === "unreachable") {
    notice("The server does not answer", problem.message, "Try again", () => again());
  } else if (problem.kind === "busy") {
    const wait = Math.min(problem.wait || 2, 30);
    const more = tries < RETRIES;
    const what = problem.message.replace(/[.:].*$/, ""); // less "try again", which the page does
    const text = more ? `${what}. Trying again in ${count(wait, "second")}.` : problem.message;
    notice("The server is busy", text, "Try now", () => again());
    if (more) retry = setTimeout(() => again(tries + 1), wait * 1000);
  } else {
    const unusable = query?.image && problem.status === 422;
    notice(unusable ? "This image cannot be used" : "That did not work", problem.message);
  }
}

async function signIn(then) {
  const token = await askToken();
  if (token) {
    quiet();
    then();
  } else explain(new Failure("token", ""), then);
}

// Searching ---------------------------------------------------------------------------------------------------------

async function run({ focus = false, tries = 0 } = {}) {
  running?.abort();
  if (!query || !info) return;
  const request = (running = new AbortController());
  const results = byId("results");
  const current = query;
  quiet();
  byId("empty").replaceChildren();
  results.setAttribute("aria-busy", "true");
  if (!results.querySelector(".card .distance")) {
    resultImages.close();
    results.replaceChildren(...skeletons(Math.min(controls.read().k, 24)));
  }
  say("Searching…");
  try {
    const { name, ...question } = current;
    const own = question.key ? { include_self: false } : {}; // it is beside the results
    const chosen = controls.read();
    const answer = await search({ ...question, ...own }, chosen, request.signal);
    if (request.signal.aborted) return;
    show(answer, current, chosen);
    if (focus) {
      byId("query-title").focus({ preventScroll: true });
      const top = byId("answer").getBoundingClientRect().top;
      if (top < 0 || top > innerHeight) byId("answer").scrollIntoView();
    }
  } catch (problem) {
    if (request.signal.aborted || problem.name === "AbortError") return;
    clear();
    explain(problem, (times = 0) => run({ focus, tries: times }), tries);
  } finally {
    if (running === request) results.removeAttribute("aria-busy");
  }
}

const nameOf = ({ name, key, code }) => name ?? key ?? `code ${code}`;

function show(answer, query, chosen) {
  const { matches, bits, guess, familiarity } = answer;
  const own = bitsOf(answer.code, bits);
  showCards(matches, own);
  byId("answer").hidden = false;
  byId("bar").hidden = !matches.length;
  byId("query-title").textContent = `Items like ${nameOf(query)}`;
  showGuess(guess, familiarity);
  byId("hex").textContent = answer.code;
  byId("strip").replaceChildren(strip(own));
  byId("strip").setAttribute("aria-label", `The ${bits} bits of the code: ${own.join("")}`);
  const found = matches.length ? count(matches.length, "result") : "Nothing found";
  byId("count").textContent = matches.length ? found : "";
  byId("order").textContent = spread(answer);
  if (!matches.length) byId("empty").replaceChildren(...(info.items ? nothing(answer, chosen) : emptyIndex()));
  say([found, guessText(guess, familiarity)].filter(Boolean).join(". "));
  document.title = `${nameOf(query)} · ${count(matches.length, "result")} · adsh`;
}

/** The items as cards; without `own`, the bits that were searched for, as items to start from. */
function showCards(items, own) {
  const shown = info.images ? new ItemImages() : null;
  const seen = countImages(items.length);
  const large = (at) => () => enlarge(items, at, info.bits);
  forgetChosen();
  const on = (item, at) => ({ enlarge: large(at), seen, choose: own && info.corrections && chooser(item) });
  byId("results").replaceChildren(...items.map((item, at) => card(item, shown, own, on(item, at))));
  resultImages.close();
  resultImages = shown ?? new ItemImages();
  if (!shown && items.length && info.takes_images) imageHint("unset");
}

/** How near the results are, from the first to the last. */
function spread({ matches, reranked, bits }) {
  if (!matches.length) return "";
  const [near, far] = [matches[0].distance, matches.at(-1).distance];
  const [first, last] = [closeness(near, bits), closeness(far, bits)];
  const words = first === last ? `all ${first}` : `from ${first} to ${last}`;
  return near === far && reranked ? `${words}, ordered by looks` : words;
}

/** Why nothing was found, and what to do. */
function nothing({ nearest }, { radius, filter }) {
  const others = filter ? " of those you chose" : "";
  if (Number.isInteger(nearest)) {
    const away = `The nearest item${others} is ${count(nearest, "bit")} away, farther than the ${count(radius, "bit")} you allow.`;
    const more = el("button", { type: "button", class: "plain", click: () => controls.widen(nearest) }, "Show it");
    return [el("h2", {}, "Nothing is that near"), el("p", {}, away), more];
  }
  const why = filter ? "No item is what you chose: take the filter away." : "There is no other item in the index.";
  return [el("h2", {}, "Nothing found"), el("p", {}, why)];
}

/** Remove the results. */
function clear() {
  resultImages.close();
  byId("results").replaceChildren();
  byId("empty").replaceChildren();
  byId("answer").hidden = byId("bar").hidden = true;
  imageHint(null);
  document.title = "Image search · adsh";
}

const emptyIndex = () => [
  el("h2", {}, "The index is empty"),
  el("p", {}, "Add images to it, and search again:"),
  el("pre", { tabindex: "0", "aria-label": "Command" }, el("code", {}, "adsh index add INDEX photos/")),
];

/** Show what to do before the first search, and items to start from. */
function welcome() {
  clear();
  if (!info.items) {
    byId("empty").replaceChildren(...emptyIndex());
    return;
  }
  const examples = info.examples ?? [];
  const from = examples.length ? " Or start from an item of the index." : "";
  const ways = [el("span", { class: "for-mouse" }, "Choose, drop or paste one."), el("span", { class: "for-touch" }, "Choose one.")];
  const [title, hint] = info.takes_images
    ? ["Find what looks like your image", [...ways, from]]
    : ["Find what is like an item", ["Give its key or a code, or start from one of these."]];
  byId("empty").replaceChildren(el("h2", {}, title), el("p", {}, ...hint));
  showCards(examples, null);
}

// The query ---------------------------------------------------------------------------------------------------------

function showQuery() {
  URL.revokeObjectURL(thumb);
  thumbImage.close();
  thumbImage = new ItemImages();
  thumb = query?.image ? URL.createObjectURL(query.image) : "";
  const place = byId("thumb");
  place.replaceChildren();
  if (thumb) place.append(el("img", { src: thumb, alt: `Your image, ${query.name}` }));
  else if (query?.key) place.append(itemImage(query.key, info.images ? thumbImage : null));
  byId("drop").classList.toggle("has", Boolean(query && !query.code));
  const choose = query ? "Choose another image" : "Choose an image";
  byId("drop-word").textContent = info.takes_images ? choose : "Search by key or code";
  byId("text").value = query?.key ?? query?.code ?? "";
}

/** The query in the address, if there is one. */
function queryInAddress() {
  const [, kind, text] = /^#(key|code)=(.+)$/s.exec(location.hash) ?? [];
  try {
    return kind && { [kind]: decodeURIComponent(text) };
  } catch {
    return undefined; // a link that was cut
  }
}

/** Search for what the address says, unless that is shown already. */
function route({ focus = false } = {}) {
  const next = queryInAddress() ?? uploads.get(history.state?.upload) ?? null;
  if (next && query && next.image === query.image && next.key === query.key && next.code === query.code) return;
  query = next;
  closeView();
  quiet();
  showQuery();
  openSearch();
  if (query) run({ focus });
  else {
    running?.abort();
    say("");
    welcome();
  }
}

/** Search with a file, if it can be an image. */
function take(file) {
  if (!info) {
    early = file;
    return;
  }
  openSearch();
  if (!file) return notice("That is not an image file", `Save the image first, then choose ${FORMATS}.`);
  if (!info.takes_images) {
    return notice("This model takes no images", "It was trained on features: search by a key or a code.");
  }
  const name = file.name || "pasted image";
  if (file.type && !file.type.startsWith("image/")) {
    return notice("That is not an image", `${name} has another format: choose ${FORMATS}.`);
  }
  if (file.size > info.limits.max_body - 4096) {
    const most = (info.limits.max_body / 2 ** 20).toLocaleString("en", { maximumFractionDigits: 1 });
    const text = `${name} is larger than the ${most} MiB that this service takes: choose a smaller one.`;
    return notice("This image is too large", text);
  }
  const upload = `${performance.timeOrigin}/${uploads.size}`; // no other visit of the page has it
  uploads.set(upload, { image: file, name });
  history.pushState({ upload }, "", location.pathname + location.search);
  route();
}

function listen() {
  const [drop, file] = [byId("drop"), byId("file")];
  drop.addEventListener("click", () => file.click());
  file.addEventListener("change", () => {
    if (file.files.length) take(file.files[0]);
    file.value = ""; // so that the same one can be chosen again
  });
  listenToDrops({ takes: () => info?.takes_images !== false, take, drag: closeView });
  listenToView();
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId("text").value.trim();
    if (!text || !info) return;
    const isCode = text.length === 2 * Math.ceil(info.bits / 8) && /^[0-9a-f]+$/i.test(text);
    const hash = `#${isCode ? "code" : "key"}=${encodeURIComponent(text)}`;
    if (hash === location.hash) run();
    else location.hash = hash;
  });
  document.querySelector(".skip").addEventListener("click", (event) => (event.preventDefault(), byId("main").focus()));
  addEventListener("popstate", () => info && route({ focus: Boolean(location.hash) }));
}

// The start ---------------------------------------------------------------------------------------------------------

async function start(tries = 0) {
  quiet();
  say("Loading…");
  if (!byId("results").children.length) byId("results").replaceChildren(...skeletons(12));
  try {
    info = await askInfo();
  } catch (problem) {
    clear();
    byId("results").removeAttribute("aria-busy");
    if (problem.kind === "token") return signIn(start);
    return explain(problem, start, tries);
  }
  say("");
  const { items, version } = info;
  byId("about").textContent = count(items, "item");
  byId("version").textContent = `adsh ${version}`;
  byId("drop").disabled = !info.takes_images;
  if (!info.takes_images) {
    byId("drop-hint").textContent = "this model takes features, not images";
    byId("options").open = true; // the only way to search
  }
  controls = options(info, () => run());
  listenToCorrections(info, { changed: () => run(), problem: (reason) => explain(reason, () => quiet()) });
  showQuality(byId("quality"), info);
  byId("results").removeAttribute("aria-busy");
  route();
  if (early) take(early);
  early = null;
}

themeButton();
const wide = matchMedia("(min-width: 52rem)");
const unfold = () => (byId("options").open = wide.matches || info?.takes_images === false);
wide.addEventListener("change", unfold);
unfold();
listen();
start();
