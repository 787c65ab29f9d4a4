// Runs before the page is drawn, so that it never flashes in the wrong colours. Without a choice, the system decides.
try {
  const chosen = localStorage.getItem("adsh-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // storage is off: the system decides
}
