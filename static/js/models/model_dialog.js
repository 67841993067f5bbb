// The dialog in which a model is chosen, tested and given its key.

import { request } from "../lib/api.js";
import { announce, byId, element, icon } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { recall, remember } from "../lib/preferences.js";
import { closesByClick } from "../lib/widgets.js";
import {
  addressProblem,
  chatModels,
  fullAddress,
  hasKey,
  hostOf,
  isLocal,
  keyHelp,
  radioOf,
  showProviders,
  whereOf,
} from "./providers.js";

const dialog = byId("models");
const list = byId("providers");
const form = byId("model-form");
const result = byId("model-result");
const names = byId("model-options");
const { address, key, model } = form.elements;
const ROWS = 6; // of the names of models in view
const UNDECIDED = null; // nothing is in use, and nothing was chosen yet; "" is to use none

export class ModelDialog {
  #taken; // told of what the server says is in use
  #overview = { current: null, providers: [] };
  #running = new Map(); // provider → { address, models } of servers on this machine
  #listed = new Map(); // provider → names of models that it told
  #chosen = UNDECIDED; // name of the provider in the form
  #looking = false;
  #opened = new AbortController();
  #asking = null; // ends what is being waited for; `id` is the button that asked

  constructor(taken) {
    this.#taken = taken;
    closesByClick(dialog, byId("models-close"));
    const onClick = {
      "models-back": () => {
        dialog.classList.remove("chosen");
        list.querySelector("input:checked")?.focus();
      },
      "model-test": () => this.#test(),
      "model-list": () => this.#list(),
      "forget-key": () => this.#forget(),
    };
    for (const [id, does] of Object.entries(onClick)) byId(id).addEventListener("click", does);
    list.addEventListener("click", ({ target }) => {
      if (target.name !== "provider") return;
      dialog.classList.add("chosen"); // on a phone the form then takes the place of the list
      if (target.value !== this.#chosen) this.#propose(target.value);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#use();
    });
    form.addEventListener("input", ({ target }) => this.#edited(target));
    address.addEventListener("change", () => {
      address.value = fullAddress(address.value);
    });
    dialog.addEventListener("close", () => {
      this.#opened.abort();
      this.#cancel();
      key.value = ""; // one that was typed and not used
    });
  }

  async open() {
    if (dialog.open) return;
    this.#opened = new AbortController();
    this.#chosen = UNDECIDED;
    this.#looking = true;
    dialog.classList.remove("chosen");
    say();
    this.#explain();
    dialog.showModal();
    try {
      this.#take(await request("/api/models"));
    } catch (error) {
      say("alert", error.message, error.hint);
      return;
    }
    if (this.#chosen === UNDECIDED) {
      // Unless somebody chose in the list as it stood before.
      this.#propose(this.#overview.current?.provider ?? UNDECIDED);
      (list.querySelector("input:checked") ?? list.querySelector("input")).focus();
    }
    this.#look();
  }

  /** Servers on this machine are looked for only now, since the user wants to choose. */
  async #look() {
    if (!this.#changeable) return;
    const { signal } = this.#opened;
    // Without a reply the list shows them as not running.
    const found = await request("/api/models/local", { signal }).catch(() => ({ servers: [] }));
    if (signal.aborted) return;
    this.#running = new Map(
      found.servers.map((one) => [one.provider, { ...one, models: chatModels(one.models) }]),
    );
    this.#looking = false;
    if (this.#chosen === UNDECIDED) this.#propose(this.#atHand());
    else if (this.#running.has(this.#chosen)) this.#suggest();
    this.#showList();
    this.#explain();
  }

  /** The provider that could be used at once: a server that runs here, else one with a key. */
  #atHand() {
    const { providers } = this.#overview;
    const found = providers.find(({ name }) => this.#running.has(name)) ?? providers.find(hasKey);
    return found?.name ?? UNDECIDED;
  }

  get #changeable() {
    return this.#overview.changeable !== false;
  }

  #take(overview) {
    this.#overview = overview;
    const { provider, address: at, model: used } = overview.current ?? {};
    const kept = JSON.stringify({ address: at, model: used }); // also while no model is in use
    if (provider) remember(`model.${provider}`, kept);
    byId("models-notice").textContent = this.#changeable
      ? (overview.problem ?? "")
      : "Only the owner of this server can change the model.";
    form.inert = !this.#changeable;
    this.#showList();
    this.#taken(overview);
  }

  #showList() {
    const { current, providers } = this.#overview;
    showProviders(
      list,
      providers.map((one) => ({
        ...one,
        models: [],
        ...this.#running.get(one.name),
        running: this.#running.has(one.name),
      })),
      {
        chosen: this.#chosen,
        current: current?.provider ?? "",
        looking: this.#looking && this.#changeable,
      },
    );
  }

