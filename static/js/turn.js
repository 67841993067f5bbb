// One question and its answer, from the first stage to the buttons below it.

import { request } from "./api.js";
import { announce, copyButton, count, duration, element, icon, plural, setHtml } from "./dom.js";

const STAGES = {
  classified: ({ intent }) => ["Understood", intent === "knowledge_base" ? "Searching the code" : "Reading on"],
  retrieved: ({ retrieval_info: { num_docs: found } }) => [`Found ${plural(found, "piece")} of code`, "Packing them"],
  generating: () => ["Answered", "Writing"],
};

export class Turn {
  #repo;
  #text = "";
  #settled = 0; // UTF-16 units of the text that finished blocks stand for
  #stages = element("ol", { class: "stages" });
  #answer = element("div", { class: "answer" });
  #tail = element("div", { class: "tail" });
  #foot = element("div", { class: "foot" });
  #stage = null;
  #since = 0;
  #outcome = null;

  constructor(repo, question, tagged) {
    this.#repo = repo;
    this.question = question;
    const bubble = element("div", {}, tagged ? element("span", { class: "tag" }, "@codebase") : null, question);
    this.node = element("article", { class: "turn writing", "aria-busy": "true" },
      element("h2", { class: "visually-hidden" }, "Question"),
      element("div", { class: "question" }, bubble),
      element("h3", { class: "visually-hidden" }, "Answer"),
      this.#stages, this.#answer, this.#foot);
    this.#answer.append(this.#tail);
    this.#running("Understanding");
    announce("Looking for an answer");
  }

  get text() {
    return this.#text;
  }

  /** Takes one event of the stream. */
  take(event) {
    if (event.text !== undefined) {
      this.#text += event.text;
      this.#showTail();
    } else if (event.block) {
      this.#addBlock(event.block);
    } else if (event.stage) {
      this.#addStage(event);
    } else if (event.error) {
      this.#outcome = { failure: event.error };
    } else if (event.stopped) {
      this.#outcome = { stopped: true, ...event };
    } else if ("intent" in event) {
      this.#outcome = { done: true, ...event };
    }
  }

  /** The stream has ended; `failure` is an error that ended it, `retry` asks again. */
  finish({ failure, stopped, retry }) {
    const outcome = failure ? { failure } : stopped ? { stopped: true } : this.#outcome ?? {};
    this.node.classList.remove("writing");
    this.node.removeAttribute("aria-busy");
    if (outcome.failure) {
      this.#settleStage("alert");
      this.#foot.append(failureCard(outcome.failure, retry));
      announce(`That failed. ${outcome.failure.message}`);
      return;
    }
    if (outcome.stopped) {
      this.#stage?.replaceChildren(icon("stop"), element("span", { class: "stopped" }, "Stopped"));
      announce("Stopped");
    } else {
      this.#settleStage("check", outcome.milliseconds);
      const wrong = this.#checkCitations(outcome.citations ?? []);
      const cited = (outcome.citations ?? []).length;
      announce(`The answer is complete, with ${plural(cited, "citation")}${wrong ? `, ${wrong} not verified` : ""}`);
    }
    const { coverage } = outcome;
    if (coverage && !this.#text.includes(coverage)) {
      this.#foot.append(element("p", { class: "coverage" }, `Searched: ${coverage}`));
    }
    this.#foot.append(this.#actions(outcome, retry));
  }

  #addStage(event) {
    const [past, next] = STAGES[event.stage]?.(event) ?? [event.stage, "Working"];
    if (event.stage === "generating") this.#settleStage("check", event.milliseconds, true);
    else this.#settleStage("check", event.milliseconds, false, past);
    this.#running(next, past);
    this.#since = event.milliseconds ?? this.#since;
    if (event.stage === "retrieved") announce(past);
  }

