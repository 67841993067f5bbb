// What the page shows is in its address, so that a reload, the back button or another tab
// shows the same: `repo`, `c` the conversation, `file` and `lines` what the panel holds.
// The panel, on a narrow screen a sheet over the page, is a step of its own, which Back takes back.

const narrow = matchMedia("(max-width: 1000px)");
const STEP_BACK_LIMIT = 500; // milliseconds after which a step back counts as taken

let steppingBack = null; // settles when the step back has been taken

/** The value of `name` in the address, "" for none. */
export const inAddress = (name) => new URLSearchParams(location.search).get(name) ?? "";

/** The address of the page with `values` changed; an empty one takes its name away. */
export function addressWith(values) {
  const address = new URL(location.href);
  for (const [name, value] of Object.entries(values)) {
    if (value) address.searchParams.set(name, value);
    else address.searchParams.delete(name);
  }
  address.hash = "";
  return `${address.pathname}${address.search}`;
}

/** Goes to the address with `values` changed, as a new entry of the browser's history. */
export const pushAddress = (values, state = null) =>
  history.pushState(state, "", addressWith(values));

/** Changes the address without a new entry in the history. */
export const replaceAddress = (values, state = history.state) =>
  history.replaceState(state, "", addressWith(values));

/** Whether the panel is a sheet over the page. */
export const panelIsSheet = () => narrow.matches;

/** The answer whose context the sheet of this step shows, "" for none. */
export const contextOfStep = () => history.state?.context ?? "";

/** Settles once a step back in the history is done; the panel must not be opened before. */
export const stepBackTaken = () => steppingBack;

/** Notes what the panel shows; `opening` when it was closed before. */
export function notePanelOpen(values, { opening, context = "" }) {
  const within = history.state?.sheet;
  const state = { sheet: true, context };
  if (opening && !within) pushAddress(values, state);
  else replaceAddress(values, within ? state : history.state);
}

/** Notes that the panel was closed: a step back in the history, if the panel was a step of its own. */
export function notePanelClosed(values) {
  if (!history.state?.sheet) {
    replaceAddress(values);
    return;
  }
  steppingBack = new Promise((resolve) => {
    addEventListener("popstate", resolve, { once: true });
    setTimeout(resolve, STEP_BACK_LIMIT);
  });
  history.back();
}
