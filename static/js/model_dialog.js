// The dialog in which a model is chosen, tested and given its key.

import { request } from "./api.js";
import { Combobox } from "./combobox.js";
import { hostOf, isLocal, keyHelp, whereOf } from "./destination.js";
import { announce, byId, count, element, icon } from "./dom.js";
import { showProviders } from "./providers.js";

const dialog = byId("models");
const address = byId("model-address");
const key = byId("model-key");
const model = byId("model-name");
const result = byId("model-result");

export class ModelDialog {
  #taken; // told of what the server says is in use
  #suggestions = new Combobox(model, byId("model-options"));
  #overview = { current: null, providers: [] };
  #running = new Map(); // provider → { address, models } of servers on this machine
  #listed = new Map(); // provider → names of models that it told
  #chosen = ""; // name of the provider in the form, "" for none
  #looking = false;
  #controller = new AbortController();

  constructor(taken) {
    this.#taken = taken;
    byId("models-close").addEventListener("click", () => dialog.close());
    byId("models-back").addEventListener("click", () => {
      dialog.classList.remove("chosen");
      byId("providers").querySelector("input:checked")?.focus();
    });
    byId("model-form").addEventListener("submit", (event) => { event.preventDefault(); this.#use(); });
    byId("model-test").addEventListener("click", () => this.#test());
    byId("model-list").addEventListener("click", () => this.#list());
    byId("forget-key").addEventListener("click", () => this.#forget());
    address.addEventListener("input", () => this.#explain());
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    dialog.addEventListener("close", () => {
      this.#controller.abort();
      key.value = ""; // a key that was not used is not kept, not even here
    });
  }

  async open() {
    if (dialog.open) return;
    this.#controller = new AbortController();
    dialog.classList.remove("chosen");
    this.#say();
    dialog.showModal();
    this.#looking = true;
    try {
      this.#take(await request("/api/models"));
    } catch (error) {
      this.#failed(error);
    }
    this.#choose(this.#overview.current?.provider ?? "", true);
    this.#look();
  }

  /** Servers on this machine are looked for only now, since the user wants to choose. */
  async #look() {
    try {
      if (this.#overview.changeable === false) throw new Error("not for this user");
      const { servers } = await request("/api/models/local", { signal: this.#controller.signal });
      this.#running = new Map(servers.map((server) => [server.provider, server]));
    } catch {
      this.#running.clear(); // the list then shows them like all others
    }
    this.#looking = false;
    this.#showList();
    if (!dialog.open || !this.#running.has(this.#chosen)) return;
    if (!model.value) model.value = this.#models()[0] ?? "";
    this.#suggestions.options = this.#models();
    this.#explain();
  }

  #take(overview) {
    this.#overview = overview;
    const { problem, changeable } = overview;
    byId("models-notice").textContent = changeable === false ? "Only the owner of this server can change the model." : problem ?? "";
    byId("models-notice").hidden = !byId("models-notice").textContent;
    byId("model-form").inert = changeable === false;
    this.#showList();
    this.#taken(overview);
  }

  #showList() {
    const { current, providers } = this.#overview;
    showProviders(byId("providers"), providers.map((one) => ({ ...one, models: [], ...this.#running.get(one.name), running: this.#running.has(one.name) })), {
      chosen: this.#chosen,
      current: current?.provider ?? "",
      looking: this.#looking,
      choose: (name) => this.#choose(name),
    });
  }

  #choose(name, first = false) {
    const same = name === this.#chosen && !first;
    if (!first) dialog.classList.add("chosen");
    if (same) return;
    this.#chosen = name;
    const radio = byId("providers").querySelector(`input[value="${CSS.escape(name)}"]`);
    if (radio) radio.checked = true;
    if (first) radio?.focus();
    const { current } = this.#overview;
    const used = current?.provider === name ? current : null;
    address.value = used?.address ?? "";
    key.value = "";
    model.value = used?.model || this.#provider()?.model || this.#models()[0] || "";
    this.#suggestions.options = this.#models();
    this.#say();
    this.#explain();
  }

  #provider() {
    return this.#overview.providers.find(({ name }) => name === this.#chosen);
  }

  #models() {
    return this.#listed.get(this.#chosen) ?? this.#running.get(this.#chosen)?.models ?? [];
  }

  /** Says what choosing this one means, and shows the fields that it needs. */
  #explain() {
    const one = this.#provider();
    byId("model-provider").textContent = one?.title ?? "No model";
    byId("no-model-about").hidden = Boolean(one);
    for (const id of ["model-where", "address-field", "key-field", "name-field", "model-test"]) byId(id).hidden = !one;
    byId("model-use").textContent = one ? "Use this model" : "Use no model";
    const { current } = this.#overview;
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
    address.placeholder = this.#running.get(one.name)?.address ?? one.host;
    key.placeholder = one.key === "stored" ? "kept; enter another one to replace it" : "";
    byId("model-list").title = host ? `Asks ${host} which models it has` : "";
  }

  #body() {
    return { provider: this.#chosen, model: model.value.trim(), address: address.value.trim(), key: key.value.trim() };
  }

  async #use() {
    if (this.#missing()) return;
    const name = this.#chosen ? model.value.trim() || this.#provider().title : "No model";
    await this.#do("model-use", "", async () => {
      const body = this.#chosen ? this.#body() : { provider: "" };
      this.#take(await request("/api/models", { body }));
      dialog.close();
      announce(this.#chosen ? `${name} is in use` : "No model is in use");
    });
  }

  async #test() {
    if (this.#missing()) return;
    await this.#do("model-test", "Asking for one word…", async (signal) => {
      const { milliseconds, model: name, host } = await request("/api/models/test", { body: this.#body(), signal });
      this.#say("check", `${name} at ${host} answered in ${count(Math.round(milliseconds))} ms.`);
    });
  }

  async #list() {
    if (this.#missing(false)) return;
    const provider = this.#chosen;
    await this.#do("model-list", "Asking for the list…", async (signal) => {
      const { models } = await request("/api/models/list", { body: this.#body(), signal });
      this.#listed.set(provider, models);
      if (provider !== this.#chosen) return;
      this.#suggestions.options = models;
      if (!model.value) model.value = models[0] ?? "";
      this.#say(models.length ? "check" : "alert", models.length ? `${count(models.length)} models: choose one.` : "It lists no models.");
      model.focus();
      if (models.length) this.#suggestions.open();
    });
  }

  async #forget() {
    await this.#do("forget-key", "", async () => {
      this.#take(await request("/api/models/forget", { body: this.#body() }));
      this.#explain();
      this.#say("check", "The key is forgotten.");
      key.focus();
    });
  }

  /** Names what is not filled in, as far as that can be known here. */
  #missing(named = true) {
    const one = this.#provider();
    if (!one) return false;
    const [field, message] = one.needs_address && !address.value.trim() ? [address, "Enter the address of the server first."]
      : one.key === "missing" && !one.local && !one.needs_address && !key.value.trim() ? [key, `Enter a key for ${one.host} first.`]
        : named && !model.value.trim() && !one.local ? [model, "Name a model first, or list them."] : [];
    if (!field) return false;
    this.#say("alert", message);
    field.focus();
    return true;
  }

  /** Runs `work(signal)` while the button `id` waits, and says what goes wrong. */
  async #do(id, words, work) {
    const button = byId(id);
    const { signal } = this.#controller;
    this.#say("", words);
    button.disabled = true;
    try {
      await work(signal);
    } catch (error) {
      if (!signal.aborted) this.#failed(error);
    }
    button.disabled = false;
  }

  #failed(error) {
    this.#say("alert", error.message, error.hint);
  }

  #say(symbol = "", message = "", hint = "") {
    result.className = `model-result ${{ check: "good", alert: "bad" }[symbol] ?? ""}`;
    result.replaceChildren();
    if (!message) return;
    result.append(symbol ? icon(symbol) : element("span", { class: "dot", "data-state": "indexing" }), element("p", {}, element("span", {}, message), hint ? element("span", { class: "hint" }, ` ${hint}`) : null));
  }
}