  #running(words, past = words) {
    this.#stage = element("li", {}, element("span", { class: "dot" }), element("span", {}, words));
    this.#stage.dataset.past = past;
    this.#stages.append(this.#stage);
  }

  /** Turns the running stage into a finished one with its time, or takes it away. */
  #settleStage(symbol, milliseconds, remove = false, words = this.#stage?.dataset.past) {
    const stage = this.#stage;
    this.#stage = null;
    if (!stage) return;
    if (remove) {
      stage.remove();
      return;
    }
    stage.classList.toggle("failed", symbol === "alert");
    stage.replaceChildren(icon(symbol), element("span", {}, words));
    const passed = milliseconds - this.#since;
    if (passed >= 1) stage.append(element("span", { class: "time" }, duration(passed)));
  }

  #addBlock({ html, length }) {
    const block = element("div", { class: "block" });
    setHtml(block, html);
    for (const code of block.querySelectorAll(".code-block")) frameCode(code);
    this.#settled += length;
    this.#tail.before(block);
    this.#showTail();
  }

  #showTail() {
    this.#tail.textContent = this.#text.slice(this.#settled);
  }

  /** Marks links whose citation the server could not verify after all; returns how many. */
  #checkCitations(citations) {
    const wrong = citations.filter(({ verified }) => verified === false);
    for (const { path, start, end } of wrong) {
      for (const link of this.#answer.querySelectorAll("a.citation")) {
        const { dataset } = link;
        if (dataset.path === path && dataset.start === String(start) && dataset.end === String(end)) {
          link.classList.add("unverified");
          link.title = "Not verified: these lines were not among what was found";
        }
      }
    }
    return wrong.length;
  }

  #actions({ turn }, retry) {
    const actions = element("div", { class: "actions" });
    if (this.#text.trim()) actions.append(copyButton("action", "Copy answer", () => this.#text.trim()));
    const context = element("div", { class: "context", id: `context-${turn}`, hidden: true });
    if (turn) actions.append(this.#contextButton(turn, context));
    actions.append(actionButton("retry", "Ask again", retry));
    const box = element("div", {}, actions);
    if (turn) box.append(context);
    return box;
  }

  #contextButton(turn, box) {
    const button = actionButton("layers", "Context", async () => {
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(open));
      box.hidden = !open;
      if (!open || box.childElementCount) return;
      try {
        const query = new URLSearchParams({ repo: this.#repo });
        fillContext(box, await request(`/api/context/${encodeURIComponent(turn)}?${query}`));
      } catch (error) {
        box.replaceChildren(failureCard(error));
      }
    });
    button.setAttribute("aria-expanded", "false");
    button.setAttribute("aria-controls", box.id);
    button.title = "Exactly what the answer was made from";
    return button;
  }
}

function actionButton(symbol, label, onclick) {
  return element("button", { type: "button", class: "action", onclick }, icon(symbol), label);
}

function frameCode(block) {
  const pre = block.querySelector("pre");
  pre.tabIndex = 0; // so that long lines can be scrolled from the keyboard
  block.prepend(element("div", { class: "code-head" },
    element("span", {}, block.dataset.language || "text"),
    copyButton("copy", "Copy", () => pre.textContent.replace(/\n$/, ""))));
}

function failureCard(failure, retry) {
  const text = element("div", {}, element("strong", {}, failure.message));
  if (failure.hint) text.append(element("p", {}, failure.hint));
  if (retry) text.append(element("button", { type: "button", class: "button", onclick: retry }, icon("retry"), "Try again"));
  return element("div", { class: "failure", role: "alert" }, icon("alert"), text);
}

function fillContext(box, { text, chunks, dropped }) {
  const list = element("ol", { class: "chunks" });
  const add = (chunk, number, left) => {
    const { path, start_line: start, end_line: end } = chunk;
    const open = element("button", {
      type: "button", class: left ? "dropped" : null, "data-path": path, "data-start": start, "data-end": end,
    },
    element("span", { class: "number" }, number),
    element("span", { class: "where" }, `${path}:${start}-${end}`),
    element("span", { class: "size" }, `${count(chunk.characters)} characters`),
    chunk.why || left ? element("span", { class: "why" }, [left ? "left out: over the budget" : "", chunk.why].filter(Boolean).join("; ")) : null);
    list.append(element("li", {}, open));
  };
  chunks.forEach((chunk, index) => add(chunk, String(index + 1), false));
  dropped.forEach((chunk) => add(chunk, "–", true));
  const summary = chunks.length
    ? `${plural(chunks.length, "chunk")}, ${plural(text.length, "character")}, exactly as packed`
    : "Nothing was packed for this answer.";
  const head = element("div", { class: "context-head" }, element("p", {}, summary));
  box.replaceChildren(head, list);
  if (!text) return;
  head.append(copyButton("copy", "Copy", () => text));
  const exact = element("pre", { tabindex: "0", "aria-label": "The context block" });
  exact.textContent = text;
  box.append(exact);
}
