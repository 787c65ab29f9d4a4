// Asks for the token, until one is right or the person gives up.

import { Failure, info, token } from "./api.js";
import { byId } from "./dom.js";

const UNLIKELY = "A token has letters, digits and signs, and no space: check what you copied.";
const WRONG = "That is not the token of this service. Check it and try again.";

/** What the service says of itself once a token is right; null where none was given. */
export function askToken() {
  const [dialog, form, text, wrong] = ["token", "token-form", "token-text", "token-wrong"].map(byId);
  return new Promise((done) => {
    const listening = new AbortController();
    const end = (answer) => {
      listening.abort();
      text.value = "";
      dialog.close();
      done(answer);
    };
    const say = (problem) => {
      wrong.textContent = problem;
      text.setAttribute("aria-invalid", "true");
      text.select();
    };
    const submit = async (event) => {
      event.preventDefault();
      const given = text.value.trim();
      if (!token.canBe(given)) return say(UNLIKELY);
      token.set(given);
      try {
        end(await info());
      } catch (problem) {
        token.forget();
        if (!(problem instanceof Failure)) throw problem;
        say(problem.kind === "token" ? WRONG : problem.message);
      }
    };
    form.addEventListener("submit", submit, listening);
    byId("token-cancel").addEventListener("click", () => end(null), listening);
    dialog.addEventListener("cancel", (event) => (event.preventDefault(), end(null)), listening);
    wrong.textContent = "";
    text.removeAttribute("aria-invalid");
    dialog.showModal();
    text.focus();
  });
}
