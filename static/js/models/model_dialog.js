// The dialog in which a model is chosen, tested and given its key.

import { request } from "../lib/api.js";
import { announce, byId } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { closesByClick } from "../lib/widgets.js";
import { FormStatus, ModelForm } from "./model_form.js";
import { chatModels, hasKey, radioOf, showProviders } from "./providers.js";

const dialog = byId("models");
const list = byId("providers");
const UNDECIDED = null; // nothing is in use, and nothing was chosen yet; "" is to use none

export class ModelDialog {
  #taken; // told of what the server says is in use
  #form = new ModelForm((field) => this.#outdate(field));
  #status = new FormStatus(byId("model-result"));
  #overview = { current: null, providers: [] };
  #running = new Map(); // provider → { address, models } of servers on this machine
  #listed = new Map(); // provider → names of models that it told
  #chosen = UNDECIDED; // name of the provider in the form
  #looking = false;
  #controller = new AbortController();
  #asking = null; // { id, controller } of a test or a list that is being waited for

  constructor(taken) {
    this.#taken = taken;
    closesByClick(dialog, byId("models-close"));
    byId("models-back").addEventListener("click", () => {
      dialog.classList.remove("chosen");
      list.querySelector("input:checked")?.focus();
    });
    byId("model-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#use();
    });
    byId("model-test").addEventListener("click", () => this.#test());
    byId("model-list").addEventListener("click", () => this.#list());
    byId("forget-key").addEventListener("click", () => this.#forget());
    dialog.addEventListener("close", () => {
      this.#controller.abort();
      this.#cancel();
      this.#form.dropKey();
    });
  }

  async open() {
    if (dialog.open) return;
    this.#controller = new AbortController();
    this.#chosen = UNDECIDED;
    this.#looking = true;
    dialog.classList.remove("chosen");
    this.#status.clear();
    this.#explain();
    dialog.showModal();
    try {
      this.#take(await request("/api/models"));
    } catch (error) {
      this.#status.failed(error);
      return;
    }
    this.#propose(this.#overview.current?.provider ?? UNDECIDED);
    (list.querySelector("input:checked") ?? list.querySelector("input")).focus();
    this.#look();
  }

  /** Servers on this machine are looked for only now, since the user wants to choose. */
  async #look() {
    if (!this.#changeable) return;
    const { signal } = this.#controller;
    try {
      const { servers } = await request("/api/models/local", { signal });
      this.#running = new Map(
        servers.map((server) => [
          server.provider,
          { ...server, models: chatModels(server.models) },
        ]),
      );
    } catch {
      this.#running.clear(); // the list then shows them as not running
    }
    if (signal.aborted) return;
    this.#looking = false;
    if (this.#chosen === UNDECIDED) this.#propose(this.#atHand());
    else if (this.#running.has(this.#chosen)) this.#form.suggest(this.#models());
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
    byId("models-notice").textContent = this.#changeable
      ? (overview.problem ?? "")
      : "Only the owner of this server can change the model.";
    byId("models-notice").hidden = !byId("models-notice").textContent;
    byId("model-form").inert = !this.#changeable;
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
        choose: (name) => this.#choose(name),
      },
    );
  }

  /** The user chooses `name`; on a phone the form then takes the place of the list. */
  #choose(name) {
    dialog.classList.add("chosen");
    if (name !== this.#chosen) this.#propose(name);
  }

  /** Takes the provider `name` into the form. */
  #propose(name) {
    this.#chosen = name;
    const radio = name === UNDECIDED ? null : radioOf(list, name);
    if (radio) radio.checked = true;
    const { current } = this.#overview;
    const used = current?.provider === name ? current : null;
    this.#form.fillIn(
      {
        address: used?.address ?? "",
        model: used?.model || this.#provider()?.model || this.#models()[0] || "",
      },
      this.#models(),
    );
    this.#outdate();
    this.#explain();
  }

  #provider() {
    return this.#overview.providers.find(({ name }) => name === this.#chosen) ?? null;
  }

  #models() {
    return this.#listed.get(this.#chosen) ?? this.#running.get(this.#chosen)?.models ?? [];
  }

  #explain() {
    this.#form.explain({
      one: this.#provider(),
      current: this.#overview.current,
      undecided: this.#chosen === UNDECIDED,
      running: this.#running.get(this.#chosen),
    });
  }

  #body() {
    return { provider: this.#chosen, ...this.#form.values };
  }

  async #use() {
    if (this.#chosen === UNDECIDED || this.#missing()) return;
    const name = this.#chosen ? this.#form.values.model || this.#provider().title : "No model";
    await this.#do("model-use", async () => {
      const body = this.#chosen ? this.#body() : { provider: "" };
      this.#take(await request("/api/models", { body }));
      dialog.close();
      announce(`${name} is in use`);
    });
  }

  /** The button that begins a test also ends it. */
  async #test() {
    if (this.#asking?.id === "model-test") {
      this.#outdate();
      announce("Test cancelled");
      return;
    }
    if (this.#missing()) return;
    await this.#ask("model-test", "Asking for one word…", async (signal) => {
      const { milliseconds, model, host } = await request("/api/models/test", {
        body: this.#body(),
        signal,
      });
      this.#status.say(
        "check",
        `${model} at ${host} answered in ${count(Math.round(milliseconds))} ms.`,
      );
    });
  }

  async #list() {
    if (this.#missing(false)) return;
    await this.#ask("model-list", "Asking for the list…", async (signal) => {
      const models = chatModels(
        (await request("/api/models/list", { body: this.#body(), signal })).models,
      );
      this.#listed.set(this.#chosen, models);
      this.#form.suggest(models);
      this.#status.say(
        models.length ? "check" : "alert",
        models.length
          ? `${count(models.length)} models: choose one.`
          : "It lists no model that chats.",
      );
      if (models.length) this.#form.openSuggestions();
    });
  }

  async #forget() {
    await this.#do("forget-key", async () => {
      this.#take(await request("/api/models/forget", { body: this.#body() }));
      this.#explain();
      this.#status.say("check", "The key is forgotten.");
      this.#form.focus("key");
    });
  }

  /** Says what is not filled in; returns whether something is not. */
  #missing(named = true) {
    const one = this.#provider();
    const missing = one && this.#form.missing(one, named);
    if (!missing) return false;
    this.#status.say("alert", missing.message);
    this.#form.focus(missing.field);
    return true;
  }

  /** Drops the result of the last test or list: `field`, or the provider, has changed. */
  #outdate(field = "") {
    if (this.#asking?.id === "model-list" && field === "model") return; // that changes no list
    this.#cancel();
    this.#status.clear();
  }

  /** Waits for `work(signal)` until it is there or not wanted any more. */
  async #ask(id, words, work) {
    this.#cancel();
    const asking = { id, controller: new AbortController() };
    const { signal } = asking.controller;
    this.#asking = asking;
    this.#showAsking();
    this.#status.wait(words);
    try {
      await work(signal);
    } catch (error) {
      if (!signal.aborted) this.#status.failed(error);
    }
    if (this.#asking === asking) this.#cancel();
  }

  #cancel() {
    this.#asking?.controller.abort();
    this.#asking = null;
    this.#showAsking();
  }

  #showAsking() {
    const testing = this.#asking?.id === "model-test";
    byId("model-test").textContent = testing ? "Cancel" : "Test";
    byId("model-test").title = testing
      ? "Ends the test"
      : "Asks the model for one word; no code is sent";
    byId("model-list").disabled = this.#asking?.id === "model-list";
  }

  /** Carries out `work` while the button `id` waits, and says what goes wrong. */
  async #do(id, work) {
    this.#outdate();
    byId(id).disabled = true;
    try {
      await work();
    } catch (error) {
      this.#status.failed(error);
    }
    byId(id).disabled = false;
  }
}
