// Buttons that pin a piece of code to the context or leave it out, and answer the question again.

import { announce, element, icon } from "../lib/dom.js";
import { chosenCode } from "../lib/format.js";
import { page } from "../lib/page.js";
import { showMessage } from "../lib/widgets.js";

export const WITH_CHOICE = "Regenerate with your choice";

const placeOf = ({ path, start_line: start, end_line: end }) => `${path}:${start}-${end}`;

export class ChunkChoice {
  /** The bar that says what is chosen and when that counts; hidden while there is nothing to say. */
  node;
  leftOut; // places of what the answer was asked without
  #said = element("span");
  #chosen = new Map(); // "pin" or "exclude" by place
  #asked; // what was chosen when the answer was asked for
  #buttons = [];
  #reset;
  #id;
  #again;

  /** Begins with what the answer was asked with that the server keeps under `id`. */
  constructor(id) {
    this.#id = id;
    const { pin = [], exclude = [] } = this.#turn?.asked ?? {};
    this.leftOut = exclude;
    for (const place of pin) this.#chosen.set(place, "pin");
    for (const place of exclude) this.#chosen.set(place, "exclude");
    this.#asked = this.#written;
    const reset = () => {
      this.#chosen.clear();
      this.#changed();
    };
    this.#reset = element("button.link", { onclick: reset }, "Reset");
    this.#again = element("button.button.primary", { onclick: () => this.#ask() }, WITH_CHOICE);
    const about = { role: "group", "aria-label": "Chosen code" };
    this.node = element("div.chunk-choice-bar", about, this.#said, this.#reset, this.#again);
    this.#show();
  }

  get #turn() {
    return page.view?.turnOf(this.#id);
  }

  #ask() {
    const turn = this.#turn;
    if (!turn || page.view.running) {
      showMessage("This answer is no longer in view, or another one is being written");
      return;
    }
    const choice = page.panel.takeChoice(this.#id);
    page.panel.close();
    page.view.again(turn, choice);
  }

  /** What to ask again with, `{ pin, exclude }`; null while the answer was asked for just so. */
  get pending() {
    if (this.#written === this.#asked) return null;
    return { pin: this.#places("pin"), exclude: this.#places("exclude") };
  }

  /** The buttons of one piece; only what was sent can be left out. */
  buttonsOf(chunk, { sent }) {
    const place = placeOf(chunk);
    return element(
      "span.chunk-choice",
      this.#button(place, "pin", "pin", `Pin ${place}`),
      sent ? this.#button(place, "exclude", "minus", `Leave ${place} out`) : null,
    );
  }

  #button(place, kind, symbol, label) {
    const attributes = {
      class: `chunk-choose ${kind}`,
      "aria-pressed": String(this.#chosen.get(place) === kind),
      "aria-label": label,
      title: label,
    };
    const node = element("button", attributes, icon(symbol));
    node.addEventListener("click", () => {
      if (this.#chosen.get(place) === kind) this.#chosen.delete(place);
      else this.#chosen.set(place, kind);
      this.#changed();
    });
    this.#buttons.push({ node, place, kind });
    return node;
  }

  #places(kind) {
    return [...this.#chosen].filter(([, one]) => one === kind).map(([place]) => place);
  }

  get #written() {
    return JSON.stringify([...this.#chosen].sort());
  }

  #changed() {
    for (const { node, place, kind } of this.#buttons)
      node.setAttribute("aria-pressed", String(this.#chosen.get(place) === kind));
    this.#show();
    this.#turn?.showChoice();
    announce(this.#said.textContent || "Nothing is chosen");
  }

  #show() {
    const chosen = chosenCode(this.#places("pin"), this.#places("exclude"));
    const asked = chosen && `Asked with ${chosen}`;
    const counts = `${chosen || "Nothing is chosen"}: used when you regenerate this answer`;
    this.#said.textContent = this.pending ? counts : asked;
    this.node.hidden = !this.#said.textContent;
    this.#reset.hidden = !chosen;
    this.#again.hidden = !this.pending;
  }
}
