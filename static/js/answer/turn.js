// One question and its answer, from the first stage to the buttons below it.

import { announce, byId, element, icon, setHtml } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { page } from "../lib/page.js";
import { openMenu } from "../lib/popup.js";
import { copyButton, failureCard, noticeLine } from "../lib/widgets.js";
import { WITH_CHOICE } from "../panel/chunk_choice.js";
import { Branches } from "./branches.js";
import { Citations, fold, frameCode, sourcesOf } from "./code_references.js";
import { actionButton, earlierOf, noticesOf, suggestionsOf } from "./footer.js";
import { Stages } from "./stages.js";
import { beginReading, readAloud, showUnfinished, wordsOf } from "./streaming.js";
import { Thumbs } from "./thumbs.js";

const LIST_ITEMS = 25; // after which a list goes on as another block, so that each is laid out quickly
const BLOCKS_TOGETHER = 30; // those before them are laid out no more as the answer grows
const LONG = { characters: 700, lines: 9 }; // of a question, beyond which its end is folded
// Codes of errors that another model, or none, would not have met.
const MODELS_FAULT = ["model", "context_length", "settings"];

/** Knows which blocks are a window's height away from what is in view: those are not laid out. */
const near = new IntersectionObserver(
  (changed) => {
    for (const { target, isIntersecting } of changed)
      target.classList.toggle("far", !isIntersecting);
  },
  { root: byId("scroller"), rootMargin: "100% 0px" },
);

export class Turn {
  id = ""; // the server's name for what is kept of it, once known
  #text = "";
  #index = -1; // of the last block: items of a list come one by one under that of their list
  #settled = 0; // UTF-16 units of the text that finished blocks stand for
  #conversation;
  #stages;
  #citations = new Citations();
  #answer = element("div.answer");
  #unfinished = element("div.unfinished", { dir: "auto" });
  #found = element("div.found"); // what the search has found, until the answer begins
  #footer = element("div.answer-footer");
  #outcome = null;
  #siblings = [];
  #past = false; // as the server kept it, not written here
  #branches;
  #regenerate = null; // the words of that button
  #painting = 0; // the frame in which the text so far will be shown

