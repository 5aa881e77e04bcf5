
// Search: every word must be somewhere in an entry; names that begin with the text come first. It works without a server.
const ROOT = document.body.dataset.root, MOST_FOUND = 15;
const entries = INDEX.map(([kind, name, words, url]) => ({ kind, name, url, text: `${kind} ${name} ${words}`.toLowerCase() }));
function found(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const rank = (entry) => {
    const name = entry.name.toLowerCase();
    return name === words[0] ? 0 : name.startsWith(words[0]) ? 1 : name.includes(words[0]) ? 2 : 3;
  };
  return entries.filter((entry) => words.every((word) => entry.text.includes(word)))
    .map((entry) => [rank(entry), entry]).sort(([a], [b]) => a - b).map(([, entry]) => entry);
}
function show() {
  const all = found(find("search").value), box = find("found"), list = document.createElement("ul");
  for (const entry of all.slice(0, MOST_FOUND)) {
    const line = document.createElement("li"), kind = document.createElement("span"), link = document.createElement("a");
    kind.className = "kind";
    kind.textContent = entry.kind;
    link.href = ROOT + entry.url;
    link.textContent = entry.name;
    line.append(kind, " ", link);
    list.append(line);
  }
  const more = document.createElement("p");
  more.className = "quiet";
  more.textContent = !all.length ? "Nothing has this name." : all.length > MOST_FOUND ? `and ${all.length - MOST_FOUND} more` : "";
  box.replaceChildren(list, ...(more.textContent ? [more] : []));
  box.hidden = !find("search").value.trim();
}
find("search").addEventListener("input", show);
find("search").addEventListener("keydown", (event) => {
  if (event.key === "Escape") { event.target.value = ""; show(); }
  if (event.key === "Enter") find("found").querySelector("a")?.click();
});
find("tools").hidden = false;
if (find("search").value) show(); // a page that was left and come back to

// A link to something inside a closed part opens it.
function reveal() {
  const target = location.hash.length > 1 && find(decodeURIComponent(location.hash.slice(1))), fold = target && target.closest("details");
  if (fold) { fold.open = true; target.scrollIntoView(); }
}
addEventListener("hashchange", reveal);
reveal();
