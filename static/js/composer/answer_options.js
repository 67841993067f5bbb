// The options for the next answer: an effort (fast, normal, deep), which says how much code is sent
// and sets reranking and HyDE, and each option by itself. Reranking has a switch beside the question,
// the others are in a form that the chip there opens.

import { announce, byId, element } from "../lib/dom.js";
import { duration, withoutProvider } from "../lib/format.js";
import { openPopover } from "../lib/popup.js";
import { recall, remember } from "../lib/preferences.js";
import { copyButton } from "../lib/widgets.js";

// How many texts the model writes to search by before it answers (HyDE); "" leaves that to the
// server's setting, and where that is "" as well the model may ask for one more search.
const HYDE_CHOICES = ["", "off", "one", "two"];
const EFFORTS = {
  fast: { label: "Fast", sends: "3 functions and 3 classes", rerank: false, hyde: "off" },
  normal: { label: "Normal", sends: "more code", rerank: false, hyde: "" },
  deep: { label: "Deep", sends: "the most code", rerank: true, hyde: "two" },
};
const TIMES_KEPT = 9; // answers whose times are kept per kind: enough that one slow one does not count
const KINDS_KEPT = 24; // kinds that are kept, the ones not used for longest go first
const OWN = "own";
const NO_MODEL =
  "Drafts need a language model, and none is in use: the search has the question alone.";
const HYDE_COUNTS = {
  "": "the model may search once more",
  off: "no draft",
  one: "one draft",
  two: "two drafts; the model orders files",
};

/** Which effort `{ effort, hyde }` is: a name of EFFORTS, or "own"; `server` is its setting. */
export function effortOf({ effort, hyde }, server = "") {
  if (!effort) return hyde ? OWN : server || "normal";
  return EFFORTS[effort].hyde === hyde ? effort : OWN;
}

/** Before efforts said how much code is sent, the fast one was to do without drafts. */
function rememberedEffort() {
  const before = recall("hyde") === "off" && recall("rerank") !== "on" ? "fast" : "";
  return known(Object.keys(EFFORTS), recall("effort")) || before;
}

