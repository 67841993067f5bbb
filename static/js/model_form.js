// The form of one provider: address, key and model, and what choosing it means.

import { Combobox } from "./combobox.js";
import { fullAddress, hostOf, isLocal, keyHelp, whereOf } from "./destination.js";
import { byId, element, icon } from "./dom.js";
import { missingIn } from "./model_check.js";

const fields = { address: byId("model-address"), key: byId("model-key"), model: byId("model-name") };
const { address, key, model } = fields;

export class ModelForm {
  #combobox = new Combobox(model, byId("model-options"));
  #shown = null; // what `explain` was last told

  /** `edited(name)` is called when the field `name` gets another value from the user. */
  constructor(edited) {
    for (const [name, field] of Object.entries(fields)) field.addEventListener("input", () => edited(name));
    model.addEventListener("change", () => edited("model")); // a suggestion was taken
    address.addEventListener("input", () => this.explain(this.#shown));
    address.addEventListener("change", () => { address.value = fullAddress(address.value); });
  }

  get values() {
    return { model: model.value.trim(), address: fullAddress(address.value), key: key.value.trim() };
  }

  /** Puts values there; a key is never among them. */
  fill(values, suggestions) {
    address.value = values.address;
    key.value = "";
    model.value = values.model;
    this.#combobox.options = suggestions;
  }

  /** A key that was not used is not kept, not even here. */
  dropKey() {
    key.value = "";
  }

  /** Names that the field for the model offers; the first of them, where none stands there. */
  suggest(names) {
    this.#combobox.options = names;
    if (!model.value) model.value = names[0] ?? "";
  }

  focus(name) {
    fields[name].focus();
  }

  openSuggestions() {
    model.focus();
    this.#combobox.open();
  }

  /** What is not filled in well enough for `one`, null when nothing is. */
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
    for (const id of ["model-where", "address-field", "key-field", "name-field", "model-test"]) byId(id).hidden = !one;
    byId("model-use").textContent = one ? "Use this model" : "Use no model";
    byId("model-use").hidden = !one && (undecided || !current); // it is so already
    byId("model-source").hidden = !one || current?.provider !== one.name || current.source !== "setting";
    if (!one) return;

    const host = hostOf(address.value) || (one.needs_address ? "" : one.host);
    const local = isLocal(host);
    byId("model-where").replaceChildren(icon(local ? "home" : "cloud"), element("span", {}, ...whereOf(host, local)));
    byId("model-where").classList.toggle("away", !local);
    byId("address-field").hidden = !one.needs_address && !one.local && !address.value;
    byId("key-field").hidden = one.key === "unneeded" && local && !address.value;
    byId("forget-key").hidden = one.key !== "stored";
    byId("key-help").textContent = keyHelp(one, host);
    address.placeholder = running?.address ?? one.host;
    key.placeholder = one.key === "stored" ? "kept; enter another one to replace it" : "";
    byId("model-list").title = host ? `Asks ${host} which models it has` : "";
  }
}
