// What the switches beside the question are set to outlives a reload, in this browser.

export function recall(name) {
  try {
    return localStorage.getItem(`codeqa.${name}`) ?? "";
  } catch {
    return ""; // storage may be forbidden
  }
}

export function remember(name, value) {
  try {
    if (value) localStorage.setItem(`codeqa.${name}`, value);
    else localStorage.removeItem(`codeqa.${name}`);
  } catch {
    // Then it lasts as long as the page.
  }
}
