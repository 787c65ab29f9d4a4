// Images that are dropped anywhere on the page, or pasted.

const LINK = "text/uri-list"; // a result that is dragged
const carries = ({ dataTransfer }) => ["Files", LINK].some((type) => dataTransfer.types.includes(type));

/**
 * @param {{takes: () => boolean, take: (file: File?) => void, drag: () => void}} page whether files can be searched
 *   with, what to do with one, and what to do when a drag begins
 */
export function listenToDrops({ takes, take, drag }) {
  const over = (is) => {
    if (is && !document.body.classList.contains("dragging")) drag();
    document.body.classList.toggle("dragging", is);
  };
  const enter = (event) => {
    if (!carries(event)) return; // a text, for the field
    event.preventDefault();
    over(takes() || event.dataTransfer.types.includes(LINK));
  };
  addEventListener("dragenter", enter);
  addEventListener("dragover", enter);
  addEventListener("dragleave", (event) => event.relatedTarget ?? over(false)); // null: it left the window
  addEventListener("dragend", () => over(false));
  addEventListener("drop", (event) => {
    over(false);
    if (!carries(event)) return;
    event.preventDefault();
    const [, hash] = event.dataTransfer.getData(LINK).split(location.href.split("#")[0]);
    if (hash?.startsWith("#key=")) location.hash = hash; // one of the results
    else take(event.dataTransfer.files[0]);
  });
  addEventListener("paste", (event) => {
    const [pasted] = event.clipboardData.files;
    if (!pasted) return; // a text, for the field
    event.preventDefault();
    take(pasted);
  });
}
