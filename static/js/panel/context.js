// What an answer was made from: its chunks, how they were found, and the messages exactly as
// they were sent.

import { element } from "../lib/dom.js";
import { plural, tokensIn, withoutProvider } from "../lib/format.js";
import { copyButton } from "../lib/widgets.js";
import { legendOf, placedBy, searchTraceOf } from "./search_trace.js";

const EARLIER = { user: "Earlier question", assistant: "Earlier answer" };

/**
 * Contents of the panel; buttons that open a file carry `data-path`, `data-start` and `data-end`,
 * `choice` holds the buttons of each piece.
 */
export function contextOf(sent, choice) {
  const node = element("div.context");
  node.append(
    ...[
      chunksOf(sent, choice),
      searchTraceOf(sent, choice),
      legendOf([...sent.chunks, ...sent.dropped, ...(sent.hits ?? [])]),
    ].filter(Boolean),
  );
  if (sent.messages?.length) node.append(messagesOf(sent));
  else node.append(...packedOf(sent));
  node.append(choice.node);
  return node;
}

/** A line for the head of the panel. */
export function summaryOf({ model, host, tokens }) {
  if (!model) return "Nothing was sent to a model";
  const about = tokens?.estimated ? "≈ " : "";
  return `Sent to ${withoutProvider(model)} at ${host}${tokens?.prompt ? ` · ${about}${plural(tokens.prompt, "token")}` : ""}`;
}

function chunksOf({ text, chunks, dropped, hits = [] }, choice) {
  const list = element("ol.chunks");
  const rankOf = ({ path, start_line: start }) =>
    hits.findIndex((hit) => hit.path === path && hit.start_line === start) + 1;
  chunks.forEach((chunk, index) =>
    list.append(chunkOf(chunk, String(index + 1), "", rankOf(chunk), choice)),
  );
  dropped.forEach((chunk) =>
    list.append(chunkOf(chunk, "–", "left out: over the budget", rankOf(chunk), choice)),
  );
  const summary = chunks.length
    ? `${plural(chunks.length, "chunk")}, ${sizeOf(text.length)}`
    : "Nothing was packed for this answer.";
  return element("section", { "aria-label": "Chunks" }, head("Code", summary), list);
}

function chunkOf(chunk, number, left, rank, choice) {
  const { path, start_line: start, end_line: end, characters, why } = chunk;
  const reason = [left, why].filter(Boolean).join("; ");
  return element(
    "li",
    element(
      "button",
      {
        class: left ? "open dropped" : "open",
        "data-path": path,
        "data-start": start,
        "data-end": end,
      },
      element("span.number", number),
      element("span.where", `${path}:${start}-${end}`),
      element("span.size", { title: plural(characters, "character") }, sizeOf(characters)),
      reason ? element("span.why", reason) : null,
      placedBy(chunk, rank),
    ),
    choice.buttonsOf(chunk, { sent: !left }),
  );
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
  messages.forEach(({ role, parts }, index) => {
    const last = index === messages.length - 1;
    parts.forEach((text, part) => {
      section.append(messageOf(nameOf(role, last, part), role, text, last));
    });
  });
  return section;
}

function nameOf(role, last, part) {
  if (role === "system") return "System prompt";
  if (!last) return EARLIER[role] ?? role;
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
  if (!text) return [];
  return [
    element(
      "section",
      { "aria-label": "Context block" },
      head(
        "The context block, exactly as packed",
        "",
        copyButton("copy", "Copy", () => text),
      ),
      exact("The context block", text),
    ),
  ];
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
