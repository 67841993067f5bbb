// What an answer was made from: its chunks, how they were found, and the messages exactly as
// they were sent.

import { element } from "../lib/dom.js";
import { count, plural, tokensIn, withoutProvider } from "../lib/format.js";
import { copyButton } from "../lib/widgets.js";
import { pieceButton, searchTraceOf } from "./search_trace.js";

const IN_VIEW = 8; // chunks before the fold: what stands last was found last
const EARLIER = { user: "Earlier question", assistant: "Earlier answer" };

/**
 * Contents of the panel; buttons that open a file carry `data-path`, `data-start` and `data-end`,
 * `choice` holds the buttons of each piece.
 */
export function contextOf(sent, choice) {
  const parts = [
    chunksOf(sent, choice),
    searchTraceOf(sent, choice),
    sent.messages?.length ? messagesOf(sent) : packedOf(sent),
    choice.node,
  ];
  return element("div.context", ...parts);
}

/** A line for the head of the panel. */
export function summaryOf({ model, host, tokens }) {
  if (!model) return "Nothing was sent to a model";
  const about = tokens?.estimated ? "≈ " : "";
  return `Sent to ${withoutProvider(model)} at ${host}${tokens?.prompt ? ` · ${about}${plural(tokens.prompt, "token")}` : ""}`;
}

function chunksOf({ text, chunks, dropped }, choice) {
  const rows = [
    ...chunks.map((chunk, index) => chunkOf(chunk, String(index + 1), "", choice)),
    ...dropped.map((chunk) => chunkOf(chunk, "–", "did not fit", choice)),
    ...choice.leftOut.map((place) => leftOut(place, choice)),
  ];
  // A fold for two or three would only be one more thing to press.
  const folds = rows.length > IN_VIEW + 3;
  const first = folds ? Math.min(IN_VIEW, chunks.length) : rows.length;
  const out = choice.leftOut.length ? `${count(choice.leftOut.length)} left out` : "";
  const more = [
    chunks.length > first ? `${count(chunks.length - first)} more` : "",
    dropped.length ? `${count(dropped.length)} did not fit` : "",
    out,
  ];
  const summary = chunks.length
    ? `${plural(chunks.length, "piece")}, ${sizeOf(text.length)}${out && `, ${out}`}`
    : "No code was used for this answer.";
  return element(
    "section",
    { "aria-label": "Pieces of code" },
    head("Code", summary),
    element("ol.chunks", ...rows.slice(0, first)),
    folds
      ? element(
          "details.fold",
          element("summary", more.filter(Boolean).join(", ")),
          element("ol.chunks", ...rows.slice(first)),
        )
      : null,
  );
}

function chunkOf(chunk, number, left, choice) {
  const size = element(
    "span.size",
    { title: plural(chunk.characters, "character") },
    sizeOf(chunk.characters),
  );
  const button = pieceButton(chunk, number, size, [left, chunk.why]);
  button.classList.toggle("dropped", Boolean(left));
  return element("li", button, choice.buttonsOf(chunk, { sent: !left }));
}

/** A piece that the answer was asked without, to be taken back in. */
function leftOut(place, choice) {
  const [, path, start, end] = /^(.*):(\d+)-(\d+)$/.exec(place);
  const piece = { path, start_line: Number(start), end_line: Number(end) };
  const button = pieceButton(piece, "–", null, ["left out"]);
  return element("li", button, choice.buttonsOf(piece, { sent: true }));
}

/** `≈ 310 tokens`: what the server counts on is an estimate for every model, too. */
function sizeOf(characters) {
  return `≈ ${plural(tokensIn(characters), "token")}`;
}

function messagesOf({ messages }) {
  const whole = JSON.stringify(
    messages.map(({ role, parts }) => ({
      role,
      content: parts.map((text) => ({ type: "text", text })),
    })),
    null,
    2,
  );
  const section = element(
    "section",
    { "aria-label": "Messages as sent" },
    head(
      "Messages, exactly as sent",
      "",
      copyButton("copy", "Copy as JSON", () => whole),
    ),
  );
  const last = messages.length - 1;
  const withContext = messages.findLastIndex(({ parts }) => parts.length > 1); // with the context
  const question = withContext < 0 ? last : withContext;
  messages.forEach(({ role, parts }, index) => {
    parts.forEach((text, part) => {
      const name = nameOf(role, index - question, part);
      section.append(messageOf(name, role, text, index === question));
    });
  });
  return section;
}

/** `distance` is that from the question: looks into the code come after it. */
function nameOf(role, distance, part) {
  if (role === "system") return "System prompt";
  if (distance < 0) return EARLIER[role] ?? role;
  if (distance > 0) return role === "assistant" ? "A look into the code" : "What it showed";
  return part === 0 ? "Question and instruction" : "The context block";
}

function messageOf(name, role, text, open) {
  const summary = element(
    "summary",
    name,
    element("span.role", role),
    element("span.size", plural(text.length, "character")),
  );
  return element("details.message", { open }, summary, exact(name, text));
}

function packedOf({ text }) {
  if (!text) return null;
  const copy = copyButton("copy", "Copy", () => text);
  return element(
    "section",
    { "aria-label": "Context block" },
    head("The code, exactly as it would be sent", "", copy),
    exact("The context block", text),
  );
}

function head(title, detail, button = null) {
  return element(
    "header.context-head",
    element("h3", title),
    detail ? element("p", detail) : null,
    button,
  );
}

function exact(name, text) {
  const pre = element("pre", { tabindex: "0", "aria-label": name });
  pre.textContent = text;
  return pre;
}
