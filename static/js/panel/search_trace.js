// How the code for an answer was found: the stages of the search, HyDE's texts, and, folded, every
// hit with its score and channels and what these mean.

import { element } from "../lib/dom.js";
import { duration, plural, splitPath, withoutProvider } from "../lib/format.js";

const STAGES = {
  "hyde-1": "First draft",
  "hyde-2": "Second draft",
  search: "Search",
  rerank: "Rerank",
  order: "Sorted by the model",
};
const OUTCOMES = {
  empty: "it had nothing to search for",
  "timed out": "timed out: the text so far was used",
};

const CHANNELS = {
  text: "words of the question in code, names and comments",
  vector: "similar meaning, by CodeQA’s own model",
  vector_refined: "similar meaning, by the embedding model in the settings",
  symbol: "a definition that the question names",
  path: "a file or folder that the question names",
  mention: "mentioned in the question by @file, @folder or @symbol",
  overview: "the repository’s description of itself",
  "hyde-1": "similar to the model’s first draft, written from the question alone",
  "hyde-2": "similar to its second draft, written with the code found so far",
};

/** The section of the panel; null for an answer that nothing was searched for. */
export function searchTraceOf({ stages = [], hits = [] }, choice) {
  if (!stages.length && !hits.length) return null;
  const section = element(
    "section.search-trace",
    { "aria-label": "How it was found" },
    element(
      "header.context-head",
      element("h3", "How it was found"),
      stages.length ? element("p", timeOf(stages)) : null,
    ),
  );
  if (stages.length) section.append(element("ol.search-stages", ...stages.map(stageOf)));
  if (hits.length) section.append(hitsOf(hits, choice));
  return section;
}

/** The button that opens a piece of code: what it is called, then where it is and `why` it is there. */
export function pieceButton(piece, number, size, why) {
  const { path, start_line: start, end_line: end, name } = piece;
  const [folder, file] = splitPath(path);
  const place = `${file}:${start}-${end}`;
  const reasons = why.filter(Boolean).join("; ");
  return element(
    "button.open",
    { "data-path": path, "data-start": start, "data-end": end, title: path },
    element("span.number", number),
    element("code.name", name || place),
    size,
    element(
      "span.where",
      name ? element("code", `${place} `) : null,
      folder,
      reasons ? element("span.why", reasons) : null,
    ),
  );
}

/** What the names of the channels of `hits` mean, folded; null where there are none. */
function legendOf(hits) {
  const names = new Set(
    hits.flatMap(({ channels = {} }) =>
      Object.keys(channels).map((name) => hydeStageIn(name) || name),
    ),
  );
  if (!names.size) return null;
  const order = Object.keys(CHANNELS);
  const placeOf = (name) => (name in CHANNELS ? order.indexOf(name) : order.length);
  const rows = [...names]
    .sort((one, other) => placeOf(one) - placeOf(other))
    .map((name) => element("div", element("dt", name), element("dd", meaningOf(name))));
  return element(
    "details.fold.legend",
    element("summary", "What these words mean"),
    element(
      "div.legend-body",
      "Each way of searching makes its own list: “text #3” was third in the list by words. The score combines the lists with the further signals named here; only the order it gives matters.",
      element("dl", ...rows),
    ),
  );
}

function stageOf({ name, milliseconds, outcome = "", text = "", model = "", host = "" }) {
  const asked = model ? `${withoutProvider(model)} at ${host}` : "";
  const well = outcome === "done";
  const told = [well ? "" : (OUTCOMES[outcome] ?? outcome), text ? "" : asked]
    .filter(Boolean)
    .join(" · ");
  const line = [
    element(
      "span.stage-name",
      STAGES[name] ?? name,
      isHydeStage(name) ? element("code", name) : null,
    ),
    element("span", { class: well ? "outcome" : "outcome less" }, told),
    element("span.size", outcome.startsWith("skipped") ? "" : duration(milliseconds)),
  ];
  if (!text) return element("li", element("div.stage-line", ...line));
  const written = element("pre", { tabindex: "0", "aria-label": STAGES[name] ?? name });
  written.textContent = text; // of a model: never markup
  return element(
    "li",
    element(
      "details.hyde-text",
      element("summary.stage-line", ...line),
      asked
        ? element("p", `Written by ${asked}, and searched for together with the question:`)
        : null,
      written,
    ),
  );
}

function hitsOf(hits, choice) {
  const sent = hits.filter((hit) => hit.sent).length;
  return element(
    "details.fold.all-hits",
    element(
      "summary",
      "Everything found, best first",
      element("span.size", `${plural(hits.length, "place")}, ${sent} of them used`),
    ),
    element("ol.hits", ...hits.map((hit, index) => hitOf(hit, index + 1, choice))),
    legendOf(hits),
  );
}

function hitOf(hit, rank, choice) {
  const { kind, why = [], sent, score, channels = {} } = hit;
  const size = sent ? element("span.size.sent", "used") : "";
  const button = pieceButton(hit, String(rank), size, [kind, ...why]);
  const placed = inOrder(channels).map(([name, place]) => `${name} #${place}`);
  if (Number.isFinite(score)) placed.unshift(`score ${score.toFixed(2)}`);
  button.append(element("span.placed", placed.join(" · ")));
  return element("li", button, sent ? null : choice.buttonsOf(hit, { sent: false }));
}

/** Best ranks first; HyDE's channels after the question's own. */
function inOrder(channels) {
  return Object.entries(channels).sort(
    ([one, at], [other, where]) =>
      Boolean(hydeStageIn(one)) - Boolean(hydeStageIn(other)) ||
      at - where ||
      one.localeCompare(other),
  );
}

const isHydeStage = (name) => name.startsWith("hyde-");
const hydeStageIn = (name) => /^hyde-\d+(?= )/.exec(name)?.[0] ?? "";

function meaningOf(name) {
  const stage = hydeStageIn(name);
  if (stage) return `${CHANNELS[stage] ?? "found by a draft"} (${name.slice(stage.length + 1)})`;
  return CHANNELS[name] ?? "another kind of search";
}

function timeOf(stages) {
  return duration(stages.reduce((sum, { milliseconds }) => sum + milliseconds, 0));
}
