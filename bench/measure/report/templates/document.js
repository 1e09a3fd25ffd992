"use strict";
// A table as tab-separated text, for a spreadsheet.
const text = (cell) => cell.innerText.replace(/\s+/g, " ").trim();
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const rows = [...document.getElementById(button.dataset.copy).rows];
    const lines = rows.map((row) => [...row.cells].filter((cell) => !cell.classList.contains("picture")).map(text).join("\t"));
    await navigator.clipboard.writeText(lines.join("\n") + "\n");
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
}
