// The options for the next answer: an effort (fast, normal, deep), which says how often the model may
// look further and sets reranking and HyDE, and each option by itself, in a form that the chip beside
// the question opens. Those that hardly change stand in the settings.

import { announce, byId } from "../lib/dom.js";
import { duration } from "../lib/format.js";
import { page } from "../lib/page.js";
import { recall, remember } from "../lib/preferences.js";

// How many texts the model writes to search by before it answers (HyDE); "" leaves that to the
// server's setting, and where that is "" as well to the effort.
const HYDE_CHOICES = ["", "off", "one", "two"];
const EFFORTS = {
  fast: { label: "Fast", does: "One search, one answer: costs least", rerank: false, hyde: "off" },
  normal: {
    label: "Balanced",
    does: "May look up more code, up to 3 times",
    rerank: false,
    hyde: "",
  },
  deep: {
    label: "Deep",
    does: "Thorough, slow: may look up more, up to 10 times",
    rerank: true,
    hyde: "two",
  },
};
const OWN = "own";
const NO_MODEL =
  "This needs a language model, and none is in use: the search uses only your question.";
const DRAFTS =
  "The model first writes what the code may look like, and the search also finds what resembles it. Helps where you do not know the names; each time takes seconds and one more request.";
const HYDE_COUNTS = { one: "drafts code first", two: "drafts code first, twice" };

/** Which effort `{ effort, hyde }` is: a name of EFFORTS, or "own"; `server` is its setting. */
export function effortOf({ effort, hyde }, server = "") {
  if (!effort) return hyde ? OWN : server || "normal";
  return EFFORTS[effort].hyde === hyde ? effort : OWN;
}