export class AnswerOptions {
  #chip = byId("effort");
  #form = byId("answer-options");
  #hooks;
  #value = {
    effort: rememberedEffort(),
    rerank: recall("rerank") === "on",
    hyde: known(HYDE_CHOICES, recall("hyde")),
    retrieval: known(["explicit", "auto"], recall("retrieval")),
    strict: recall("strict") === "on",
    earlier_answers: recall("earlier-answers") !== "off",
  };
  #settings = { effort: "", hyde: "", reranker: "", reranker_command: "" };
  #model = "";
  #rerank = byId("rerank");
  #note = byId("rerank-note");

  /** `hooks`: `changed()`, `keeps()` whether a choice is for later days, too, `chooseModel()`. */
  constructor(hooks) {
    this.#hooks = hooks;
    this.#chip.addEventListener("click", () => {
      this.#show();
      openPopover(this.#chip, this.#form);
    });
    this.#rerank.addEventListener("click", () => {
      this.#note.hidden = this.#value.rerank;
      this.#take({ name: "rerank", checked: !this.#value.rerank });
    });
    this.#form.addEventListener("change", ({ target }) => this.#take(target));
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    byId("hyde-choose-model").addEventListener("click", () => {
      this.#form.hidePopover();
      hooks.chooseModel();
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

  /** What the server does where nothing was chosen here, and what reranks: `{ effort, hyde,
   * reranker, reranker_command }`. */
  set settings(values) {
    const before = this.#settings;
    const names = Object.keys(before);
    this.#settings = Object.fromEntries(names.map((name) => [name, values[name] ?? ""]));
    if (names.every((name) => before[name] === this.#settings[name])) return;
    this.#showReranker();
    this.#show();
  }

  /** Name of the model in use, "" for none. */
  set model(name) {
    this.#model = name;
    this.#show();
  }

  /** The question was sent: what was said of a switch has been read. */
  settle() {
    this.#note.hidden = true;
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
    if (name !== "rerank") announce(`How to answer: ${this.#words()}`); // a pressed button is told anyway
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
    remember("earlier-answers", this.#value.earlier_answers ? "" : "off");
  }

  /** `deep, strict`. */
  #words() {
    const { strict } = this.#value;
    return [
      this.#label().toLowerCase(),
      this.automatic ? "" : "searches only with @codebase",
      strict ? "strict" : "",
      this.#value.earlier_answers ? "" : "without earlier answers",
    ]
      .filter(Boolean)
      .join(", ");
  }

  #effort() {
    return effortOf(this.#value, known(Object.keys(EFFORTS), this.#settings.effort));
  }

  #label() {
    return EFFORTS[this.#effort()]?.label ?? "As set below";
  }

  #show() {
    const effort = this.#effort();
    const { rerank, hyde, strict } = this.#value;
    byId("effort-name").textContent = EFFORTS[effort]?.label ?? "Own";
    byId("effort-more").textContent = strict ? " · strict" : "";
    this.#chip.setAttribute("aria-label", `How to answer: ${this.#words()}`);
    this.#chip.title = `How to answer: ${this.#words()}`;
    this.#chip.classList.toggle("on", effort !== "normal" || strict);
    byId("effort-own").hidden = effort !== OWN;
    for (const name of [...Object.keys(EFFORTS), OWN]) {
      this.#input("effort", name).checked = name === effort;
      const time = expectedTime(name, this.#model);
      const node = byId(`expected-${name}`);
      node.textContent = time === null ? "–" : `≈ ${duration(time)}`;
      node.title =
        time === null
          ? "Not known yet: nothing was answered this way in this browser"
          : "The middle of what such answers took in this browser";
    }
    const chosen = hyde || this.#settings.hyde;
    for (const name of HYDE_CHOICES) {
      this.#input("hyde", name).checked = Boolean(this.#model) && name === chosen;
      this.#input("hyde", name).disabled = !this.#model;
    }
    this.#input("hyde", "").parentElement.hidden = Boolean(this.#settings.hyde);
    for (const name of Object.keys(EFFORTS)) byId(`${name}-does`).textContent = this.#does(name);
    byId("hyde-about").textContent = this.#model
      ? "Code that the model guesses, to search by its like; if needed, once it has seen what was found."
      : NO_MODEL;
    byId("hyde-choose-model").hidden = Boolean(this.#model);
    this.#rerank.setAttribute("aria-pressed", String(rerank));
    byId("rerank-by").hidden = !rerank;
    this.#form.elements.strict.checked = strict;
    this.#form.elements.earlier_answers.checked = this.#value.earlier_answers;
    this.#input("retrieval", this.automatic ? "auto" : "explicit").checked = true;
  }

  /** `more code; two drafts; the model orders files`, and so on. */
  #does(effort) {
    const parts = [EFFORTS[effort].sends];
    if (this.#model) {
      parts.push(HYDE_COUNTS[EFFORTS[effort].hyde || this.#settings.hyde]);
    }
    parts.push(EFFORTS[effort].rerank ? "reranked" : "");
    parts.push(effort === "deep" && this.#model ? "the model reads on with tools" : "");
    return parts.filter(Boolean).join("; ");
  }

  /** Says what reranks; a command that would bring a better one can be copied. */
  #showReranker() {
    const { reranker, reranker_command: command } = this.#settings;
    const [before, after] = command ? reranker.split(command) : [reranker];
    const about = element(
      "span",
      { id: "rerank-about" },
      `Reads the best hits again and puts them in order; slower. Reranker: ${before}`,
      command ? element("code", command) : null,
      after,
    );
    const copy = command ? copyButton("copy", "Copy", () => command) : "";
    this.#note.replaceChildren(about, copy);
    this.#rerank.title = about.textContent;
    byId("rerank-by").textContent = ` · ${withoutProvider(reranker.split(/[;,:] /)[0])}`;
  }

  #input(name, value) {
    return this.#form.querySelector(`input[name="${name}"][value="${value}"]`);
  }
}

const known = (values, value) => (values.includes(value) ? value : "");

/** Median milliseconds of the answers of this kind, null before there was one. */
function expectedTime(effort, model) {
  const times = [...(answerTimes()[timesKey(effort, model)] ?? [])].sort(
    (one, other) => one - other,
  );
  return times.length ? times[Math.floor(times.length / 2)] : null;
}

/** Notes that an answer of this kind took so many milliseconds. */
export function rememberAnswerTime(effort, model, milliseconds) {
  if (!Number.isFinite(milliseconds)) return;
  const name = timesKey(effort, model);
  const { [name]: times = [], ...others } = answerTimes();
  const kept = Object.entries(others).slice(-(KINDS_KEPT - 1));
  remember(
    "answer-times",
    JSON.stringify({
      ...Object.fromEntries(kept),
      [name]: [...times, Math.round(milliseconds)].slice(-TIMES_KEPT),
    }),
  );
}

const timesKey = (effort, model) => `${effort} ${model}`;

function answerTimes() {
  try {
    const values = JSON.parse(recall("answer-times") || recall("seconds") || "{}");
    return Object.fromEntries(
      Object.entries(values).filter(
        ([, times]) => Array.isArray(times) && times.every(Number.isFinite),
      ),
    );
  } catch {
    return {}; // somebody else's; it is written anew
  }
}
