// What the page itself is like: light or dark, and which of its tabs is open.

import { byId } from "./dom.js";

const THEMES = { system: "◐", light: "☀", dark: "☾" };

/** The button goes round: as the system says, light, dark. */
export function themeButton() {
  const button = byId("theme");
  const show = () => {
    const theme = document.documentElement.dataset.theme ?? "system";
    button.querySelector(".glyph").textContent = THEMES[theme];
    button.querySelector(".word").textContent = theme[0].toUpperCase() + theme.slice(1);
    button.setAttribute("aria-label", `${button.innerText.trim()} theme; change it`);
    button.title = "Light, dark, or as the system says";
  };
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(document.documentElement.dataset.theme ?? "system") + 1) % names.length];
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("adsh-theme", next);
    } catch {
      // storage is off: the choice holds until the page is closed
    }
    show();
  });
  show();
}

/** Tabs as ARIA describes them: arrows go from one to the next. */
export function tabs() {
  const all = [...document.querySelectorAll("[role=tab]")];
  const open = (tab) => {
    for (const one of all) {
      one.setAttribute("aria-selected", one === tab);
      one.tabIndex = one === tab ? 0 : -1;
      byId(one.getAttribute("aria-controls")).hidden = one !== tab;
    }
  };
  all.forEach((tab, at) => {
    tab.addEventListener("click", () => open(tab));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = all[(to + all.length) % all.length];
      next.focus();
      open(next);
    });
  });
  return { openSearch: () => open(all[0]) };
}