  /** Takes the provider `name` into the form. */
  #propose(name) {
    this.#chosen = name;
    const radio = name === UNDECIDED ? null : radioOf(list, name);
    if (radio) radio.checked = true;
    const { current } = this.#overview;
    const before = () => JSON.parse(recall(`model.${name}`) || "null");
    const used = current?.provider === name ? current : before();
    address.value = used?.address ?? "";
    key.value = "";
    model.value = used?.model || this.#provider?.model || "";
    this.#suggest();
    this.#edited(null);
  }

  get #provider() {
    return this.#overview.providers.find(({ name }) => name === this.#chosen);
  }

  /** Lists the models that are known, those with what is `typed`; the first is taken for none. */
  #suggest(typed = "") {
    const known = this.#listed.get(this.#chosen) ?? this.#running.get(this.#chosen)?.models ?? [];
    if (!typed) model.value ||= known[0] ?? "";
    const found = known.filter((name) => name.toLowerCase().includes(typed.trim().toLowerCase()));
    names.replaceChildren(
      ...found.map((name) => new Option(name, name, false, name === model.value)),
    );
    names.size = Math.min(ROWS, Math.max(2, found.length)); // of 1 it would be another thing
    names.hidden = found.every((name) => name === model.value);
  }

  /** Something else stands in `field`, or in all: what was said of it before holds no more. */
  #edited(field) {
    if (field === names) model.value = names.value;
    else if (field === model) this.#suggest(model.value);
    this.#explain();
    if (field === model && this.#asking?.id === "model-list") return; // that changes no list
    this.#cancel();
    say();
  }

  /** Says what the choice means, shows the fields that it needs and what they still lack. */
  #explain() {
    const { current } = this.#overview;
    const one = this.#provider;
    const undecided = this.#chosen === UNDECIDED;
    byId("model-provider").textContent = one?.title ?? (undecided ? "Choose a model" : "No model");
    byId("no-model-about").hidden = Boolean(one);
    byId("choose-about").hidden = !undecided;
    for (const id of ["model-where", "address-field", "key-field", "name-field", "model-test"])
      byId(id).hidden = !one;
    byId("model-use").textContent = one ? "Use this model" : "Use no model";
    byId("model-use").hidden = !one && (undecided || !current); // it is so already
    byId("model-source").hidden =
      !one || current?.provider !== one.name || current.source !== "setting";
    for (const field of [address, key, model]) field.setCustomValidity("");
    if (!one) return;

    const host = hostOf(address.value) || (one.needs_address ? "" : one.host);
    const local = isLocal(host);
    byId("model-where").replaceChildren(
      icon(local ? "home" : "cloud"),
      element("span", ...whereOf(host, local)),
    );
    byId("model-where").classList.toggle("away", !local);
    byId("address-field").hidden = !one.needs_address && !one.local && !address.value;
    byId("key-field").hidden = one.key === "unneeded" && local && !address.value;
    byId("forget-key").hidden = one.key !== "stored";
    byId("key-help").textContent = keyHelp(one, host);
    address.placeholder = this.#running.get(one.name)?.address ?? one.host;
    key.placeholder = one.key === "stored" ? "stored; enter another key to replace it" : "";
    byId("model-list").title = host ? `Asks ${host} which models it has` : "";

    address.setCustomValidity(addressProblem(address.value, one.needs_address));
    if (one.key === "missing" && !one.local && !one.needs_address && !key.value.trim())
      key.setCustomValidity(`Enter a key for ${one.host} first.`);
    if (!model.value.trim())
      model.setCustomValidity("Enter the name of a model first, or list them.");
  }

  get #body() {
    return {
      provider: this.#chosen,
      address: fullAddress(address.value),
      key: key.value.trim(),
      model: model.value.trim(),
    };
  }

  #use() {
    if (this.#chosen === UNDECIDED) return;
    const named = this.#chosen ? this.#body.model : "No model";
    const body = this.#chosen ? this.#body : { provider: "" };
    this.#ask("model-use", "", async () => {
      this.#take(await request("/api/models", { body }));
      dialog.close();
      announce(`${named} is in use`);
    });
  }

  /** The button that begins a test also ends it. */
  #test() {
    if (this.#asking?.id === "model-test") {
      this.#edited(null);
      announce("Test cancelled");
    } else if (form.reportValidity())
      this.#ask("model-test", "Asking for one word…", async (signal) => {
        const said = await request("/api/models/test", { body: this.#body, signal });
        const time = count(Math.round(said.milliseconds));
        say("check", `${said.model} at ${said.host} answered in ${time} ms.`);
      });
  }

  #list() {
    if (!address.reportValidity() || !key.reportValidity()) return;
    this.#ask("model-list", "Asking for the list…", async (signal) => {
      const all = await request("/api/models/list", { body: this.#body, signal });
      const models = chatModels(all.models);
      this.#listed.set(this.#chosen, models);
      this.#suggest();
      this.#explain();
      if (!models.length) say("alert", "The server lists no chat model.");
      else say("check", `${count(models.length)} models: choose one.`);
      model.focus();
      names.scrollIntoView({ block: "nearest" });
    });
  }

  #forget() {
    this.#ask("forget-key", "", async () => {
      this.#take(await request("/api/models/forget", { body: this.#body }));
      this.#explain();
      say("check", "The key is deleted.");
      key.focus();
    });
  }

  /** Does `work(signal)` for the button `id`, and says what goes wrong. */
  async #ask(id, words, work) {
    this.#cancel();
    const asking = Object.assign(new AbortController(), { id });
    const { signal } = asking;
    this.#show(asking);
    say("", words);
    try {
      await work(signal);
    } catch (error) {
      if (!signal.aborted) say("alert", error.message, error.hint);
    }
    if (this.#asking === asking) this.#show(null);
  }

  #cancel() {
    this.#asking?.abort();
    this.#show(null);
  }

  #show(asking) {
    this.#asking = asking;
    const testing = asking?.id === "model-test";
    for (const button of form.querySelectorAll("button"))
      button.disabled = button.id === asking?.id && !testing;
    byId("model-test").textContent = testing ? "Cancel" : "Test";
  }
}

/** The line above the form's buttons that says what came of the last one: `symbol` is "check" for
 * what went well, "alert" for what did not, "" while it is waited for. */
function say(symbol = "", message = "", hint = "") {
  result.className = `model-result ${symbol}`;
  const mark = symbol ? icon(symbol) : element("span.dot", { "data-state": "indexing" });
  const words = element("p", message, hint ? element("span.hint", ` ${hint}`) : null);
  result.replaceChildren(...(message ? [mark, words] : []));
}
