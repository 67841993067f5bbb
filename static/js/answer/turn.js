// One question and its answer, from the first stage to the buttons below it.

import { announce, element, icon, setHtml } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { copyButton, failureCard, noticeLine } from "../lib/widgets.js";
import { Branches } from "./branches.js";
import { Citations, frameCode, keepNumbersTogether, sourcesOf } from "./code_references.js";
import { earlierOf, evidenceOf } from "./evidence.js";
import { actionButton, noticesOf, suggestionsOf } from "./footer.js";
import { Stages } from "./stages.js";
import { beginReading, readAloud, showUnfinished, wordsOf } from "./streaming.js";
import { Thumbs } from "./thumbs.js";

const LIST_ITEMS = 100; // after which a list goes on as another block, so that each is laid out quickly
const LONG = { characters: 700, lines: 9 }; // of a question, beyond which its end is folded
// Codes of errors that another model, or none, would not have met.
const MODELS_FAULT = ["model", "context_length", "settings"];

export class Turn {
  id = ""; // the server's name for what is kept of it, once known
  #text = "";
  #index = -1; // of the last block: items of a list come one by one under that of their list
  #settled = 0; // UTF-16 units of the text that finished blocks stand for
  #hooks;
  #stages;
  #citations = new Citations();
  #answer = element("div.answer");
  #unfinished = element("div.unfinished");
  #found = element("div.found"); // what the search has found, until the answer begins
  #footer = element("div.answer-footer");
  #outcome = null;
  #siblings = [];
  #past = false; // as the server kept it, not written here
  #branches;
  #painting = 0; // the frame in which the text so far will be shown

  /**
   * `asked` is `{ text, codebase, effort, rerank, hyde, retrieval, strict, withoutModel, model, pin,
   * exclude }`; `hooks` are what its buttons do: `again(turn, changes)`, `context(turn, opener)`,
   * `edit(turn)`, `ask(text)`, `branch(turn, id, step)`, `chooseModel()`, `rate(turn, value, reason)`.
   */
  constructor(asked, hooks) {
    this.asked = asked;
    this.#hooks = hooks;
    this.#stages = new Stages(asked.model);
    this.#branches = new Branches((id, step) => hooks.branch(this, id, step));
    const bubble = element(
      "div",
      asked.codebase ? element("span.tag", "@codebase") : null,
      asked.text,
    );
    const edit = element(
      "button.icon-button.edit",
      {
        "aria-label": "Edit the question",
        title: "Edit the question",
        onclick: () => hooks.edit(this),
      },
      icon("edit"),
    );
    const lines = asked.text.split("\n").length;
    if (asked.text.length > LONG.characters || lines > LONG.lines) foldQuestion(bubble);
    this.node = element(
      "article.turn.writing",
      { "aria-busy": "true" },
      element("h2.visually-hidden", "Question"),
      element("div.question", edit, bubble),
      this.#branches.node,
      element("h3.visually-hidden", "Answer"),
      this.#stages.node,
      this.#found,
      this.#answer,
      this.#footer,
    );
    this.#answer.append(this.#unfinished);
  }

  /** A turn whose answer `model` is still writing, as far as the server kept it. */
  static joined(kept, hooks, model = "") {
    // Where nothing could be drafted, nothing is known of what was wanted.
    const hyde = kept.tagged && kept.model ? kept.hyde : "";
    const turn = new Turn(
      {
        text: kept.question,
        codebase: kept.tagged,
        effort: kept.effort,
        rerank: Boolean(kept.reranker),
        hyde,
        model,
      },
      hooks,
    );
    turn.node.id = `turn-${kept.id}`;
    turn.id = kept.id;
    turn.siblings = kept.siblings ?? [];
    return turn;
  }

