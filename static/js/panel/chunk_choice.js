// Buttons that pin a piece of code to the context or leave it out, and ask the question again.

import { announce, element, icon } from "../lib/dom.js";
import { plural } from "../lib/format.js";

const placeOf = ({ path, start_line: start, end_line: end }) => `${path}:${start}-${end}`;

export class ChunkChoice {
  /** The bar that says what is chosen and asks again; hidden while nothing is. */
  node;
  #said = element("span");
  #chosen = new Map(); // "pin" or "exclude" by place
  #buttons = [];

  /** `ask({ pin, exclude })` asks the same question again with these. */
  constructor(ask) {
    const reset = () => {
      this.#chosen.clear();
      this.#show();
    };
    const again = () => ask({ pin: this.#places("pin"), exclude: this.#places("exclude") });
    this.node = element(
      "div.chunk-choice-bar",
      { role: "group", "aria-label": "Chosen code", hidden: true },
      this.#said,
      element("button.link", { onclick: reset }, "Reset"),
      element("button.button.primary", { onclick: again }, "Ask again with these"),
    );
  }

  /** The buttons of one piece; only what was sent can be left out. */
  buttonsOf(chunk, { sent }) {
    const place = placeOf(chunk);
    return element(
      "span.chunk-choice",
      this.#button(place, "pin", "pin", sent ? `Keep ${place} in any case` : `Put ${place} in`),
      sent ? this.#button(place, "exclude", "minus", `Leave ${place} out`) : null,
    );
  }

  #button(place, kind, symbol, label) {
    const attributes = { class: `chunk-choose ${kind}`, "aria-pressed": "false", title: label };
    const node = element("button", { ...attributes, "aria-label": label }, icon(symbol));
    node.addEventListener("click", () => {
      if (this.#chosen.get(place) === kind) this.#chosen.delete(place);
      else this.#chosen.set(place, kind);
      this.#show();
    });
    this.#buttons.push({ node, place, kind });
    return node;
  }

  #places(kind) {
    return [...this.#chosen].filter(([, one]) => one === kind).map(([place]) => place);
  }

  #show() {
    for (const { node, place, kind } of this.#buttons)
      node.setAttribute("aria-pressed", String(this.#chosen.get(place) === kind));
    const [pinned, out] = [this.#places("pin").length, this.#places("exclude").length];
    const words = [
      pinned ? `${plural(pinned, "piece")} kept or put in` : "",
      out ? `${plural(out, "piece")} left out` : "",
    ];
    this.#said.textContent = words.filter(Boolean).join(", ");
    this.node.hidden = this.#chosen.size === 0;
    announce(this.#said.textContent || "Nothing is chosen");
  }
}
