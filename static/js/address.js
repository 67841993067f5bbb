// What the page shows is in its address, so that a reload, the back button or another tab
// shows the same: `repo`, `c` the conversation, `file` and `lines` what the panel holds.

export const shown = (name) => new URLSearchParams(location.search).get(name) ?? "";

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

/** Goes there as a step that the back button takes back; `state` is what else belongs to it. */
export const pushAddress = (values, state = null) => history.pushState(state, "", addressWith(values));

/** Corrects the present address. */
export const replaceAddress = (values, state = history.state) => history.replaceState(state, "", addressWith(values));
