
"use strict";
// The run is in this file already: saving it needs no server.
const button = document.getElementById("download");
button.hidden = false;
button.addEventListener("click", () => {
  const text = document.getElementById("run").textContent;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = "run.json";
  link.click();
  URL.revokeObjectURL(link.href);
});
// A link to a reason opens what hides it; not every browser does so by itself.
function reveal() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  const fold = target && target.closest("details");
  if (fold) { fold.open = true; target.scrollIntoView(); }
}
addEventListener("hashchange", reveal);
reveal();
