// On the first page, while no model is in use: those on this machine, each for one click, or the
// commands that bring one.

import { request } from "../lib/api.js";
import { byId, element, icon } from "../lib/dom.js";
import { copyButton } from "../lib/widgets.js";
import { chatModels } from "./providers.js";

const node = byId("local-models");

export class LocalOffer {
  #use; // called with the provider and the model that were clicked
  #looking = false;
  #shown = "";

  constructor(use) {
    this.#use = use;
  }

  /** Shows what is found; servers that are slow to answer keep nothing waiting. */
  async look() {
    if (this.#looking || byId("welcome").hidden) return;
    this.#looking = true;
    try {
      this.#show(await request("/api/models/local"));
    } catch {
      // Nothing is offered then; whoever opens the dialog is told why.
    }
    this.#looking = false;
  }

  #show(found) {
    const shown = JSON.stringify(found);
    if (shown === this.#shown) return; // one of its buttons may have the focus
    this.#shown = shown;
    const servers = found.servers.map((one) => ({ ...one, model: chatModels(one.models)[0] }));
    const offered = servers.filter(({ model }) => model);
    const empty = servers.find(({ provider }) => provider === "ollama");
    node.replaceChildren(
      ...(offered.length ? offered.map((one) => this.#button(one)) : howTo(found.commands, empty)),
    );
  }

  #button({ provider, title, model }) {
    return element(
      "button.button",
      { onclick: () => this.#use(provider, model) },
      icon("home"),
      element("span", "Answer with ", element("strong", model), ` from ${title} on this machine`),
    );
  }
}

/** `empty` is an Ollama that runs without a model: it needs the last command alone. */
function howTo(commands, empty) {
  const needed = empty ? commands.slice(-1) : commands;
  const why = empty
    ? "Ollama runs on this machine without a model. This brings one:"
    : "No model runs on this machine. Two commands in a terminal bring one:";
  return [
    element("p", why),
    ...needed.map((command) =>
      element(
        "div.command",
        element("code", command),
        copyButton("copy", "Copy", () => command),
      ),
    ),
  ];
}
