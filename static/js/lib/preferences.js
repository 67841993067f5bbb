// What the browser keeps over a reload: choices, and a question that was not sent. Where storage is
// forbidden, they last as long as the page.

/** The value kept under `name` in this browser, "" for none. */
export function recall(name) {
  try {
    return localStorage.getItem(keyOf(name)) ?? "";
  } catch {
    return "";
  }
}

/** Keeps a value in this browser; an empty one is dropped. */
export function remember(name, value) {
  try {
    if (value) localStorage.setItem(keyOf(name), value);
    else localStorage.removeItem(keyOf(name));
  } catch {
    // Forbidden, or full.
  }
}

/** What was typed in a conversation, "" for a new one, and not sent, or sent and not heard of. */
export const recallQuestion = (repo, id = "") => recall(`question.${repo}.${id}`);

export const rememberQuestion = (repo, text, id = "") => remember(`question.${repo}.${id}`, text);

export function forgetQuestions() {
  for (const key of Object.keys(localStorage))
    if (key.startsWith(keyOf("question."))) localStorage.removeItem(key);
}

/** Puts the buttons to work that choose light, dark, or as the system says. */
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
      remember("theme", choice === "system" ? "" : choice);
      show(choice);
    });
  }
  show(document.documentElement.dataset.theme ?? "system");
  // Another tab may change it.
  addEventListener("storage", (event) => {
    if (event.key === keyOf("theme")) show(event.newValue ?? "system");
  });
}

const keyOf = (name) => `codeqa.${name}`;
