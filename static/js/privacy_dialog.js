// The dialog that says what is stored of the user, where, and who receives it, and deletes this
// conversation, the profile, or everything.

import { query, request } from "./lib/api.js";
import { announce, byId, element, icon } from "./lib/dom.js";
import { byteSize, count, plural } from "./lib/format.js";
import { closesByClick, failureCard } from "./lib/widgets.js";

const COUNTED = [
  ["conversations", "conversation"],
  ["turns", "question with its answer", "questions with their answers"],
  ["thumbs", "rating"],
  ["vectors", "question for finding similar ones", "questions for finding similar ones"],
  ["facts", "fact about you", "facts about you"],
  ["cached", "cached value"],
];
const SCOPES = {
  conversation: {
    label: "This conversation",
    about: "Its questions, answers, versions, ratings and cached code are deleted.",
  },
  profile: {
    label: "What it knows about you",
    about: "Your name, wishes and all you told it about yourself are deleted. Conversations stay.",
  },
  everything: {
    label: "Everything",
    about:
      "All your conversations about all repositories are deleted, and what it knows about you. The index of the code stays.",
  },
};

/** `page` holds the parts of the conversation page, which this script is not bundled with. */
export function setUpPrivacyDialog(page) {
  const dialog = byId("privacy");
  const body = byId("privacy-body");

  async function show(result = []) {
    const shown = await request("/api/privacy").then(
      (stored) => [...accountOf(stored), deletions(stored)],
      (error) => [failureCard(error, ["Try again", () => show(result)])],
    );
    body.replaceChildren(...result, ...shown);
  }

  function deletions({ conversations, turns, profile }) {
    const current = page.view?.turns.length ? page.view : null;
    const facts = `${plural(Object.keys(profile).length, "fact")} about you`;
    const what = {
      conversation:
        current && `“${current.title}”, ${plural(current.turns.length, "question")} in view.`,
      profile: `${facts}.`,
      everything: `${plural(conversations, "conversation")} with ${plural(turns, "question")}, ${facts}.`,
    };
    const sure = element("div");
    const buttons = Object.keys(SCOPES)
      .filter((scope) => what[scope])
      .map((scope) => {
        const onclick = () => ask(scope, what[scope], sure, current);
        return element("button.button", { onclick }, icon("trash"), SCOPES[scope].label);
      });
    const title = element("h3", "Delete for good");
    return element("section", title, element("div.privacy-deletes", ...buttons), sure);
  }

  /** Says what would be deleted, and asks for confirmation. */
  function ask(scope, what, place, current) {
    const { label, about } = SCOPES[scope];
    const problem = element("div");
    const go = element("button.button.primary", { onclick: erase }, "Delete for good");
    const keep = element("button.button", { onclick: leave }, "Keep it");
    async function erase() {
      go.disabled = true;
      const named = scope === "conversation" ? query({ id: current.id, repo: page.repo }) : "";
      try {
        const erased = await request(`/api/privacy/${scope}${named}`, { method: "DELETE" });
        page.deleted(scope);
        await show([resultOf(erased)]);
        body.scrollTo(0, 0);
        body.focus();
        announce("Deleted");
      } catch (error) {
        go.disabled = false;
        problem.replaceChildren(failureCard(error));
      }
    }
    function leave() {
      place.replaceChildren();
      body.focus();
    }
    place.replaceChildren(
      element(
        "div.privacy-sure",
        { role: "group", "aria-label": `Delete: ${label}` },
        element("p", element("strong", `${label}: `), what),
        element("p", `${about} This cannot be undone.`),
        element("div.failure-actions", go, keep),
        problem,
      ),
    );
    go.focus();
    place.scrollIntoView({ block: "nearest" });
  }

  byId("show-privacy").addEventListener("click", () => {
    body.replaceChildren(element("p", "Looking…"));
    dialog.showModal();
    show();
  });
  closesByClick(dialog, byId("privacy-close"));
}

function accountOf(stored) {
  const { conversations, cached, profile, redis, receivers, keys_file: keys } = stored;
  const about = `about ${plural(stored.repositories, "repository", "repositories")}`;
  const known = Object.entries(profile);
  const inFolder = (path) => path.replace(`${stored.folder}/`, "");
  return [
    element("h3", "Stored about you on this server"),
    list([
      ["Conversations", conversations ? `${count(conversations)}, ${about}` : "none"],
      ["Questions with their answers", count(stored.turns)],
      ["Ratings of answers", count(stored.thumbs)],
      ["Questions for finding similar ones", count(stored.vectors)],
      ["Cached values", cached === null ? "unknown: the cache does not answer" : count(cached)],
    ]),
    element("h3", "What it knows about you"),
    known.length
      ? list(known)
      : element(
          "p",
          "Nothing. Write “My name is …” or “I prefer short answers” in a question, and it appears here.",
        ),
    element("h3", "Where"),
    list([
      ["Folder", stored.folder],
      ["Conversations of all users", `${inFolder(stored.state)}, ${byteSize(stored.state_bytes)}`],
      ...(redis ? [["Cache", redis]] : []),
      ...(keys ? [["Keys of models", `${inFolder(keys)}; they are not deleted here`]] : []),
    ]),
    element("h3", "Who receives it"),
    receivers.length
      ? list(receivers.map(receiverOf))
      : element("p", "Nobody: nothing leaves this machine."),
    stored.plugins ? element("p", "Plugins on this server see questions and answers.") : "",
  ];
}

function receiverOf({ part, name, host, local }) {
  const parts = { model: "Language model", embedding: "Embedding", reranker: "Reranker" };
  return [parts[part] ?? part, `${name}, ${local ? "on this machine" : host || "its provider"}`];
}

function resultOf({ counts, problems }) {
  const gone = COUNTED.filter(([name]) => counts[name]).map(([name, ...words]) =>
    plural(counts[name], ...words),
  );
  const said = gone.length ? `Deleted: ${gone.join(", ")}.` : "There was nothing to delete.";
  return element(
    "div.turn-notice.privacy-result.learnt",
    icon(problems.length ? "alert" : "check"),
    element("div", ...[said, ...problems].map((text) => element("p", text))),
  );
}

function list(rows) {
  return element(
    "dl",
    ...rows.map(([name, value]) => element("div", element("dt", name), " ", element("dd", value))),
  );
}
