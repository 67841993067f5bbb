// Which repositories a question is asked of: check marks behind a chip, and `@repo:name` in the
// question. Several have a page of their own, to which the question that is being typed is taken.

import { query } from "../lib/api.js";
import { byId } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { openPopover } from "../lib/popup.js";
import { rememberQuestion } from "../lib/preferences.js";

const MOST = 50;
const NAMED = /(?<!\S)@repo:(?:"([^"]+)"|([^\s,;:?!]+))/g;

export class Together {
  #chip = byId("together-chip");
  #form = byId("together");
  #boxes = [...this.#form.querySelectorAll("input")];
  #here = this.#checked(); // what this page asks
  #field;

  /** `field` is where the question is written. */
  constructor(field) {
    this.#field = field;
    this.#chip.addEventListener("click", () => openPopover(this.#chip, this.#form));
    this.#form.addEventListener("change", () => this.#describe());
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#go(this.#checked());
    });
    this.#describe();
  }

  /** The repositories that `typed`, which stands behind `@`, may become, as places of a list. */
  completions(typed) {
    const words = typed.toLowerCase();
    if (!words || this.#boxes.length < 2) return [];
    return this.#boxes
      .filter(({ dataset }) => `repo:${dataset.name}`.toLowerCase().startsWith(words))
      .map(({ dataset }) => ({
        kind: "folder",
        text: `repo:${dataset.name}`,
        label: `repo:${dataset.name}`,
        detail: "repository",
        path: `${dataset.name}/`,
        what: "",
      }));
  }

  /** Goes to the page of the repositories that `text` names, where this one does not ask them. */
  leavesFor(text) {
    const named = [...text.matchAll(NAMED)].map(
      (match) => match[1] ?? match[2].replace(/\.+$/, ""),
    );
    const others = this.#boxes.filter(
      (box) => named.includes(box.dataset.name) && !this.#here.includes(box),
    );
    if (others.length) this.#go([...this.#here, ...others]);
    return others.length > 0;
  }

  #checked() {
    return this.#boxes.filter((box) => box.checked);
  }

  #describe() {
    const count = this.#checked().length;
    byId("together-go").disabled = !count || count > MOST;
    byId("together-count").textContent =
      count > MOST
        ? `${count} are too many: up to ${MOST}`
        : plural(count, "repository", "repositories");
  }

  #go(boxes) {
    const ends = boxes.map((box) => box.value).sort();
    const repo = boxes.length === 1 ? boxes[0].dataset.id : ends.join("~");
    rememberQuestion(repo, this.#field.value);
    location.assign(`/${query({ repo })}`);
  }
}
