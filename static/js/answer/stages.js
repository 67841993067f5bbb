// The line above an answer that says what is being done, and how long it took.

import { announce, element, icon } from "../lib/dom.js";
import { duration, plural } from "../lib/format.js";
import { Details } from "./details.js";

const TIME_SHOWN_FROM = 50; // milliseconds from which on a finished stage says how long it took
// What the language model does for the search: while it lasts, afterwards, and what it makes.
const MODEL_STAGES = {
  "hyde-1": ["Drafting code to look for", "Drafted", "draft"],
  "hyde-2": ["Drafting again with what was found", "Drafted again", "draft"],
  order: ["Putting the files in order", "Put the files in order", "order"],
};
const STEPS_SHOWN = 4; // more of them are folded once the answer is there
const HITS_SHOWN = 5; // enough to begin reading; the panel has all of them
const COUNT_SHOWN_FROM = 3000; // milliseconds after which the seconds of a stage are counted in view

export class Stages {
  #list = element("ol.stages");
  #automaticMark = element(
    "span.searched-automatically",
    { hidden: true, title: "@codebase was not asked for; the question needs the code" },
    icon("search"),
    "searched automatically",
  );
  #details = new Details();
  #head = element("div.stages-head", this.#list, this.#automaticMark, this.#details.button);
  #found = element("div.found");
  #lookedUp = element("ol.looked-up", { "aria-label": "Looked up" });
  #manySteps = element("summary", { hidden: true });
  #steps = element("details.steps", { open: true }, this.#manySteps, this.#lookedUp);
  node = element("div.stages-box", this.#head, this.#details.body, this.#steps, this.#found);
  #stage = null;
  #thought = null; // the line of the reasoning that goes on
  #past = "";
  #since = 0; // milliseconds from the question to this stage, by the server's clock
  #clock = 0;
  #model;

  /** `model` is the name of the model that will write, "" for none. */
  constructor(model) {
    this.#model = model;
    this.#run("Understanding", "Understood");
  }

  /** Takes a stage as the server announces it. */
  take(event) {
    const { stage, milliseconds } = event;
    if (stage === "step") {
      this.#details.add(event.name, event.took ?? milliseconds);
      return; // its milliseconds are its own, not those since the question
    }
    if (stage === "rewritten") {
      this.#details.rewritten(event);
      return;
    }
    if (stage === "drafted" && event.outcome.startsWith("skipped")) return; // the panel says why
    if (stage === "thought") {
      this.#think(event.text);
      return;
    }
    if (stage === "waiting") {
      this.#wait(event);
      return;
    }
    if (stage === "looked_up") {
      this.#lookUp(event);
      if (event.tool) announce(event.summary);
      this.#does(event.tool ? "Reading on" : "Writing");
      return;
    }
    if (stage === "hits") this.#showHits(event.hits);
    if (stage === "classified") {
      this.#settle("check", milliseconds);
      this.#details.understood(event);
      this.#automatic(event);
      // What the search finds is told afterwards, and only if it finds something.
      if (event.rules?.includes("issue")) this.#run("Searching the code", "Searched the code");
      else if (event.searches) this.#run("Searching the code", "Found nothing");
      else if (event.goes_on)
        this.#run("Taking up the conversation", "Went on from what was found before");
      else this.#run("Taking up the conversation", "No code was used");
    } else if (stage === "drafting") {
      const [words, past] = MODEL_STAGES[event.name] ?? ["Drafting", "Drafted"];
      this.#remove(); // the search, which goes on with what is drafted
      this.#run(words, past);
      const found = this.#found.querySelectorAll("li").length;
      announce(found ? `${words}; ${plural(found, "place")} found so far` : words);
    } else if (stage === "drafted") {
      this.#drafted(event);
    } else if (stage === "retrieved" && event.retrieval_info.num_docs) {
      this.#past = `Found ${plural(event.retrieval_info.num_docs, "piece")} of code`;
      announce(this.#past);
      this.#settle("check", milliseconds);
      this.#run("Packing them", "Packed them");
    } else if (stage === "generating") {
      if (this.#past === "Packed them") this.#remove();
      else this.#settle("check", milliseconds);
      this.#run(this.#model ? `Waiting for ${this.#model}` : "Writing", "Answered");
    }
    this.#since = milliseconds ?? this.#since;
  }

  /** The first text has come. */
  write() {
    if (!this.#found.contains(document.activeElement)) this.#found.remove();
    this.#does("Writing");
  }

  /** A request has failed, and is made again in `seconds`. */
  #wait({ text, seconds, begins }) {
    if (begins) announce(text);
    this.#does(seconds ? text : `Waiting for ${this.#model}`);
    this.#stage?.classList.toggle("waiting", Boolean(seconds));
  }

  /** All is done, in `milliseconds` from the question; `done` is what the server says at the end. */
  complete(milliseconds, done = {}) {
    this.#settle("check", milliseconds);
    this.told(done);
  }

  /** What is known of an answer as a whole. */
  told(done) {
    this.#details.understood(done);
    this.#details.complete(done.steps);
    if (done.rewritten) this.#details.rewritten({ question: done.rewritten });
    this.#automatic(done);
    if (!this.#lookedUp.firstChild) for (const step of done.looked_up ?? []) this.#lookUp(step);
    const steps = this.#lookedUp.children.length;
    if (steps <= STEPS_SHOWN || this.#lookedUp.querySelector("[open]")) return;
    this.#manySteps.textContent = `${plural(steps, "step")} before the answer`;
    this.#manySteps.hidden = false;
    this.#steps.open = this.#steps.contains(document.activeElement);
  }

  /** What is being done now, in words. */
  #does(words) {
    const doing = this.#stage?.querySelector(".doing");
    if (doing) doing.textContent = words;
  }

  /** A restored answer: `line` takes the place of its stages. */
  past(line, kept) {
    this.complete();
    this.#list.replaceWith(line);
    this.told(kept);
  }

  #automatic({ searched_automatically: automatic }) {
    if (automatic) this.#automaticMark.hidden = false;
  }

  /** A tool that the model has called: a line, and behind it what it gave; or its reasoning. */
  #lookUp({ tool, summary, said, text, failed }) {
    if (!tool && this.#thought) {
      this.#thought.querySelector("summary").textContent = summary;
      this.#thought = null;
      return;
    }
    this.#lookedUp.append(
      element(
        failed ? "li.failed" : "li",
        element(
          "details",
          element("summary", summary),
          said ? element("p", said) : null,
          element(tool ? "pre" : "pre.thought", { tabindex: 0 }, text),
        ),
      ),
    );
  }

  /** What the model says to itself, as it comes: folded, and as text. */
  #think(text) {
    if (!this.#thought) {
      this.#lookUp({ summary: "Reasoning…", text: "" });
      this.#thought = this.#lookedUp.lastChild;
      this.#does("Thinking");
    }
    this.#thought.querySelector("pre").append(text);
  }

  fail() {
    this.#past = "Failed";
    this.#stage?.classList.add("failed");
    this.#settle("alert");
  }

  stop() {
    this.#past = "Stopped";
    this.#stage?.classList.add("stopped");
    this.#settle("stop");
  }

  /** What was found so far, until the answer begins; clicks are the thread's to take. */
  #showHits(hits) {
    const rows = hits.slice(0, HITS_SHOWN).map((hit) => {
      const { path, start_line: start, end_line: end, name } = hit;
      return element(
        "li",
        element(
          "button",
          { "data-path": path, "data-start": start, "data-end": end },
          element("code", name || path),
          element("span.place", `${path}:${start}-${end}`),
        ),
      );
    });
    const title = this.#found.firstChild ? "Found" : "Found so far";
    const list = element("ol", { "aria-label": title }, ...rows);
    this.#found.replaceChildren(element("p", { "aria-hidden": "true" }, title), list);
  }

  /** A HyDE request has ended, well or not: the search goes on. */
  #drafted({ name, outcome, milliseconds }) {
    const well = outcome === "done";
    const made = MODEL_STAGES[name]?.[2] ?? "draft";
    if (outcome === "timed out") this.#past = `The ${made} took too long`;
    else if (!well) this.#past = `No ${made}`;
    if (!well) this.#stage?.classList.add("stopped");
    this.#settle(well ? "check" : "alert", milliseconds);
    this.#run("Searching the code", "Found nothing");
  }

  #run(words, past) {
    const time = element("span.time");
    this.#past = past;
    this.#stage = element("li", element("span.dot"), element("span.doing", words), time);
    this.#list.append(this.#stage);
    const began = performance.now();
    this.#clock = setInterval(() => {
      const passed = performance.now() - began;
      if (passed >= COUNT_SHOWN_FROM) time.textContent = `${Math.floor(passed / 1000)} s`;
    }, 500);
  }

  #settle(symbol, milliseconds) {
    const stage = this.#stage;
    clearInterval(this.#clock);
    this.#stage = null;
    if (!stage) return;
    stage.replaceChildren(icon(symbol), element("span", this.#past));
    const passed = milliseconds - this.#since;
    if (passed >= TIME_SHOWN_FROM) stage.append(element("span.time", duration(passed)));
  }

  #remove() {
    this.#stage?.remove();
    this.#settle();
  }
}
