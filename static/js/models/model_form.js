// The form of one provider: address, key and model, with suggestions, and the line that says how the
// last test or request went.

import { byId, element, icon } from "../lib/dom.js";
import { arrowStep, Listbox } from "../lib/listbox.js";
import { addressProblem, fullAddress, hostOf, isLocal, keyHelp, whereOf } from "./providers.js";

const fields = {
  address: byId("model-address"),
  key: byId("model-key"),
  model: byId("model-name"),
};
const MOST_SUGGESTIONS = 200; // shown at once; some providers list many hundreds

export class ModelForm {
  #suggestions = new Suggestions(fields.model, byId("model-options"));
  #shown = null; // what `explain` was last told

  /** `edited(name)` is called when the field `name` gets another value from the user. */
  constructor(edited) {
    for (const [name, field] of Object.entries(fields))
      field.addEventListener("input", () => edited(name));
    fields.model.addEventListener("change", () => edited("model")); // a suggestion was taken
    fields.address.addEventListener("input", () => this.explain(this.#shown));
    fields.address.addEventListener("change", () => {
      fields.address.value = fullAddress(fields.address.value);
    });
  }

  get values() {
    return {
      model: fields.model.value.trim(),
      address: fullAddress(fields.address.value),
      key: fields.key.value.trim(),
    };
  }

  /** Puts values there; a key is never among them. */
  fillIn(values, suggestions) {
    fields.address.value = values.address;
    fields.key.value = "";
    fields.model.value = values.model;
    this.#suggestions.options = suggestions;
  }

  /** Forgets a key that was typed and not used. */
  dropKey() {
    fields.key.value = "";
  }

  /** Suggests names of models, and fills in the first one if the field is empty. */
  suggest(names) {
    this.#suggestions.options = names;
    if (!fields.model.value) fields.model.value = names[0] ?? "";
  }

  focus(name) {
    fields[name].focus();
  }

  openSuggestions() {
    fields.model.focus();
    this.#suggestions.open();
  }

  /** What must still be filled in for the provider `one`, null for nothing. */
  missing(one, named) {
    return missingIn(one, this.values, named);
  }

  /**
   * Says what choosing `one` means, and shows the fields that it needs. `one` is null for no
   * model, or when `undecided`; `current` is what is in use, `running` the server of `one` here.
   */
  explain({ one, current, undecided, running }) {
    this.#shown = { one, current, undecided, running };
    byId("model-provider").textContent = one?.title ?? (undecided ? "Choose a model" : "No model");
    byId("no-model-about").hidden = Boolean(one);
    byId("choose-about").hidden = !undecided;
    for (const id of ["model-where", "address-field", "key-field", "name-field", "model-test"])
      byId(id).hidden = !one;
    byId("model-use").textContent = one ? "Use this model" : "Use no model";
    byId("model-use").hidden = !one && (undecided || !current); // it is so already
    byId("model-source").hidden =
      !one || current?.provider !== one.name || current.source !== "setting";
    if (!one) return;

    const host = hostOf(fields.address.value) || (one.needs_address ? "" : one.host);
    const local = isLocal(host);
    byId("model-where").replaceChildren(
      icon(local ? "home" : "cloud"),
      element("span", ...whereOf(host, local)),
    );
    byId("model-where").classList.toggle("away", !local);
    byId("address-field").hidden = !one.needs_address && !one.local && !fields.address.value;
    byId("key-field").hidden = one.key === "unneeded" && local && !fields.address.value;
    byId("forget-key").hidden = one.key !== "stored";
    byId("key-help").textContent = keyHelp(one, host);
    fields.address.placeholder = running?.address ?? one.host;
    fields.key.placeholder = one.key === "stored" ? "kept; enter another one to replace it" : "";
    byId("model-list").title = host ? `Asks ${host} which models it has` : "";
  }
}

/**
 * `{ field, message }` of what must be filled in first, null when nothing must. `one` is the
 * provider; without `named` no model need be named yet.
 */
function missingIn(one, { address, key, model }, named) {
  if (one.needs_address && !address)
    return { field: "address", message: "Enter the address of the server first." };
  const problem = address && addressProblem(address);
  if (problem) return { field: "address", message: problem };
  if (one.key === "missing" && !one.local && !one.needs_address && !key)
    return { field: "key", message: `Enter a key for ${one.host} first.` };
  if (named && !model) return { field: "model", message: "Name a model first, or list them." };
  return null;
}

/** The line above the form's buttons that says what came of the last one. */
export class FormStatus {
  #node;

  constructor(node) {
    this.#node = node;
  }

  /** `symbol` is "check" for what went well, "alert" for what did not. */
  say(symbol, message, hint = "") {
    this.#show(symbol === "check" ? "good" : "bad", icon(symbol), message, hint);
  }

  wait(message) {
    this.#show("", element("span.dot", { "data-state": "indexing" }), message);
  }

  failed(error) {
    this.say("alert", error.message, error.hint);
  }

  clear() {
    this.#node.className = "model-result";
    this.#node.replaceChildren();
  }

  #show(kind, mark, message, hint = "") {
    this.#node.className = `model-result ${kind}`;
    this.#node.replaceChildren(
      mark,
      element("p", element("span", message), hint ? element("span.hint", ` ${hint}`) : null),
    );
  }
}

/** A text field with suggestions: typing narrows them, arrow keys choose, anything may be typed. */
class Suggestions {
  #field;
  #list;
  #listbox;
  #options = [];
  #typed = false; // what stands there before anything is typed narrows nothing

  constructor(field, list) {
    this.#field = field;
    this.#list = list;
    this.#listbox = new Listbox(field, list, {
      take: (option) => this.#take(option),
      marksValue: true,
    });
    field.addEventListener("click", () => this.open());
    field.addEventListener("input", () => {
      this.#typed = true;
      this.open();
    });
    field.addEventListener("keydown", (event) => this.#key(event));
    field.addEventListener("blur", () => this.#listbox.close());
  }

  set options(values) {
    this.#options = values;
    this.#typed = false;
    this.#listbox.close();
  }

  open() {
    const words = this.#typed ? this.#field.value.trim().toLowerCase() : "";
    const found = this.#options
      .filter((value) => value.toLowerCase().includes(words))
      .slice(0, MOST_SUGGESTIONS);
    this.#listbox.show(
      found.map((value, index) =>
        element(
          "li",
          {
            role: "option",
            id: `${this.#list.id}-${index}`,
            "aria-selected": String(value === this.#field.value),
          },
          value,
        ),
      ),
      -1,
    );
    this.#list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
    this.#list.scrollIntoView({ block: "nearest" });
  }

  #key(event) {
    const step = arrowStep(event);
    if (step) {
      event.preventDefault();
      if (!this.#listbox.isOpen) this.open();
      this.#listbox.move(step);
    } else if (event.key === "Enter" && this.#listbox.active) {
      event.preventDefault();
      this.#take(this.#listbox.active);
    } else if (event.key === "Escape" && this.#listbox.isOpen) {
      event.preventDefault(); // closes the suggestions, not the dialog around them
      event.stopPropagation();
      this.#listbox.close();
    }
  }

  #take(option) {
    this.#field.value = option.textContent;
    this.#typed = false;
    this.#listbox.close();
    this.#field.dispatchEvent(new Event("change"));
  }
}
