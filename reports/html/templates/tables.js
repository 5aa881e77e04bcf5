
"use strict";
const find = (id) => document.getElementById(id);

// Sorting: by a cell's figure, its data-v, or by its text, as the head of the column says. No figure goes last.
const collator = new Intl.Collator("en", { numeric: true });
function key(cell, by) {
  return by === "text" ? cell.querySelector("time")?.dateTime ?? cell.textContent : cell.dataset.v === undefined ? null : Number(cell.dataset.v);
}
function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  return typeof a === "number" ? a - b : collator.compare(a, b);
}
function sort(head) {
  const body = head.closest("table").tBodies[0];
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentElement.cells) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = Array.from(body.rows, (row) => [key(row.cells[head.cellIndex], head.dataset.sort), row]);
  // A missing figure stays last either way: turning the order round must not bring it to the top.
  rows.sort(([a], [b]) => (down && a !== null && b !== null ? compare(b, a) : compare(a, b)));
  body.classList.add("sorted");
  body.append(...rows.map(([, row]) => row));
}
function sortable(part) {
  for (const head of part.querySelectorAll("table.sortable th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head));
    head.append(button);
    head.setAttribute("aria-sort", "none");
  }
}

// The theme is that of the system until somebody says otherwise; nothing is stored.
const themes = ["system", "light", "dark"];
find("theme")?.addEventListener("click", () => {
  const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "system") + 1) % themes.length];
  document.documentElement.dataset.theme = next;
  find("theme").textContent = `Theme: ${next}`;
});

// The times of runs, where the reader is.
for (const time of document.querySelectorAll("time[datetime]")) {
  const moment = new Date(time.dateTime), clock = time.dataset.day === undefined ? { timeStyle: "short" } : {};
  if (!Number.isNaN(moment.getTime())) time.textContent = moment.toLocaleString([], { dateStyle: "medium", ...clock });
}

sortable(document);
