
const names = JSON.parse(find("names").textContent);

// Filtering: parts of names, any of them, with commas between; in every section at once.
function chosen(all, input) {
  const parts = input.value.toLowerCase().split(",").map((part) => part.trim()).filter(Boolean);
  return all.map((name) => !parts.length || parts.some((part) => name.toLowerCase().includes(part)));
}
function filter() {
  const cases = chosen(names.cases, find("filter-cases")), backends = chosen(names.backends, find("filter-backends"));
  const hidden = (all, number) => number !== undefined && !all[number];
  for (const part of document.querySelectorAll("[data-case], [data-backend]"))
    part.hidden = hidden(cases, part.dataset.case) || hidden(backends, part.dataset.backend);
  for (const table of document.querySelectorAll("table[data-lead]")) {
    // The columns are all backends, some of them, or the cases.
    const some = table.dataset.columns?.trim().split(" ").map((number) => backends[number]);
    const columns = table.dataset.axis === "cases" ? cases : some ?? backends;
    for (const row of table.rows)
      columns.forEach((show, k) => { const cell = row.cells[k + Number(table.dataset.lead)]; if (cell) cell.hidden = !show; });
  }
  const count = (found) => found.filter(Boolean).length;
  find("shown").textContent = cases.every(Boolean) && backends.every(Boolean) ? ""
    : `${count(cases)} of ${cases.length} cases, ${count(backends)} of ${backends.length} backends`;
}
const filtering = () => find("filter-cases").value || find("filter-backends").value;
for (const id of ["filter-cases", "filter-backends"]) {
  find(id).addEventListener("input", filter);
  find(id).addEventListener("keydown", (event) => { if (event.key === "Escape") { event.target.value = ""; filter(); } });
}

// What is packed in the page: text, compressed, which is unpacked when it is first asked for.
const unpacked = {};
function unpack(id) {
  async function read() {
    const bytes = Uint8Array.from(atob(find(id).textContent), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }
  return (unpacked[id] ??= read());
}
async function unfold(fold) {
  const key = fold.dataset.fold;
  if (key === undefined) return;
  delete fold.dataset.fold;
  const part = document.createElement("div");
  part.innerHTML = JSON.parse(await unpack("folds"))[key]; // our own markup, with every name escaped
  sortable(part);
  fold.append(part);
  if (filtering()) filter();
}
// Before it opens, so that it opens full.
document.addEventListener("toggle", (event) => { if (event.target.open) unfold(event.target); }, true);

find("tools").hidden = false;

// The run is in this file already: saving it needs no server.
if (find("run") && "DecompressionStream" in window) {
  find("download").hidden = false;
  find("download").addEventListener("click", async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([await unpack("run")], { type: "application/json" }));
    link.download = "run.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

// A link to a reason opens what hides it. In a large page the reason may still be packed.
async function reveal() {
  const id = location.hash.slice(1);
  if (!id) return;
  if (!find(id))
    for (const fold of document.querySelectorAll("#failures details[data-fold], #traps details[data-fold]")) await unfold(fold);
  const target = find(id), fold = target && target.closest("details");
  if (fold) fold.open = true;
  if (target && !target.matches("section")) target.scrollIntoView();
}
addEventListener("hashchange", reveal);
if (filtering()) filter(); // a page that was left and come back to
reveal();
