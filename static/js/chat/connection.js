// When the server does not answer: says so above the question field, tries again until it is back,
// and then offers to ask again what broke off. Nothing that was typed or read is lost.

import { byId, element, icon } from "../lib/dom.js";

const SOON = 1000; // milliseconds between two looks at first
const LATER = 5000; // and at most
const GOOD_NEWS = 8000; // milliseconds for which it is said that all is well again

export class Connection {
  #node = byId("connection");
  #hooks;
  #timer = 0;
  #pause = SOON;
  #away = false;

  /** `hooks`: `back()` once the server answers again, `broken()` gives what to ask again or null. */
  constructor(hooks) {
    this.#hooks = hooks;
    addEventListener("online", () => {
      if (this.#away) this.#look();
    });
    document.addEventListener("visibilitychange", () => {
      if (this.#away && !document.hidden) this.#look();
    });
  }

  /** A request did not reach the server. */
  lost() {
    if (this.#away) return;
    this.#away = true;
    this.#pause = SOON;
    this.#say(
      "unreachable",
      "The server does not answer. What you typed is kept; this page tries again by itself.",
    );
    this.#wait();
  }

  /** Hides the note: something else was asked or opened. */
  settle() {
    if (!this.#away) this.#node.hidden = true;
  }

  #wait() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), this.#pause);
    this.#pause = Math.min(LATER, this.#pause * 1.5);
  }

  async #look() {
    clearTimeout(this.#timer);
    const there = await fetch("/health", { cache: "no-store" }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (!there) {
      this.#wait();
      return;
    }
    this.#away = false;
    this.#hooks.back();
    const again = this.#hooks.broken();
    this.#say(
      "ready",
      again ? "The server is back. The last answer broke off." : "The server is back.",
      again,
    );
    if (!again) this.#timer = setTimeout(() => this.settle(), GOOD_NEWS);
  }

  #say(state, words, again = null) {
    this.#node.replaceChildren(
      element("span.dot", { "data-state": state }),
      element("span", words),
    );
    if (again) {
      this.#node.append(
        element(
          "button.button",
          {
            onclick: () => {
              this.settle();
              again();
            },
          },
          icon("retry"),
          "Ask again",
        ),
      );
    }
    this.#node.hidden = false;
  }
}