  /**
   * `asked` is `{ text, codebase, effort, rerank, hyde, retrieval, strict, withoutModel, model, pin,
   * exclude }`; its buttons ask again and show other versions in `conversation`.
   */
  constructor(asked, conversation) {
    this.asked = asked;
    this.#conversation = conversation;
    this.#stages = new Stages(asked.model);
    this.#branches = new Branches(
      (id, step) => conversation.branch(this, id, step),
      (button) => this.#compare(button),
      conversation.following,
    );
    const bubble = element(
      "div",
      { dir: "auto" },
      asked.codebase ? element("bdi.tag", "@codebase") : null,
      asked.text,
    );
    const title = "Edit the question";
    const pencil = { title, "aria-label": title, onclick: () => page.edit(this) };
    const edit = element("button.icon-button.edit", pencil, icon("edit"));
    const lines = asked.text.split("\n").length;
    if (asked.text.length > LONG.characters || lines > LONG.lines) {
      bubble.replaceChildren(element("div.foldable", ...bubble.childNodes));
      fold(bubble, "Show all");
    }
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
    this.#newBlocks().append(this.#unfinished);
  }

  /** A turn whose answer `model` is still writing, as far as the server kept it. */
  static joined(kept, conversation, model = "") {
    // Where nothing could be drafted, nothing is known of what was wanted.
    const { question: text, tagged: codebase, effort } = kept;
    const hyde = codebase && kept.model ? kept.hyde : "";
    const rerank = Boolean(kept.reranker);
    const turn = new Turn({ text, codebase, effort, rerank, hyde, model }, conversation);
    turn.id = kept.id;
    turn.siblings = kept.siblings ?? [];
    return turn;
  }

  /** A turn as the server kept it. */
  static restored(kept, conversation) {
    const turn = Turn.joined(kept, conversation);
    turn.#past = true;
    turn.#text = kept.answer;
    turn.#settled = kept.answer.length;
    turn.#addHtml(kept.html);
    const { id, error, finished } = kept;
    turn.#outcome = { ...kept, turn: id, failure: error, stopped: !finished && !error };
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
      this.#showUnfinished(); // at once: where the end moved up meanwhile, nobody would follow it
    } else if (event.error) {
      this.#outcome = { failure: event.error, turn: event.turn };
    } else if (event.stopped || "intent" in event) {
      this.#outcome = { ...event };
    }
  }

  /** The stream has ended; `failure` is an error that ended it. */
  finish({ failure, stopped }) {
    if (failure) this.#outcome = { failure };
    else if (stopped || !this.#outcome) this.#outcome = { ...this.#outcome, stopped: true };
    const outcome = this.outcome;
    this.#stages.complete(outcome);
    this.#showUnfinished();
    this.#close();
    const { struck } = this.#citations;
    const told = [
      plural((outcome.citations ?? []).length, "citation"),
      struck ? `${struck} not verified` : "",
    ];
    if (outcome.failure) announce(`That failed. ${outcome.failure.message}`);
    else if (outcome.stopped) announce("Stopped");
    else announce(`The answer is complete, with ${told.filter(Boolean).join(", ")}`);
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
    const { failure, notice, stopped } = outcome;
    const search = this.asked.codebase
      ? null
      : () => this.#conversation.again(this, { codebase: true });
    const actions = this.#text || this.id || stopped ? this.#actions(outcome) : null;
    const below = [
      this.#citations.sources,
      stopped && this.#past ? noticeLine("stop", "Stopped before it was complete") : null,
      notice ? noticeLine("alert", notice) : null,
      failure ? failureCard(failure, ...this.#waysOut()) : null,
      ...noticesOf(outcome, this.asked, search),
      earlierOf(outcome.earlier),
      actions,
      this.#text.trim() && this.id && !failure ? this.#thumbs(actions) : null,
      suggestionsOf(outcome.suggestions, page.ask),
    ];
    this.#footer.append(...below.filter(Boolean));
  }

  /** The first words have come. */
  #begin() {
    beginReading();
    this.#stages.write();
    if (!this.#found.contains(document.activeElement)) this.#found.remove();
  }

  #showFound(hits) {
    const places = hits.map(({ start_line: start, end_line: end, ...hit }) => ({
      ...hit,
      start,
      end,
    }));
    const label = this.#found.firstChild ? "Found" : "Found so far";
    this.#found.replaceChildren(sourcesOf(places, label));
  }

  #waysOut() {
    const again = this.outcome.failure.code === "broke_off" ? "Answer again" : "Try again";
    const ways = [[again, () => this.#conversation.again(this)]];
    if (!MODELS_FAULT.includes(this.outcome.failure.code)) return ways;
    ways.push([
      "Answer without the model",
      () => this.#conversation.again(this, { withoutModel: true }),
    ]);
    ways.push(["Change the model", () => page.models.choose()]);
    return ways;
  }

  #actions({ failure, goes_on: goesOn, suggest_codebase: suggested }) {
    const again = (changes) => this.#conversation.again(this, changes);
    const made = "The code behind this answer, and exactly what was sent";
    const same = "Ask the same question again; this answer stays as another version";
    const context = actionButton("layers", "Context", made, () =>
      page.panel.openContext(this.id || this.replaces, { opener: context }),
    );
    const regenerate = actionButton("retry", "Regenerate", same, () => again({ with_model: "" }));
    const other = actionButton("model", "with model…", "Have another model answer it", () =>
      openMenu(other, this.#models(again), () => {}),
    );
    const searched = this.foundCode || goesOn ? "Search again" : "Search the code";
    const search = actionButton("search", searched, "Ask again with @codebase", () =>
      again({ codebase: true }),
    );
    for (const button of [regenerate, other, search]) button.classList.add("again");
    other.classList.add("other-model");
    this.#regenerate = regenerate.lastChild;
    this.showChoice();
    other.setAttribute("aria-label", "Answer with model…");
    return element(
      "div.actions",
      this.#text.trim() ? copyButton("action", "Copy answer", () => this.#text.trim()) : null,
      context,
      failure ? null : element("span.ways-again", regenerate, other),
      this.asked.codebase || suggested ? null : search,
    );
  }

  /** Has the button say whether code was chosen to answer again with. */
  showChoice() {
    if (this.#regenerate)
      this.#regenerate.textContent = page.panel.choiceWaits(this.id) ? WITH_CHOICE : "Regenerate";
  }

  /** Entries of a menu: the models that are set up, to answer this question. */
  #models(again) {
    return page.models.known.map(({ name, model, host, local }) => ({
      symbol: local ? "home" : "cloud",
      label: `${model} · ${local ? "this machine" : host}`,
      action: () => again({ with_model: name }),
    }));
  }

  /** Shows all versions beside each other in the place of this one, or this one again. */
  async #compare(button) {
    const shown = this.node.querySelector(".versions");
    shown?.remove();
    const versions = shown ? null : await this.#conversation.versions(this).catch(page.failed);
    if (versions) this.node.append(element("div.versions", ...versions));
    button.setAttribute("aria-pressed", String(Boolean(versions)));
  }

  /** Adds the thumbs to the actions; returns the node for the reason, which goes below. */
  #thumbs(actions) {
    const thumbs = new Thumbs(this.id, this.outcome.feedback);
    actions.append(thumbs.buttons);
    return thumbs.below;
  }

  /** Adds a finished block; `goesOn` where it is more of the list before it. */
  #addHtml(html, goesOn = false) {
    const block = element("div.block", { dir: "auto" }); // by its words: code says nothing about that
    setHtml(block, html);
    // A kept answer is one block, whose parts may be in several languages.
    if (block.children.length > 1) for (const part of block.children) part.dir = "auto";
    for (const code of block.querySelectorAll("code, pre, .code-block, .citation, .maths"))
      code.dir = "ltr";
    for (const code of block.querySelectorAll(".code-block")) frameCode(code);
    for (const table of block.querySelectorAll(".table-wrap")) table.tabIndex = 0; // to be scrolled
    this.#citations.mark(block);
    const words = wordsOf(block);
    // A new node for what follows: one that is pushed down would count as a jump.
    const unfinished = element("div.unfinished", { dir: "auto" });
    const list = goesOn ? this.#unfinished.previousSibling?.lastElementChild : null;
    if (list && list.children.length < LIST_ITEMS) {
      list.append(...block.firstElementChild.childNodes);
      this.#unfinished.replaceWith(unfinished);
    } else {
      let blocks = this.#unfinished.parentNode;
      this.#unfinished.remove();
      if (blocks.children.length === BLOCKS_TOGETHER) blocks = this.#newBlocks();
      blocks.append(block, unfinished);
    }
    this.#unfinished = unfinished;
    return words;
  }

  #newBlocks() {
    const blocks = element("div.blocks");
    this.#answer.append(blocks);
    near.observe(blocks);
    return blocks;
  }

  /** Shows the text so far with the next frame: many pieces may come within one. */
  #paint() {
    this.#painting ||= requestAnimationFrame(() => this.#showUnfinished());
  }

  #showUnfinished() {
    cancelAnimationFrame(this.#painting);
    this.#painting = 0;
    showUnfinished(this.#unfinished, this.#text.slice(this.#settled), this.#citations);
    this.#citations.mark(this.#unfinished);
  }
}
