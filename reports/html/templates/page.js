
"use strict";
const find = (id) => document.getElementById(id);
const names = JSON.parse(find("names").textContent);

// Sorting: by a cell's figure, its data-v, or by its text, as the head of the column says. No figure goes last.
const collator = new Intl.Collator("en", { numeric: true });
function key(cell, by) {
  return by === "text" ? cell.textContent : cell.dataset.v === undefined ? null : Number(cell.dataset.v);
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
  // A figure that is not there stays last either way: turning the order round must not bring it to the top.
  rows.sort(([a], [b]) => (down && a !== null && b !== null ? compare(b, a) : compare(a, b)));
  body.classList.add("sorted");
  body.append(...rows.map(([, row]) => row));
}
for (const head of document.querySelectorAll("table.sortable th[data-sort]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sort";
  button.append(...head.childNodes);
  button.addEventListener("click", () => sort(head));
  head.append(button);
  head.setAttribute("aria-sort", "none");
}

// Filtering: parts of names, any of them, with commas between; in every section at once.
function chosen(all, input) {
  const parts = input.value.toLowerCase().split(",").map((part) => part.trim()).filter(Boolean);
  return all.map((name) => !parts.length || parts.some((part) => name.toLowerCase().includes(part)));
}
function filter() {
  const cases = chosen(names.cases, find("filter-cases")), backends = chosen(names.backends, find("filter-backends"));
  for (const part of document.querySelectorAll("[data-case]"))
    part.hidden = !cases[part.dataset.case] || (part.dataset.backend !== undefined && !backends[part.dataset.backend]);
  for (const table of document.querySelectorAll("table[data-lead]"))
    for (const row of table.rows)
      backends.forEach((show, k) => { row.cells[k + Number(table.dataset.lead)].hidden = !show; });
  const count = (found) => found.filter(Boolean).length;
  find("shown").textContent = cases.every(Boolean) && backends.every(Boolean) ? ""
    : `${count(cases)} of ${cases.length} cases, ${count(backends)} of ${backends.length} backends`;
}
for (const id of ["filter-cases", "filter-backends"]) {
  find(id).addEventListener("input", filter);
  find(id).addEventListener("keydown", (event) => { if (event.key === "Escape") { event.target.value = ""; filter(); } });
}
if (find("filter-cases").value || find("filter-backends").value) filter(); // a page that was left and come back to

// The theme is that of the system until somebody says otherwise; nothing is stored.
const themes = ["system", "light", "dark"];
find("theme").addEventListener("click", () => {
  const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "system") + 1) % themes.length];
  document.documentElement.dataset.theme = next;
  find("theme").textContent = `Theme: ${next}`;
});
find("tools").hidden = false;

// The run is in this file already: saving it needs no server.
if (find("run") && "DecompressionStream" in window) {
  find("download").hidden = false;
  find("download").addEventListener("click", async () => {
    const packed = Uint8Array.from(atob(find("run").textContent), (c) => c.charCodeAt(0));
    const text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).blob();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "run.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

// A link to a reason opens what hides it; not every browser does so by itself.
function reveal() {
  const target = location.hash && find(location.hash.slice(1));
  const fold = target && target.closest("details");
  if (fold) { fold.open = true; target.scrollIntoView(); }
}
addEventListener("hashchange", reveal);
reveal();
