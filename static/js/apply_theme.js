// Applies the chosen theme before anything is painted. No module: those run too late.
(() => {
  try {
    const theme = localStorage.getItem("codeqa.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be forbidden; then the system's theme it is.
  }
})();
