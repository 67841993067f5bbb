// What is still missing in the form of the model's dialog, as far as that can be known here.

import { addressProblem } from "./destination.js";

/**
 * `{ field, message }` of what must be filled in first, null when nothing must. `one` is the
 * provider; without `named` no model need be named yet.
 */
export function missingIn(one, { address, key, model }, named) {
  if (one.needs_address && !address) return { field: "address", message: "Enter the address of the server first." };
  const problem = address && addressProblem(address);
  if (problem) return { field: "address", message: problem };
  if (one.key === "missing" && !one.local && !one.needs_address && !key) return { field: "key", message: `Enter a key for ${one.host} first.` };
  if (named && !one.local && !model) return { field: "model", message: "Name a model first, or list them." };
  return null;
}
