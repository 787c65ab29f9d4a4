// The service over HTTP: every answer is its JSON, every failure a Failure that says what a person can do.

const UNREACHABLE = "It may have been stopped, or the connection may be gone. Nothing you chose is lost.";
const TOKEN = "adsh-token"; // in sessionStorage: gone with the tab

/** What went wrong, for a person. `kind` is unreachable, token, busy or refused. */
export class Failure extends Error {
  constructor(kind, message, { status = 0, wait = 0 } = {}) {
    super(message);
    Object.assign(this, { kind, status, wait });
  }
}

/** What the tab keeps; where a browser blocks that, what the page itself keeps. */
let kept = null;
function stored(use) {
  try {
    return use(sessionStorage);
  } catch {
    return null; // site data is blocked
  }
}

export const token = {
  get: () => kept ?? stored((tab) => tab.getItem(TOKEN)),
  set: (text) => {
    kept = text;
    stored((tab) => tab.setItem(TOKEN, text));
  },
  forget: () => {
    kept = null;
    stored((tab) => tab.removeItem(TOKEN));
  },
  /** A header carries no others, and the server takes no others. */
  canBe: (text) => /^[\x21-\x7e]+$/.test(text),
};

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const authorised = () => (token.get() ? { Authorization: `Bearer ${token.get()}` } : {});

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: { ...options.headers, ...authorised() } });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Failure("unreachable", UNREACHABLE);
  }
  if (answer.ok) return answer;
  const { status } = answer;
  let said = `The server answered with status ${status}.`;
  try {
    said = capital((await answer.json()).detail);
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    // not one of its own answers: something in front of it spoke
  }
  const wait = Number(answer.headers.get("Retry-After")) || 0;
  const kind = status === 401 ? "token" : [429, 502, 503, 504].includes(status) ? "busy" : "refused";
  throw new Failure(kind, said, { status, wait });
}

/** The model, the index and the limits of the service. */
export const info = async (signal) => (await ask("v1/info", { signal, cache: "no-store" })).json();

/**
 * @param {{image?: Blob, key?: string, code?: string}} query exactly one of them
 * @param {{k: number, radius?: number, filter?: object}} options
 */
export async function search(query, options, signal) {
  if (!query.image) {
    const body = JSON.stringify({ ...query, ...options });
    const headers = { "Content-Type": "application/json" };
    return (await ask("v1/search", { method: "POST", headers, body, signal })).json();
  }
  const form = new FormData();
  form.append("image", query.image, "image");
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) form.append(name, typeof value === "object" ? JSON.stringify(value) : value);
  }
  return (await ask("v1/search", { method: "POST", body: form, signal })).json();
}

/** Correct the labels of items: {items: [{key, labels} or {key, wrong: true}]}. */
export async function correct(correction) {
  const headers = { "Content-Type": "application/json" };
  return (await ask("v1/corrections", { method: "POST", headers, body: JSON.stringify(correction) })).json();
}

export const undoCorrection = async (number) => (await ask(`v1/corrections/${number}`, { method: "DELETE" })).json();

const imageOf = (key) => `v1/items/${encodeURIComponent(key)}/image`;

/** The images of one set of results. `close` frees them, and cancels requests that are still running. */
export class ItemImages {
  #abort = new AbortController();
  #urls = [];

  /** Put the item's image into `img`, or call `none`. With a token it has to be fetched: <img> sends no header. */
  async show(img, key, none) {
    img.addEventListener("error", none, { once: true });
    if (!token.get()) {
      img.src = imageOf(key);
      return;
    }
    try {
      const blob = await (await ask(imageOf(key), { signal: this.#abort.signal })).blob();
      const url = URL.createObjectURL(blob);
      this.#urls.push(url);
      if (this.#abort.signal.aborted) this.close();
      else img.src = url;
    } catch (problem) {
      if (problem.name !== "AbortError") none();
    }
  }

  close() {
    this.#abort.abort();
    for (const url of this.#urls.splice(0)) URL.revokeObjectURL(url);
  }
}
