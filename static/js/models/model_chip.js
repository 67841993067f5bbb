// The language model in use, as the chip beside the question and the first page show it.

import { request } from "../lib/api.js";
import { byId } from "../lib/dom.js";
import { ModelDialog } from "./model_dialog.js";

export class ModelChip {
  #chip = byId("model-chip");
  #dialog;
  #changed;
  #current = null; // { provider, title, model, host, local, source }

  /** `changed()` is called when another model, or none, has come into use. */
  constructor(changed) {
    this.#changed = changed;
    this.#dialog = new ModelDialog((overview) => this.#take(overview));
    this.#chip.addEventListener("click", () => this.choose());
    byId("without-model")
      .querySelector("button")
      .addEventListener("click", () => this.choose());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.refresh();
    });
    this.refresh();
  }

  /** Name of the model in use, "" for none. */
  get name() {
    return this.#current ? this.#current.model || this.#current.title : "";
  }

  choose() {
    this.#dialog.open();
  }

  async refresh() {
    try {
      this.#take(await request("/api/models"));
    } catch {
      // The state of the index, in view, says that the server is gone.
    }
  }

  #take({ current, problem }) {
    this.#current = current;
    const host = current ? whereItRuns(current) : "";
    byId("model-chip-name").textContent = current ? this.name : "No model";
    byId("model-chip-host").textContent = host;
    this.#chip.classList.toggle("none", !current);
    this.#chip.setAttribute(
      "aria-label",
      current ? `Language model: ${this.name}, ${host}. Change` : "No language model. Choose one",
    );
    this.#chip.title = current
      ? `${this.name}: ${current.local ? "questions and code stay on this machine" : `questions and the code found are sent to ${current.host}`}`
      : problem || "Answers come from the code alone";
    byId("without-model").hidden = Boolean(current);
    this.#changed();
  }
}

const whereItRuns = ({ host, local }) => (local ? "this machine" : host);