  /** A turn as the server kept it. */
  static restored(kept, hooks) {
    const turn = Turn.joined(kept, hooks);
    turn.#past = true;
    turn.#text = kept.answer;
    turn.#settled = kept.answer.length;
    turn.#addHtml(kept.html);
    turn.#outcome = {
      ...kept,
      turn: kept.id,
      failure: kept.error,
      stopped: !kept.finished && !kept.error,
    };
    turn.#stages.complete(turn.#outcome);
    turn.#close();
    return turn;
  }

  /** Ids of all versions of it, itself among them once it is kept. */
  set siblings(ids) {
    this.#siblings = ids;
    this.#branches.show(ids, this.id);
  }

  get siblings() {
    return this.#siblings;
  }

  /** Focuses the button of the switch between versions that `step` belongs to. */
  focusBranches(step) {
    this.#branches.focus(step);
  }

  get text() {
    return this.#text;
  }

  /** What the server said at the end: model, tokens, what a follow-up carries, … */
  get outcome() {
    return this.#outcome ?? {};
  }

  /** Whether the code was searched for it and something was found. */
  get foundCode() {
    const {
      query_tags: tags,
      retrieval_info: retrieved,
      searched_automatically: automatic,
    } = this.outcome;
    return Boolean((automatic || tags?.includes("codebase")) && retrieved?.num_docs);
  }

  /** Takes one event of the stream. */
  take(event) {
    if (event.stage === "classified" && this.asked.untouched && event.searches === false) {
      // The tag was ours, and this is not about the code.
      this.asked.codebase = false;
      this.node.querySelector(".question .tag")?.remove();
    }
    if (event.stage === "asked") {
      this.id = event.turn;
    } else if (event.stage === "cited") {
      if (this.#citations.take(event.citations)) this.#citations.mark(this.#answer);
    } else if (event.stage === "hits") {
      this.#showFound(event.hits);
    } else if (event.stage) {
      this.#stages.take(event); // may carry a text of its own: a draft is no answer
    } else if (event.text !== undefined) {
      if (!this.#text) this.#begin();
      this.#text += event.text;
      this.#paint();
    } else if (event.block) {
      const { html, index } = event.block;
      const words = this.#addHtml(html, index === this.#index);
      this.#index = index;
      if (this.node.isConnected) readAloud(words);
      this.#settled += event.block.length;
      this.#showUnfinished();
    } else if (event.error) {
      this.#outcome = { failure: event.error, turn: event.turn };
    } else if (event.stopped) {
      this.#outcome = { ...event };
    } else if ("intent" in event) {
      this.#outcome = { ...event };
    }
  }

  /** The stream has ended; `failure` is an error that ended it. */
  finish({ failure, stopped }) {
    if (failure) this.#outcome = { failure };
    else if (stopped || !this.#outcome) this.#outcome = { ...this.#outcome, stopped: true };
    const outcome = this.outcome;
    if (outcome.failure) {
      announce(`That failed. ${outcome.failure.message}`);
    } else if (outcome.stopped) {
      announce("Stopped");
    }
    this.#stages.complete(outcome);
    this.#showUnfinished();
    this.#close();
    const { outside, unverified } = this.#citations.doubtful;
    if (!outcome.failure && !outcome.stopped) {
      const cited = plural((outcome.citations ?? []).length, "citation");
      const doubts = [
        outside ? `, ${outside} not in the context` : "",
        unverified ? `, ${unverified} not verified` : "",
      ];
      announce(`The answer is complete, with ${cited}${doubts.join("")}`);
    }
  }

  /** Completes the turn: marks citations and adds the footer. */
  #close() {
    const outcome = this.outcome;
    this.id = outcome.turn ?? this.id;
    this.node.classList.remove("writing");
    this.node.removeAttribute("aria-busy");
    this.#citations.take(outcome.citations ?? []);
    this.#citations.mark(this.#answer);
    this.#found.remove();
    const { sources } = this.#citations;
    if (sources) this.#footer.append(sources);
    if (outcome.stopped && this.#past) {
      this.#footer.append(noticeLine("stop", "Stopped before it was complete"));
    }
    if (outcome.notice) this.#footer.append(noticeLine("alert", outcome.notice));
    if (outcome.failure) {
      this.#footer.append(failureCard(outcome.failure, ...this.#waysOut()));
    }
    const search = this.asked.codebase ? null : () => this.#hooks.again(this, { codebase: true });
    this.#footer.append(...noticesOf(outcome, this.asked, search));
    const evidence = evidenceOf(outcome.grounding, this.#answer);
    if (evidence) this.#footer.append(evidence);
    const earlier = earlierOf(outcome.earlier);
    if (earlier) this.#footer.append(earlier);
    if (this.#text || this.id || outcome.stopped) {
      const actions = this.#actions(outcome);
      this.#footer.append(actions);
      if (this.#text.trim() && !outcome.failure) this.#footer.append(this.#thumbs(actions));
    }
    const suggestions = suggestionsOf(outcome.suggestions, (text) => this.#hooks.ask(text));
    if (suggestions) this.#footer.append(suggestions);
  }

  /** The first words have come. */
  #begin() {
    beginReading();
    this.#stages.write();
    if (!this.#found.contains(document.activeElement)) this.#found.remove();
  }

  #showFound(hits) {
    const places = hits.map(({ path, start_line, end_line }) => ({
      path,
      start: start_line,
      end: end_line,
    }));
    const label = this.#found.firstChild ? "Found" : "Found so far";
    this.#found.replaceChildren(sourcesOf(places, label));
  }

  #waysOut() {
    const again = this.outcome.failure.code === "broke_off" ? "Answer again" : "Try again";
    const ways = [[again, () => this.#hooks.again(this)]];
    if (!MODELS_FAULT.includes(this.outcome.failure.code)) return ways;
    ways.push(["Answer without the model", () => this.#hooks.again(this, { withoutModel: true })]);
    ways.push(["Change the model", () => this.#hooks.chooseModel()]);
    return ways;
  }

  #actions({ failure }) {
    const actions = element("div.actions");
    if (this.#text.trim())
      actions.append(copyButton("action", "Copy answer", () => this.#text.trim()));
    const context = actionButton(
      "layers",
      "Context",
      () => this.#hooks.context(this, context),
      "Exactly what the answer was made from, and what was sent",
    );
    actions.append(context);
    if (!failure) {
      const again = actionButton(
        "retry",
        "Regenerate",
        () => this.#hooks.again(this),
        "Ask the same question once more; this answer stays beside the new one",
      );
      again.classList.add("again");
      actions.append(again);
    }
    if (!this.asked.codebase && !this.outcome.suggest_codebase) {
      const search = actionButton(
        "search",
        "Search the code",
        () => this.#hooks.again(this, { codebase: true }),
        "Ask again with @codebase",
      );
      search.classList.add("again");
      actions.append(search);
    }
    return actions;
  }

  /** Adds the thumbs to the actions; returns the node for the reason, which goes below. */
  #thumbs(actions) {
    const thumbs = new Thumbs(this.outcome.feedback, (value, reason) =>
      this.#hooks.rate(this, value, reason),
    );
    actions.append(thumbs.buttons);
    return thumbs.below;
  }

  /** Adds a finished block; `goesOn` where it is more of the list before it. */
  #addHtml(html, goesOn = false) {
    const block = element("div.block");
    setHtml(block, html);
    for (const code of block.querySelectorAll(".code-block")) frameCode(code);
    for (const table of block.querySelectorAll(".table-wrap")) table.tabIndex = 0; // to be scrolled
    keepNumbersTogether(block);
    this.#citations.mark(block);
    const words = wordsOf(block);
    // A new node for what follows: one that is pushed down would count as a jump.
    const unfinished = element("div.unfinished");
    const list = goesOn ? this.#unfinished.previousSibling?.lastElementChild : null;
    if (list && list.children.length < LIST_ITEMS) {
      list.append(...block.firstElementChild.childNodes);
      this.#unfinished.replaceWith(unfinished);
    } else this.#unfinished.replaceWith(block, unfinished);
    this.#unfinished = unfinished;
    return words;
  }

  /** Shows the text so far with the next frame: many pieces may come within one. */
  #paint() {
    this.#painting ||= requestAnimationFrame(() => this.#showUnfinished());
  }

  #showUnfinished() {
    cancelAnimationFrame(this.#painting);
    this.#painting = 0;
    showUnfinished(this.#unfinished, this.#text.slice(this.#settled), this.#citations);
  }
}

/** Shows the beginning of a long question, and all of it after a click. */
function foldQuestion(bubble) {
  const words = element("div.folded", ...bubble.childNodes);
  const fold = ({ currentTarget: button }) => {
    const folded = words.classList.toggle("folded");
    button.textContent = folded ? "Show all" : "Show less";
    button.setAttribute("aria-expanded", String(!folded));
  };
  const button = element("button.link", { "aria-expanded": "false", onclick: fold }, "Show all");
  bubble.append(words, button);
}
