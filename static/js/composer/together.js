// Which repositories a question is asked of: check marks behind a chip. Several have a page of
// their own, to which the question that is being typed is taken.

import { query } from "../lib/api.js";
import { byId } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { rememberQuestion } from "../lib/preferences.js";

const MOST = 400;

export class Together {
  #form = byId("together");
  #all = byId("together-all");
  #boxes = [...this.#form.querySelectorAll("input[name=repository]")];
  #field;

  /** `field` is where the question is written. */
  constructor(field) {
    this.#field = field;
    this.#form.addEventListener("change", (event) => this.#change(event.target === this.#all));
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#go(this.#checked());
    });
    this.#describe();
  }

  #change(every) {
    if (every) for (const box of this.#boxes) box.checked = this.#all.checked;
    else this.#all.checked = false;
    this.#describe();
  }

  #checked() {
    return this.#boxes.filter((box) => box.checked);
  }

  #describe() {
    const count = this.#checked().length;
    const tooMany = count > MOST && !this.#all.checked;
    byId("together-go").disabled = !count || tooMany;
    byId("together-count").textContent = tooMany
      ? `${count} are too many: choose up to ${MOST}`
      : plural(count, "repository", "repositories");
  }

  #go(boxes) {
    const ends = boxes.map((box) => box.value).sort();
    const several = this.#all.checked ? "~" : ends.join("~");
    const repo = boxes.length === 1 ? boxes[0].dataset.id : several;
    rememberQuestion(repo, this.#field.value);
    location.assign(`/${query({ repo })}`);
  }
}
