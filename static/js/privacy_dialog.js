// The dialog that says what is stored of the user, where, and who receives it, and deletes this
// conversation, the profile, or everything.

import { query, request } from "./lib/api.js";
import { announce, byId, element, icon } from "./lib/dom.js";
import { byteSize, count, plural } from "./lib/format.js";
import { closesByClick, failureCard } from "./lib/widgets.js";

const COUNTED = [
  ["conversations", "conversation"],
  ["turns", "question with its answer", "questions with their answers"],
  ["thumbs", "thumb"],
  ["vectors", "question vector"],
  ["facts", "thing known of you", "things known of you"],
  ["cached", "cached value"],
];
const SCOPES = {
  conversation: {
    label: "This conversation",
    about: "Its questions, answers, versions and thumbs go, and the code that was cached for it.",
  },
  profile: {
    label: "What it knows of you",
    about: "Name, wishes and whatever else you told it about yourself go. Conversations stay.",
  },
  everything: {
    label: "Everything",
    about:
      "All your conversations about all repositories go, and what it knows of you. The index of the code stays.",
  },
};

/** `conversation()` gives the one in view or null; `deleted(scope)` is called when something is gone. */
export function setUpPrivacyDialog(repo, hooks) {
  const dialog = byId("privacy");
  const body = byId("privacy-body");

  async function show(result = null) {
    try {
      const stored = await request("/api/privacy");
      body.replaceChildren(...[result, ...accountOf(stored), deletions(stored)].filter(Boolean));
    } catch (error) {
      body.replaceChildren(
        ...[result, failureCard(error, ["Try again", () => show(result)])].filter(Boolean),
      );
    }
  }

  function deletions({ conversations, turns, profile }) {
    const current = hooks.conversation();
    const offered = Object.keys(SCOPES).filter((scope) => scope !== "conversation" || current);
    const sure = element("div");
    const buttons = offered.map((scope) =>
      element(
        "button.button",
        { onclick: () => ask(scope, sure, { current, conversations, turns, profile }) },
        icon("trash"),
        SCOPES[scope].label,
      ),
    );
    return element(
      "section",
      element("h3", "Delete for good"),
      element("div.privacy-deletes", ...buttons),
      sure,
    );
  }

  /** Says what would be deleted, and asks for confirmation. */
  function ask(scope, place, { current, conversations, turns, profile }) {
    const what = {
      conversation: `“${current?.title ?? ""}”, ${plural(current?.turns.length ?? 0, "question")} in view.`,
      profile: `${plural(Object.keys(profile).length, "thing")} known of you.`,
      everything: `${plural(conversations, "conversation")} with ${plural(turns, "question")}, ${plural(Object.keys(profile).length, "thing")} known of you.`,
    }[scope];
    const problem = element("div");
    const go = element("button.button.primary", "Delete for good");
    go.addEventListener("click", async () => {
      go.disabled = true;
      try {
        const erased = await request(
          `/api/privacy/${scope}${scope === "conversation" ? query({ id: current.id, repo }) : ""}`,
          { method: "DELETE" },
        );
        hooks.deleted(scope);
        await show(resultOf(erased));
        body.scrollTo(0, 0);
        body.focus();
        announce("Deleted");
      } catch (error) {
        go.disabled = false;
        problem.replaceChildren(failureCard(error));
      }
    });
    place.replaceChildren(
      element(
        "div.privacy-sure",
        { role: "group", "aria-label": `Delete: ${SCOPES[scope].label}` },
        element("p", element("strong", `${SCOPES[scope].label}: `), what),
        element("p", `${SCOPES[scope].about} There is no way back.`),
        element(
          "div.failure-actions",
          go,
          element(
            "button.button",
            {
              onclick: () => {
                place.replaceChildren();
                body.focus();
              },
            },
            "Keep it",
          ),
        ),
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
  const {
    conversations,
    repositories,
    turns,
    thumbs,
    vectors,
    cached,
    profile,
    folder,
    state,
    state_bytes: bytes,
    redis,
    receivers,
    plugins,
    keys_file: keys,
  } = stored;
  const known = Object.entries(profile);
  return [
    element("h3", "Of you, on this server"),
    list([
      [
        "Conversations",
        conversations
          ? `${count(conversations)}, about ${plural(repositories, "repository", "repositories")}`
          : "none",
      ],
      ["Questions with their answers", count(turns)],
      ["Thumbs", count(thumbs)],
      ["Questions as vectors", count(vectors)],
      ["Cached values", cached === null ? "the cache does not answer" : count(cached)],
    ]),
    element("h3", "What it knows of you"),
    known.length
      ? list(known)
      : element(
          "p",
          "Nothing. Tell it “My name is …” or “I prefer short answers”, and it stands here.",
        ),
    element("h3", "Where"),
    list(
      [
        ["Folder", folder],
        ["Conversations of all users", `${state}, ${byteSize(bytes)}`],
        redis ? ["Cache", redis] : null,
        keys ? ["Keys of models", `${keys}; nothing here deletes them`] : null,
      ].filter(Boolean),
    ),
    element("h3", "Who receives it"),
    receivers.length
      ? list(receivers.map(receiverOf))
      : element("p", "Nobody: nothing leaves this machine."),
    plugins ? element("p", "Plugins of this server see questions and answers.") : null,
  ].filter(Boolean);
}

function receiverOf({ part, name, host, local }) {
  const where = local ? "on this machine" : host || "its provider";
  return [
    { model: "Language model", embedding: "Embedding", reranker: "Reranker" }[part] ?? part,
    `${name}, ${where}`,
  ];
}

function resultOf({ counts, problems }) {
  const gone = COUNTED.filter(([name]) => counts[name]).map(([name, one, many]) =>
    plural(counts[name], one, many),
  );
  return element(
    "div.turn-notice.privacy-result.learnt",
    icon(problems.length ? "alert" : "check"),
    element(
      "div",
      element("p", gone.length ? `Deleted: ${gone.join(", ")}.` : "There was nothing to delete."),
      ...problems.map((text) => element("p", text)),
    ),
  );
}

function list(rows) {
  return element(
    "dl",
    ...rows.map(([name, value]) => element("div", element("dt", name), " ", element("dd", value))),
  );
}
