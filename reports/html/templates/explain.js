
"use strict";
const find = (id) => document.getElementById(id);

// A node that is pointed at or reached by Tab is marked wherever it stands: in the graph and in both tables.
function choose(name) {
  for (const part of document.querySelectorAll("[data-node]"))
    part.classList.toggle("chosen", part.dataset.node.split(" ").includes(name));
}
for (const part of document.querySelectorAll("[data-node]")) {
  const name = part.dataset.node.split(" ")[0];
  part.addEventListener("pointerenter", () => choose(name));
  part.addEventListener("focusin", () => choose(name));
}

// The theme is that of the system until somebody says otherwise; nothing is stored.
const themes = ["system", "light", "dark"];
find("theme").addEventListener("click", () => {
  const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "system") + 1) % themes.length];
  document.documentElement.dataset.theme = next;
  find("theme").textContent = `Theme: ${next}`;
});
find("tools").hidden = false;
