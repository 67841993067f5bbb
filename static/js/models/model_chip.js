// The language model in use, as the chip beside the question and the first page show it.

import { request } from "../lib/api.js";
import { announce, byId } from "../lib/dom.js";
import { page } from "../lib/page.js";
import { failureText, showMessage } from "../lib/widgets.js";
import { offerLocal } from "./local_offer.js";
import { ModelDialog } from "./model_dialog.js";

export class ModelChip {
  #chip = byId("model-chip");
  #dialog;
  #overview = null; // as the server last told it

  constructor() {
    this.#dialog = new ModelDialog((overview) => this.#take(overview));
    for (const button of [this.#chip, byId("without-model").querySelector("button")])
      button.addEventListener("click", () => this.choose());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.refresh();
    });
    this.refresh();
  }

  /** Name of the model in use, "" for none. */
  get name() {
    const current = this.#overview?.current;
    return current ? current.model || current.title : "";
  }

  /** All that are set up. */
  get known() {
    return this.#overview?.known ?? [];
  }

  /** The model in use, and who decides on it. */
  get described() {
    const { current, changeable } = this.#overview ?? {};
    if (!current) return "none";
    const named = current.source === "setting" ? ", named by CODEQA_MODEL" : "";
    return `${this.name}, ${whereItRuns(current)}${changeable === false ? ", chosen by the owner" : named}`;
  }

  choose() {
    this.#dialog.open();
  }

  /** The first page is in view: models on this machine are looked for, where none is in use. */
  offer() {
    const { current, changeable } = this.#overview ?? {};
    if (current === null && changeable)
      offerLocal((provider, model) => this.#use({ provider, model }));
  }

  async #use(body) {
    try {
      this.#take(await request("/api/models", { body }));
      byId("question").focus();
      announce(`${body.model} is in use`);
    } catch (error) {
      showMessage(failureText(error));
    }
  }

  async refresh() {
    try {
      this.#take(await request("/api/models"));
      this.offer();
    } catch {
      // The state of the index, in view, says that the server is gone.
    }
  }

  #take(overview) {
    const givenUp = this.name && !overview.current;
    this.#overview = overview;
    const { current, problem } = overview;
    const host = current ? whereItRuns(current) : "";
    document.body.classList.toggle("several-models", this.known.length > 1);
    byId("model-chip-name").textContent = current ? this.name : "No model";
    byId("model-chip-host").textContent = host;
    this.#chip.classList.toggle("none", !current);
    this.#chip.ariaLabel = current
      ? `Language model: ${this.name}, ${host}. Change`
      : "No model. Choose a language model";
    const stays = current?.local
      ? "questions and code stay on this machine"
      : `questions and the code for them are sent to ${host}`;
    this.#chip.title = current ? `${this.name}: ${stays}` : problem || "Answers quote the code";
    for (const id of ["without-model", "local-models"]) byId(id).hidden = Boolean(current);
    if (givenUp) this.offer();
    page.composer.model = this.name;
  }
}

const whereItRuns = ({ host, local }) => (local ? "this machine" : host);
