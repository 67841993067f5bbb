// When the server does not answer: says so above the question field, and tries again until it is back.
// Nothing that was typed or read is lost.

import { byId, element } from "../lib/dom.js";
import { page } from "../lib/page.js";

const SOON = 1000; // milliseconds between two looks at first
const LATER = 5000; // and at most
const GOOD_NEWS = 8000; // milliseconds for which it is said that all is well again

export class Connection {
  #node = byId("connection");
  #away = false;

  /** A request did not reach the server. */
  async lost() {
    if (this.#away) return;
    this.#away = true;
    const kept = "Your text is safe, and this page tries again on its own.";
    this.#say("unreachable", `The server does not answer. ${kept}`);
    for (let pause = SOON; this.#away; pause = Math.min(LATER, pause * 1.5)) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      const asked = fetch("/health", { cache: "no-store" });
      this.#away = !(await asked.then(
        ({ ok }) => ok,
        () => false,
      ));
    }
    for (const part of [page.list, page.models, page.index]) part.refresh();
    if (page.view?.turns.at(-1)?.outcome.failure?.code === "away") page.view.refresh();
    this.#say("ready", "The server is back.");
    setTimeout(() => this.settle(), GOOD_NEWS);
  }

  /** Hides the note: something else was asked or opened. */
  settle() {
    if (!this.#away) this.#node.hidden = true;
  }

  #say(state, words) {
    const dot = element("span.dot", { "data-state": state });
    this.#node.replaceChildren(dot, element("span", words));
    this.#node.hidden = false;
  }
}
