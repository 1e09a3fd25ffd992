// Light or dark by hand. Without this script the page follows the system, and everything else works too.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const store = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* private window */ } };
  const current = () => root.dataset.theme || (dark.matches ? "dark" : "light");

  // Before the body is painted, so that a chosen theme does not flash.
  if (["light", "dark"].includes(stored())) root.dataset.theme = stored();

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("button.theme");
    if (!button) return;
    const label = () => {
      button.setAttribute("aria-label", current() === "dark" ? "Switch to light colours" : "Switch to dark colours");
    };
    button.hidden = false;
    label();
    dark.addEventListener("change", label);
    button.addEventListener("click", () => {
      root.dataset.theme = current() === "dark" ? "light" : "dark";
      store(root.dataset.theme);
      label();
    });
  });
})();
