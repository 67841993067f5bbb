// When the server does not answer: says so above the question field, and tries again until it is back.
// Nothing that was typed or read is lost.

import { byId, element } from "../lib/dom.js";

const SOON = 1000; // milliseconds between two looks at first
const LATER = 5000; // and at most
const GOOD_NEWS = 8000; // milliseconds for which it is said that all is well again

export class Connection {
  #node = byId("connection");
  #back;
  #timer = 0;
  #pause = SOON;
  #away = false;

  /** `back()` is called once the server answers again. */
  constructor(back) {
    this.#back = back;
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
    this.#back();
    this.#say("ready", "The server is back.");
    this.#timer = setTimeout(() => this.settle(), GOOD_NEWS);
  }

  #say(state, words) {
    this.#node.replaceChildren(
      element("span.dot", { "data-state": state }),
      element("span", words),
    );
    this.#node.hidden = false;
  }
}
