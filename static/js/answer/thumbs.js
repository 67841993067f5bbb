// Thumbs up and down for an answer, with an optional reason after a thumb down.

import { announce, element, icon } from "../lib/dom.js";

const REASON_CHARACTERS = 2000; // as the server takes
const SAID = {
  1: "Marked as a good answer",
  0: "Mark taken back",
  "-1": "Marked as a bad answer. You may say why",
};

export class Thumbs {
  buttons = element("span.thumbs", { role: "group", "aria-label": "Was this answer good?" });
  below = element("div.reason");
  #value;
  #reason;
  #kept; // as the server has it: what a failure goes back to
  #keep;
  #saving = Promise.resolve();
  #field = null;
  #up = this.#thumb(1, "thumb-up", "Good answer");
  #down = this.#thumb(-1, "thumb-down", "Bad answer");

  /** `given` is `{ value, reason }` as kept; `keep(value, reason)` resolves once it is, or throws. */
  constructor(given, keep) {
    this.#kept = { value: given?.value ?? 0, reason: given?.reason ?? "" };
    this.#keep = keep;
    this.buttons.append(this.#up, this.#down);
    this.#take(this.#kept);
    this.#show();
  }

  #thumb(value, symbol, label) {
    return element(
      "button.action.thumb",
      { "aria-label": label, title: label, onclick: () => this.#press(value) },
      icon(symbol),
    );
  }

  #press(value) {
    this.#take({ value: this.#value === value ? 0 : value, reason: "" });
    announce(SAID[this.#value]);
    this.#save();
    if (this.#value === -1) this.#ask();
    else this.#show();
  }

  #take({ value, reason }) {
    this.#value = value;
    this.#reason = reason;
    this.#up.setAttribute("aria-pressed", String(value === 1));
    this.#down.setAttribute("aria-pressed", String(value === -1));
  }

  /** Sends one request after the other, so that the last press is what is kept. */
  #save() {
    const wanted = { value: this.#value, reason: this.#reason };
    this.#saving = this.#saving.then(async () => {
      try {
        await this.#keep(wanted.value, wanted.reason);
        this.#kept = wanted;
      } catch (error) {
        if (wanted.value !== this.#value || wanted.reason !== this.#reason) return; // pressed again
        this.#take(this.#kept);
        this.#show(
          element(
            "p.reason-problem",
            { role: "alert" },
            `${error.message} ${error.hint ?? ""}`.trim(),
          ),
        );
      }
    });
  }

  /** Shows the reason, and a button to change it. */
  #show(problem = null) {
    this.#field = null;
    const parts = problem ? [problem] : [];
    if (this.#value === -1) {
      const words = this.#reason ? [element("span.reason-text", this.#reason)] : [];
      const edit = element(
        "button.link",
        { onclick: () => this.#ask() },
        this.#reason ? "Change" : "Say why",
      );
      parts.push(element("p.reason-said", ...words, edit));
    }
    this.below.replaceChildren(...parts);
  }

  /** Asks for the reason; Enter keeps it, Escape leaves it. */
  #ask() {
    this.#field = element("textarea", {
      rows: 2,
      maxlength: REASON_CHARACTERS,
      placeholder: "Wrong place, something missing, made up …",
      "aria-label": "What was wrong with this answer? (optional)",
    });
    this.#field.value = this.#reason;
    const form = element(
      "form.reason-form",
      { autocomplete: "off" },
      this.#field,
      element(
        "div.reason-end",
        element("span.help", "Kept on this machine, with the conversation."),
        element("button.button", { onclick: () => this.#leave() }, "Not now"),
        element("button", { type: "submit", class: "button primary" }, "Save reason"),
      ),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#said(this.#field.value.trim());
    });
    form.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Escape") {
        event.preventDefault(); // neither the panel closes nor an answer stops
        event.stopPropagation();
        this.#leave();
      } else if (event.key === "Enter" && !event.shiftKey && event.target === this.#field) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
    this.below.replaceChildren(form);
    // On a phone the focus would bring up the keyboard for what is optional.
    if (matchMedia("(hover: hover)").matches) this.#field.focus();
    form.scrollIntoView({ block: "nearest" });
  }

  #said(reason) {
    const changed = reason !== this.#reason;
    this.#reason = reason;
    if (changed) {
      this.#save();
      announce(reason ? "Reason kept" : "Reason taken back");
    }
    this.#leave();
  }

  #leave() {
    this.#show();
    this.#down.focus({ preventScroll: true });
  }
}
