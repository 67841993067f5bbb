// Buttons that pin a piece of code to the context or leave it out, and ask the question again.

import { announce, element, icon } from "../lib/dom.js";
import { plural } from "../lib/format.js";

const placeOf = ({ path, start_line: start, end_line: end }) => `${path}:${start}-${end}`;

export class ChunkChoice {
  /** The bar that says what is chosen and asks again; hidden while nothing is. */
  node = element("div.chunk-choice-bar", {
    role: "group",
    "aria-label": "Chosen code",
    hidden: true,
  });
  #chosen = new Map(); // "pin" or "exclude" by place
  #buttons = [];
  #ask;

  /** `ask({ pin, exclude })` asks the same question again with these. */
  constructor(ask) {
    this.#ask = ask;
  }

  /** The buttons of one piece; only what was sent can be left out. */
  buttonsOf(chunk, { sent }) {
    const place = placeOf(chunk);
    const pin = this.#button(
      place,
      "pin",
      "pin",
      sent ? `Keep ${place} in any case` : `Put ${place} in`,
    );
    const out = sent ? this.#button(place, "exclude", "minus", `Leave ${place} out`) : null;
    return element("span.chunk-choice", pin, out);
  }

  #button(place, kind, symbol, label) {
    const node = element(
      "button",
      {
        class: `chunk-choose ${kind}`,
        "aria-pressed": "false",
        "aria-label": label,
        title: label,
        onclick: () => this.#press(place, kind),
      },
      icon(symbol),
    );
    this.#buttons.push({ node, place, kind });
    return node;
  }

  #press(place, kind) {
    const on = this.#chosen.get(place) !== kind;
    if (on) this.#chosen.set(place, kind);
    else this.#chosen.delete(place);
    this.#show();
    announce(this.#words() || "Nothing is chosen");
  }

  #places(kind) {
    return [...this.#chosen].filter(([, one]) => one === kind).map(([place]) => place);
  }

  #words() {
    const [pinned, out] = [this.#places("pin").length, this.#places("exclude").length];
    return [
      pinned ? `${plural(pinned, "piece")} kept or put in` : "",
      out ? `${plural(out, "piece")} left out` : "",
    ]
      .filter(Boolean)
      .join(", ");
  }

  #show() {
    for (const { node, place, kind } of this.#buttons)
      node.setAttribute("aria-pressed", String(this.#chosen.get(place) === kind));
    this.node.hidden = this.#chosen.size === 0;
    if (this.node.hidden) return;
    this.node.replaceChildren(
      element("span", this.#words()),
      element(
        "button.link",
        {
          onclick: () => {
            this.#chosen.clear();
            this.#show();
            announce("Nothing is chosen");
          },
        },
        "Reset",
      ),
      element(
        "button.button.primary",
        {
          onclick: () => this.#ask({ pin: this.#places("pin"), exclude: this.#places("exclude") }),
        },
        "Ask again with these",
      ),
    );
  }
}
