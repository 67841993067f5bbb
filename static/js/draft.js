// A question that was not sent yet outlives a reload of its tab.

const KEY = `codeqa.draft.${document.body.dataset.repo}`;

export function readDraft() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return ""; // storage may be forbidden
  }
}

export function keepDraft(text) {
  try {
    if (text) sessionStorage.setItem(KEY, text);
    else sessionStorage.removeItem(KEY);
  } catch {
    // Then a reload loses it.
  }
}
