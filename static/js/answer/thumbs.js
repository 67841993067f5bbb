// Thumbs up and down for an answer, with an optional reason after a thumb down.

import { query, request } from "../lib/api.js";
import { announce, element, icon } from "../lib/dom.js";
import { page } from "../lib/page.js";
import { failureText } from "../lib/widgets.js";

const REASON_CHARACTERS = 2000; // as the server takes
const SAID = {
  1: "Marked as a good answer",
  0: "Mark removed",
  "-1": "Marked as a bad answer. You may say why",
};

export class Thumbs {
  buttons = element("span.thumbs", { role: "group", "aria-label": "Was this answer good?" });
  #thumbs = [
    this.#thumb(1, "thumb-up", "Good answer"),
    this.#thumb(-1, "thumb-down", "Bad answer"),
  ];
  #reason = element("summary");
  #field = element("textarea", {
    rows: 2,
    maxlength: REASON_CHARACTERS,
    placeholder: "Wrong place, something missing, made up …",
    "aria-label": "What was wrong with this answer? (optional)",
  });
  #done = element("button.button.primary", { onclick: () => this.#say() }, "Save reason");
  #problem = element("p.reason-problem", { role: "alert" });
  #details = element("details.reason", this.#reason, element("div", this.#field, this.#done));
  below = element("div", this.#details, this.#problem);
  #given;
  #kept; // as the server has it: what a failure goes back to
  #address;
  #saving = Promise.resolve();

  /** `given` is `{ value, reason }` as the server keeps it for the turn `id`. */
  constructor(id, given) {
    this.#kept = { value: given?.value ?? 0, reason: given?.reason ?? "" };
    this.#address = `/api/turns/${encodeURIComponent(id)}/feedback${query({ repo: page.repo })}`;
    this.buttons.append(...this.#thumbs);
    this.#show(this.#kept);
    this.#field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey) this.#say();
      else if (event.key === "Escape") this.#leave();
      else return;
      event.preventDefault();
      event.stopPropagation(); // neither the panel closes nor an answer stops
    });
  }

  #thumb(value, symbol, label) {
    const onclick = () => this.#press(value);
    return element(
      "button.action.thumb",
      { "aria-label": label, title: label, onclick },
      icon(symbol),
    );
  }

  #press(pressed) {
    const value = this.#given.value === pressed ? 0 : pressed;
    this.#save({ value, reason: "" });
    announce(SAID[value]);
    this.#details.open = value < 0;
    // On a phone the focus would bring up the keyboard for what is optional.
    if (value < 0 && matchMedia("(hover: hover)").matches) this.#field.focus();
    this.#details.scrollIntoView({ block: "nearest" });
  }

  #say() {
    this.#save({ value: -1, reason: this.#field.value.trim() });
    announce("Reason saved");
    this.#leave();
  }

  #leave() {
    this.#details.open = false;
    this.#show(this.#given);
    this.#thumbs[1].focus({ preventScroll: true });
  }

  #show(given, problem = "") {
    this.#given = given;
    for (const [at, thumb] of this.#thumbs.entries())
      thumb.setAttribute("aria-pressed", String(given.value === 1 - 2 * at));
    this.#details.hidden = given.value >= 0;
    this.#reason.textContent = given.reason || "Say why";
    this.#field.value = given.reason;
    this.#problem.textContent = problem;
    this.#problem.hidden = !problem;
  }

  /** Sends one request after the other, so that the last press is what is kept. */
  #save(wanted) {
    this.#show(wanted);
    this.#saving = this.#saving.then(async () => {
      try {
        await request(this.#address, { body: wanted });
        this.#kept = wanted;
      } catch (error) {
        if (wanted === this.#given) this.#show(this.#kept, failureText(error)); // not pressed again
      }
    });
  }
}
