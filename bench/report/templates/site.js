"use strict";
// The filters hide rows; a table without a row is hidden, too. The choice is in the address, so that it can be shared.
const form = document.querySelector("form.filters");
const fields = ["machine", "workload", "load", "size", "layer", "memory"];
const boards = [...document.querySelectorAll(".board")];
const apply = () => {
  const want = Object.fromEntries(fields.map((name) => [name, form.elements[name].value]));
  const fits = (element, names) => names.every((name) => !want[name] || element.dataset[name] === want[name]);
  let shown = 0, all = 0;
  for (const board of boards) {
    let here = 0;
    for (const row of board.querySelectorAll("tbody tr")) {
      const memory = row.dataset.memory;
      const within = !want.memory || (memory && Number(memory) <= Number(want.memory));
      row.hidden = !(fits(board, ["machine", "workload", "load", "size"]) && fits(row, ["layer"]) && within);
      here += !row.hidden;
      all += 1;
    }
    board.hidden = !here;
    shown += here;
  }
  form.querySelector("output").textContent = `${shown} of ${all} cases`;
};
const remember = () => {
  const chosen = new URLSearchParams();
  for (const name of fields) if (form.elements[name].value) chosen.set(name, form.elements[name].value);
  history.replaceState(null, "", "#" + (chosen.size ? "cases?" + chosen : "cases"));
};
if (form) {
  for (const [name, value] of new URLSearchParams(location.hash.split("?")[1] || "")) {
    if (fields.includes(name)) form.elements[name].value = value;
  }
  form.hidden = false;
  form.addEventListener("input", () => { apply(); remember(); });
  form.addEventListener("reset", () => setTimeout(() => { apply(); remember(); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}
