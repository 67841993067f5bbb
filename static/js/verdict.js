// The line above a form's buttons that says what came of the last one.

import { element, icon } from "./dom.js";

export class Verdict {
  #node;

  constructor(node) {
    this.#node = node;
  }

  /** `symbol` is "check" for what went well, "alert" for what did not. */
  say(symbol, message, hint = "") {
    this.#show(symbol === "check" ? "good" : "bad", icon(symbol), message, hint);
  }

  wait(message) {
    this.#show("", element("span", { class: "dot", "data-state": "indexing" }), message);
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
    this.#node.replaceChildren(mark, element("p", {}, element("span", {}, message), hint ? element("span", { class: "hint" }, ` ${hint}`) : null));
  }
}
