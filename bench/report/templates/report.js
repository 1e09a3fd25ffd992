"use strict";
// Tables sort by a column on a click on its head; a third click restores the order of the plan.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const planned = [...body.rows];
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const numeric = head.classList.contains("n");
      const first = numeric ? "descending" : "ascending";
      const second = numeric ? "ascending" : "descending";
      const now = head.getAttribute("aria-sort");
      const next = now === first ? second : now === second ? null : first;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      const sign = next === "ascending" ? 1 : -1;
      const value = (row) => row.cells[head.cellIndex].dataset.sort;
      const text = (row) => row.cells[head.cellIndex].textContent;
      const rows = [...planned];
      if (next) {
        head.setAttribute("aria-sort", next);
        rows.sort((a, b) => {
          if (!numeric) return sign * text(a).localeCompare(text(b));
          if (value(a) === undefined || value(b) === undefined) {
            return (value(a) === undefined) - (value(b) === undefined);  // what was not measured stays last
          }
          return sign * (value(a) - value(b));
        });
      }
      body.append(...rows);
    });
  }
}
// A figure leads to its trials, which may lie in closed details.
const reveal = () => {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  if (target) target.scrollIntoView({ block: "center" });
};
addEventListener("hashchange", reveal);
reveal();
