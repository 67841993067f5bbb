// How the code for an answer was found: the stages of the search, HyDE's texts, every hit with its
// score and channels, and a legend of these.

import { element } from "../lib/dom.js";
import { duration, plural, withoutProvider } from "../lib/format.js";

const STAGES = {
  "hyde-1": "First draft",
  "hyde-2": "Second draft",
  search: "Search",
  rerank: "Rerank",
  order: "Order by the model",
};
const OUTCOMES = {
  empty: "nothing in it to search for",
  "timed out": "timed out: what had come by then was used",
};

const CHANNELS = {
  text: "words of the question in the code, in names and in comments",
  vector: "closeness in meaning, by CodeQA’s own embedding",
  vector_refined: "closeness in meaning, by the embedding that was chosen",
  symbol: "a definition that the question names",
  path: "a file or folder that the question names",
  mention: "mentioned in the question by @file, @folder or @symbol",
  overview: "the repository’s own account of itself",
  "hyde-1":
    "text or vector, for the model’s first draft of an answer: written from the question alone",
  "hyde-2": "the same for its second draft: written with the code that was found by then",
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

/** `score 1.73 · text #3 · vector #1`, each with its meaning at hand; null when nothing is known. */
export function placedBy({ score, channels = {} }, rank = 0) {
  const parts = [];
  if (rank)
    parts.push(
      element("span", { title: "Its place in the order of everything found" }, `hit ${rank}`),
    );
  if (Number.isFinite(score))
    parts.push(
      element(
        "span",
        { title: "What its signals add up to; only the order means something" },
        `score ${score.toFixed(2)}`,
      ),
    );
  for (const [name, place] of inOrder(channels)) {
    parts.push(
      element(
        "span.channel",
        { title: `Number ${place} by: ${meaningOf(name)}` },
        `${name} #${place}`,
      ),
    );
  }
  return parts.length
    ? element("span.placed", ...parts.flatMap((part, at) => (at ? [" · ", part] : [part])))
    : null;
}

/** What the names of the channels in `entries` mean, folded; null where there are none. */
export function legendOf(entries) {
  const names = new Set(
    entries.flatMap(({ channels = {} }) =>
      Object.keys(channels).map((name) => hydeStageIn(name) || name),
    ),
  );
  if (!names.size) return null;
  const order = Object.keys(CHANNELS);
  const placeOf = (name) => (name in CHANNELS ? order.indexOf(name) : order.length);
  const rows = [...names].sort((one, other) => placeOf(one) - placeOf(other));
  const list = element(
    "dl",
    ...rows.map((name) => element("div", element("dt", name), element("dd", meaningOf(name)))),
  );
  return element(
    "details.fold.legend",
    element("summary", "What these words mean"),
    element(
      "div.legend-body",
      element(
        "p",
        "Each way of searching makes a list of its own: “text #3” was third on the list by words. The score adds the lists up with further signals, which are given in words; only its order means something.",
      ),
      list,
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
      asked ? element("p", `Written by ${asked}, and searched for beside the question:`) : null,
      written,
    ),
  );
}

function hitsOf(hits, choice) {
  const list = element("ol.hits");
  hits.forEach((hit, index) => list.append(hitOf(hit, index + 1, choice)));
  const sent = hits.filter((hit) => hit.sent).length;
  return element(
    "details.fold.all-hits",
    element(
      "summary",
      "All hits, best first",
      element("span.size", `${plural(hits.length, "hit")}, ${sent} in the context`),
    ),
    list,
  );
}

function hitOf(hit, rank, choice) {
  const { path, start_line: start, end_line: end, name, kind, why, sent } = hit;
  return element(
    "li",
    element(
      "button.open",
      { "data-path": path, "data-start": start, "data-end": end },
      element("span.number", String(rank)),
      element("span.where", `${path}:${start}-${end}`),
      element("span.size", sent ? element("span.sent", "in the context") : null),
      name ? element("span.why", element("code", name), kind ? ` ${kind}` : "") : null,
      why?.length ? element("span.why", why.join("; ")) : null,
      placedBy(hit),
    ),
    sent ? null : choice.buttonsOf(hit, { sent: false }),
  );
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
