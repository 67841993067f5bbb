// Light, dark, or as the system says; the choice is kept in this browser.

const KEY = "codeqa.theme";

export function setUpTheme() {
  const buttons = [...document.querySelectorAll("[data-theme-choice]")];
  const show = (choice) => {
    if (choice === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
    }
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const choice = button.dataset.themeChoice;
      store(choice);
      show(choice);
    });
  }
  show(document.documentElement.dataset.theme ?? "system");
  // Another tab may change it.
  addEventListener("storage", (event) => {
    if (event.key === KEY) show(event.newValue ?? "system");
  });
}

function store(choice) {
  try {
    if (choice === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, choice);
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
  }
}
