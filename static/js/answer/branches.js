// The switch ‹ 2/3 › between the versions of a question that was edited or answered again. Each
// version has its own questions after it.

import { element, icon } from "../lib/dom.js";
import { plural } from "../lib/format.js";

export class Branches {
  node = element("div.branches", { role: "group", hidden: true });
  #ids = [];
  #at = 0;
  #choose;
  #following;
  #elsewhere = element("span.branches-following");
  #previous = this.#step(-1, "back", "Earlier version");
  #next = this.#step(1, "chevron", "Later version");
  #count = element("span.branches-count");

  /** `choose(id, step)` shows the version that the server keeps under `id`, `compare()` all of them;
   * `following` says how many questions follow a version, by its id. */
  constructor(choose, compare, following) {
    this.#choose = choose;
    this.#following = following;
    const onclick = () => compare(beside);
    const beside = element("button.compare", { "aria-pressed": "false", onclick }, "Compare");
    this.node.append(this.#elsewhere, beside, this.#previous, this.#count, this.#next);
    this.node.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.#go(step);
    });
  }

  /** `ids` of all versions, oldest first; one that was never kept stands after them. */
  show(ids, id) {
    this.#ids = ids;
    this.#at = ids.includes(id) ? ids.indexOf(id) : ids.length;
    const all = Math.max(ids.length, this.#at + 1);
    this.node.hidden = all < 2;
    this.node.setAttribute("aria-label", `Version ${this.#at + 1} of ${all}`);
    this.#count.textContent = `${this.#at + 1}/${all}`;
    const follow = ids.map((one, at) => {
      const number = at === this.#at ? 0 : this.#following.get(one);
      return number ? `${plural(number, "question")} after version\u00A0${at + 1}` : "";
    });
    this.#elsewhere.textContent = follow.filter(Boolean).join(", ");
    for (const [button, there] of [
      [this.#previous, this.#at > 0],
      [this.#next, this.#at < ids.length - 1],
    ]) {
      button.setAttribute("aria-disabled", String(!there));
    }
  }

  /** Focuses the button that was pressed before this version replaced the other one. */
  focus(step) {
    const [wanted, other] = step < 0 ? [this.#previous, this.#next] : [this.#next, this.#previous];
    (wanted.getAttribute("aria-disabled") === "true" ? other : wanted).focus({
      preventScroll: true,
    });
  }

  #step(step, symbol, label) {
    return element(
      "button",
      { "aria-label": label, title: label, onclick: () => this.#go(step) },
      icon(symbol),
    );
  }

  #go(step) {
    const id = this.#ids[this.#at + step];
    if (id) this.#choose(id, step);
  }
}