export class AnswerOptions {
  #chip = byId("effort");
  #form = byId("answer-options");
  #hooks;
  #value = {
    effort: known(Object.keys(EFFORTS), recall("effort")),
    rerank: recall("rerank") === "on",
    hyde: known(HYDE_CHOICES, recall("hyde")),
    retrieval: known(["explicit", "auto"], recall("retrieval")),
    strict: recall("strict") === "on",
    earlier_answers: recall("earlier-answers") === "on",
  };
  #settings = { effort: "", hyde: "", reranker: "" };
  #model = "";

  /** `hooks`: `changed()`, `keeps()` whether a choice is for later days, too. */
  constructor(hooks) {
    this.#hooks = hooks;
    this.#form.addEventListener("beforetoggle", () => this.#show());
    this.#form.addEventListener("toggle", () => {
      this.#form.querySelector("input:checked:not(:disabled)")?.focus({ preventScroll: true });
    });
    document.addEventListener("change", ({ target }) => {
      if (target.form === this.#form) this.#take(target);
    });
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    byId("hyde-choose-model").addEventListener("click", () => {
      this.#form.hidePopover();
      page.models.choose();
    });
    this.#show();
  }

  get value() {
    return { ...this.#value };
  }

  /** Takes the options of an earlier question; those that it does not name stay. */
  set value({ effort, rerank, hyde, retrieval, strict, earlier_answers: earlier }) {
    this.#value = {
      effort: known(Object.keys(EFFORTS), effort) || this.#value.effort,
      rerank: Boolean(rerank),
      hyde: known(HYDE_CHOICES, hyde),
      retrieval:
        retrieval === undefined ? this.#value.retrieval : known(["explicit", "auto"], retrieval),
      strict: strict === undefined ? this.#value.strict : Boolean(strict),
      earlier_answers: earlier === undefined ? this.#value.earlier_answers : Boolean(earlier),
    };
    this.#show();
  }

  /** Whether what needs code is searched for without @codebase, too: here unless it was chosen
   * otherwise, whatever the server's setting, which is for programs. */
  get automatic() {
    return this.#value.retrieval !== "explicit";
  }

  /** What the server does where nothing was chosen here, and what reranks:
   * `{ effort, hyde, reranker }`. */
  set settings(values) {
    const before = this.#settings;
    const names = Object.keys(before);
    this.#settings = Object.fromEntries(names.map((name) => [name, values[name] ?? ""]));
    if (names.every((name) => before[name] === this.#settings[name])) return;
    this.#show();
  }

  /** Name of the model in use, "" for none. */
  set model(name) {
    this.#model = name;
    this.#show();
  }

  #take(input) {
    const { name, value, checked } = input;
    if (name === "effort" && EFFORTS[value]) {
      const { rerank, hyde } = EFFORTS[value];
      Object.assign(this.#value, { effort: value, rerank, hyde });
    } else if (["rerank", "strict", "earlier_answers"].includes(name)) {
      this.#value[name] = checked;
    } else if (name === "hyde" || name === "retrieval") {
      this.#value[name] = value;
    }
    this.#show();
    announce(`How to answer: ${this.#words()}`);
    if (this.#hooks.keeps()) this.#remember();
    this.#hooks.changed();
  }

  #remember() {
    const { effort, rerank, hyde, retrieval, strict } = this.#value;
    remember("effort", effort);
    remember("rerank", rerank ? "on" : "");
    remember("hyde", hyde);
    remember("retrieval", retrieval);
    remember("strict", strict ? "on" : "");
    remember("earlier-answers", this.#value.earlier_answers ? "on" : "");
  }

  /** `deep, strict`. */
  #words() {
    const { strict } = this.#value;
    return [
      (EFFORTS[this.#effort()]?.label ?? "As set below").toLowerCase(),
      this.automatic ? "" : "searches only with @codebase",
      strict ? "strict" : "",
      this.#value.earlier_answers ? "with earlier answers" : "",
    ]
      .filter(Boolean)
      .join(", ");
  }

  #effort() {
    return effortOf(this.#value, known(Object.keys(EFFORTS), this.#settings.effort));
  }

  #show() {
    const effort = this.#effort();
    const { rerank, hyde, strict } = this.#value;
    byId("effort-name").textContent = EFFORTS[effort]?.label ?? "Custom";
    byId("effort-more").textContent = strict ? " · strict" : "";
    this.#chip.setAttribute("aria-label", `How to answer: ${this.#words()}`);
    this.#chip.title = `How to answer: ${this.#words()}`;
    this.#chip.classList.toggle("on", effort !== "normal" || strict);
    byId("effort-own").hidden = effort !== OWN;
    const inputs = this.#form.elements;
    inputs.effort.value = effort;
    for (const name of [...Object.keys(EFFORTS), OWN]) {
      const time = Number(recall(timeKey(name, this.#model)));
      byId(`expected-${name}`).textContent = time ? `≈ ${duration(time)}` : "";
      if (name !== OWN) byId(`${name}-does`).textContent = this.#does(name);
    }
    for (const input of inputs.hyde) {
      input.checked = Boolean(this.#model) && input.value === (hyde || this.#settings.hyde);
      input.disabled = !this.#model;
      if (!input.value) input.parentElement.hidden = Boolean(this.#settings.hyde);
    }
    byId("hyde-about").textContent = this.#model ? DRAFTS : NO_MODEL;
    byId("hyde-choose-model").hidden = Boolean(this.#model);
    const { reranker } = this.#settings;
    byId("reranker").textContent = reranker.startsWith("built-in") ? "CodeQA itself" : reranker;
    inputs.rerank.checked = rerank;
    inputs.strict.checked = strict;
    inputs.earlier_answers.checked = this.#value.earlier_answers;
    inputs.retrieval.value = this.automatic ? "auto" : "explicit";
  }

  /** `May look up more code, up to 3 times; drafts code first`. */
  #does(effort) {
    const parts = [EFFORTS[effort].does];
    if (this.#model) {
      parts.push(HYDE_COUNTS[EFFORTS[effort].hyde || this.#settings.hyde]);
    }
    parts.push(EFFORTS[effort].rerank ? "sorts the results again" : "");
    return parts.filter(Boolean).join("; ");
  }
}

const known = (values, value) => (values.includes(value) ? value : "");

/** Notes that an answer of this kind took so many milliseconds; one slow one counts for a quarter. */
export function rememberAnswerTime(effort, model, milliseconds) {
  if (!Number.isFinite(milliseconds)) return;
  const name = timeKey(effort, model);
  const before = Number(recall(name)) || milliseconds;
  remember(name, String(Math.round((3 * before + milliseconds) / 4)));
}

const timeKey = (effort, model) => `time.${effort}.${model}`;
