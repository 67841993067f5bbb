// On a phone the panel is a sheet over the page: a step of its own, which Back takes back.

import { pushAddress, replaceAddress } from "./address.js";

const narrow = matchMedia("(max-width: 760px)");
const PATIENCE = 500; // milliseconds after which a step back counts as taken

let leaving = null; // settles when the step back has been taken

export const isSheet = () => narrow.matches;

/** The answer whose context the sheet of this step shows, "" for none. */
export const contextOfStep = () => history.state?.context ?? "";

/** Nothing may be opened while the step back is still being taken. */
export const left = () => leaving;

/** Notes what the panel shows; `opening` when it was closed before. */
export function enter(values, { opening, context = "" }) {
  const within = history.state?.sheet;
  const state = { sheet: true, context };
  if (opening && narrow.matches && !within) pushAddress(values, state);
  else replaceAddress(values, within ? state : history.state);
}

/** The panel was closed: back to the step before, if it was one of its own. */
export function leave(values) {
  if (!history.state?.sheet) {
    replaceAddress(values);
    return;
  }
  leaving = new Promise((resolve) => {
    addEventListener("popstate", resolve, { once: true });
    setTimeout(resolve, PATIENCE);
  });
  history.back();
}
