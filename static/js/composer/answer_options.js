// The options for the next answer: an effort (fast, normal, deep), which says how much code is sent
// and sets reranking and HyDE, and each option by itself. They are in a form that the chip beside the question opens.

import { announce, byId } from "../lib/dom.js";
import { duration } from "../lib/format.js";
import { openPopover } from "../lib/popup.js";
import { recall, remember } from "../lib/preferences.js";

const HYDE_CHOICES = ["off", "one", "two"]; // how many texts the model writes to search by (HyDE)
// "" leaves that to the server's setting.
const EFFORTS = {
  fast: { label: "Fast", rerank: false, hyde: "off" },
  normal: { label: "Normal", rerank: false, hyde: "" },
  deep: { label: "Deep", rerank: true, hyde: "two" },
};
const TIMES_KEPT = 9; // answers whose times are kept per kind: enough that one slow one does not count
const KINDS_KEPT = 24; // kinds that are kept, the ones not used for longest go first
const OWN = "own";
const NO_MODEL =
  "Drafts need a language model, and none is in use: the search has the question alone.";
const HYDE_COUNTS = { off: "no draft", one: "one draft", two: "two drafts" };

/** Which effort `{ effort, rerank, hyde }` is: a name of EFFORTS, or "own"; `server` is its setting. */
export function effortOf({ effort, rerank, hyde }, server = "") {
  if (!effort) return rerank || hyde ? OWN : server || "normal";
  const named = EFFORTS[effort];
  return named.rerank === Boolean(rerank) && named.hyde === hyde ? effort : OWN;
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
  };
  #settings = { effort: "", hyde: "", retrieval: "", reranker: "" };
  #model = "";

  /** `hooks`: `changed()`, `keeps()` whether a choice is for later days, too, `chooseModel()`. */
  constructor(hooks) {
    this.#hooks = hooks;
    this.#chip.addEventListener("click", () => {
      this.#show();
      openPopover(this.#chip, this.#form);
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
  set value({ effort, rerank, hyde, retrieval, strict }) {
    this.#value = {
      effort: known(Object.keys(EFFORTS), effort) || this.#value.effort,
      rerank: Boolean(rerank),
      hyde: known(HYDE_CHOICES, hyde),
      retrieval:
        retrieval === undefined ? this.#value.retrieval : known(["explicit", "auto"], retrieval),
      strict: strict === undefined ? this.#value.strict : Boolean(strict),
    };
    this.#show();
  }

  get automatic() {
    return (this.#value.retrieval || this.#settings.retrieval) === "auto";
  }

  /** What the server does where nothing was chosen here, and what reranks: `{ effort, hyde,
   * retrieval, reranker }`. */
  set settings({ effort = "", hyde = "", retrieval = "", reranker = "" }) {
    const before = this.#settings;
    this.#settings = { effort, hyde, retrieval, reranker };
    if (Object.keys(before).some((name) => before[name] !== this.#settings[name])) this.#show();
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
    } else if (name === "rerank" || name === "strict") {
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
  }

  /** `deep, strict`. */
  #words() {
    const { strict } = this.#value;
    return [
      this.#label().toLowerCase(),
      this.automatic ? "searches by itself" : "",
      strict ? "strict" : "",
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
    byId("normal-does").textContent =
      this.#settings.hyde && this.#model
        ? `about 8,000 tokens of code; ${HYDE_COUNTS[this.#settings.hyde]}; the model orders files`
        : "about 8,000 tokens of code";
    byId("hyde-about").textContent = this.#model
      ? "Code that the model guesses, to search by its like."
      : NO_MODEL;
    byId("hyde-choose-model").hidden = Boolean(this.#model);
    const by = this.#settings.reranker;
    byId("rerank-about").textContent =
      `Orders what is found more carefully; slower.${by && ` By: ${by}`}`;
    this.#form.elements.rerank.checked = rerank;
    this.#form.elements.strict.checked = strict;
    this.#input("retrieval", this.automatic ? "auto" : "explicit").checked = true;
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
