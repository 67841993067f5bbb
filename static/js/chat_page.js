// The conversation page: joins the list, the conversation in view, composer, models and panel.

import { Connection } from "./chat/connection.js";
import { setUpPreview } from "./answer/preview.js";
import { Conversation, newId } from "./chat/conversation.js";
import { Scroll } from "./chat/scroll.js";
import { clipboardActions, setUpShortcuts } from "./chat/shortcuts.js";
import { Composer } from "./composer/composer.js";
import { setUpRevisionField } from "./composer/revision_field.js";
import { contextOfStep, inAddress, pushAddress, replaceAddress } from "./lib/address.js";
import { query, request } from "./lib/api.js";
import { announce, byId, element, onPlainClick } from "./lib/dom.js";
import {
  forgetQuestions,
  recallQuestion,
  rememberQuestion,
  setUpTheme,
} from "./lib/preferences.js";
import { failureCard, failureText, questionButton, showMessage } from "./lib/widgets.js";
import { ModelChip } from "./models/model_chip.js";
import { GoToDialog } from "./panel/go_to.js";
import { Panel } from "./panel/panel.js";
import { ConversationList } from "./sidebar/conversation_list.js";
import { ConversationSearch } from "./sidebar/conversation_search.js";
import { setUpFileTree } from "./sidebar/file_tree.js";
import { IndexStatus } from "./sidebar/index_status.js";
import { setUpIssueDialog } from "./sidebar/issue_dialog.js";
import { setUpSettings } from "./sidebar/settings.js";
import { closeSidebar, setUpSidebar, showSidebar, toggleSidebar } from "./sidebar/sidebar.js";

const { repo, name } = document.body.dataset;
const thread = byId("thread");
const writing = new Map(); // conversations that are being answered, by id
let view = null; // the conversation on the page
let editing = null; // the turn whose question is in the field
let sent = null; // `{ text, conversation }` of the question of which nothing was heard yet
let status = {}; // of the index, as the server last told it
let wanted = 0; // counts openings: a slow one does not overtake a later one

const hooks = {
  changed: onChange,
  context: (turn, opener) => panel.openContext(turn, { opener }),
  edit,
  ask: askAnew,
  failed,
  accepted,
  refused: ({ text }, error) => {
    accepted();
    composer.putBack(text);
    failed(error);
  },
  model: () => models.name,
  models: () => models.known,
  answerOptions: () => composer.answerOptions,
  chosen: (id) => panel.takeChoice(id),
  choiceWaits: (id) => panel.choiceWaits(id),
  chooseModel: () => models.choose(),
};

const panel = new Panel(repo, {
  asked: (id) => view?.turnOf(id)?.asked ?? {},
  chose: (id) => view?.turnOf(id)?.showChoice(),
  again: (id) => {
    const turn = view?.turnOf(id);
    if (!turn || view.running) {
      showMessage("That answer is not in view any more, or another one is being written");
      return;
    }
    const choice = panel.takeChoice(id);
    panel.close();
    view.again(turn, choice);
  },
  mention: (place) => composer.mention(place),
});
const scroll = new Scroll(byId("scroller"), thread, byId("jump"));
const list = new ConversationList(repo, {
  open: (id) => open(id),
  deleted: (id) => {
    writing.get(id)?.stop();
    show(newConversation());
    pushAddress({ c: "", file: "", lines: "" });
  },
  renamed: (id, title) => {
    if (writing.has(id)) writing.get(id).title = title;
    if (view.id === id) view.title = title;
    showTitle();
  },
  show: (turn) => {
    closeSidebar();
    scroll.show(turn.node);
  },
  failed,
});
new ConversationSearch(repo, {
  open: (id, turn) => {
    open(id, { turn });
  },
  failed,
});
const connection = new Connection(() => {
  for (const part of [list, models, indexStatus]) part.refresh();
  if (view?.turns.at(-1)?.outcome.failure?.code === "away") view.refresh();
});
const composer = new Composer({
  ask: send,
  stop: () => view?.stop(),
  switched: onSwitch,
  chooseModel: () => models.choose(),
  open: (path, line, end, opener) => panel.openFile(path, line, end, { opener }),
});
const models = new ModelChip(() => {
  composer.model = models.name;
});

/** Asks a question; with `keep` the text in the field stays. */
function send(asked, { keep = false } = {}) {
  if (!view || view.running) return; // or the conversation of the address is still being read
  const instead = composer.editing && view.turns.includes(editing) ? editing : null;
  if (!keep) {
    composer.clear();
    sent = { text: asked.text, conversation: view.turns.length ? view.id : "" };
    rememberQuestion(repo, sent.text, sent.conversation); // the server may be away
  }
  connection.settle();
  if (inAddress("c") !== view.id) pushAddress({ c: view.id });
  view.ask(asked, instead);
}

/** The server has the question: it need not be kept here. */
function accepted() {
  if (sent && recallQuestion(repo, sent.conversation) === sent.text)
    rememberQuestion(repo, "", sent.conversation);
  sent = null;
}

/** Asks a question that was offered; what is typed in the field stays. */
function askAnew(text) {
  send({ text, codebase: true, ...composer.answerOptions }, { keep: true });
}

/** Has an issue reviewed, in a conversation of its own. */
function review(text) {
  closeSidebar();
  panel.close();
  if (!view || view.running || view.turns.length) show(newConversation());
  askAnew(text);
}

function edit(turn) {
  editing = turn;
  composer.fill(turn.asked);
  announce("Edit the question; the new answer will stand beside the one there is");
}

function failed(error) {
  if (error.code === "away") connection.lost();
  else showMessage(failureText(error));
}

/** A question was asked, or an answer has ended, here or in a conversation out of view. */
function onChange(conversation, { asked, answered, switched }) {
  const { id, running } = conversation;
  if (running) writing.set(id, conversation);
  else writing.delete(id);
  list.setRunning(conversation);
  if (answered) list.refresh();
  // A model may give a title behind the first answer.
  const titled = answered && conversation.turns.length === 1 ? [2_000, 9_000] : [];
  for (const wait of titled) setTimeout(() => list.refresh().then(showTitle), wait);
  if (answered?.outcome.failure?.code === "away") connection.lost();
  if (conversation !== view) return;
  composer.follow(view); // first: what the field keeps is another conversation's from here on
  composer.busy = running;
  byId("welcome").hidden = true;
  list.show(view);
  showTitle();
  if (asked) scroll.show(asked.node);
  if (answered || switched) scroll.rest();
}

function newConversation() {
  return new Conversation(repo, newId(), hooks);
}

/** Shows a conversation that is at hand. */
function show(conversation) {
  wanted += 1;
  if (composer.editing) composer.clear();
  view = conversation;
  composer.follow(view);
  thread.replaceChildren(view.node);
  byId("welcome").hidden = view.turns.length > 0;
  models.offer();
  composer.busy = view.running;
  list.show(view);
  showTitle();
  const last = view.turns.at(-1);
  if (last) {
    scroll.show(last.node, "auto");
    announce(`Opened: ${view.title}`);
  }
  if (!view.running) scroll.rest();
}

/** Opens the conversation `id` from the list, the address or the browser's history. */
async function open(id, { push = true, turn = "" } = {}) {
  closeSidebar();
  if (push && inAddress("c") !== id) pushAddress({ c: id, file: "", lines: "" });
  if (push) panel.close();
  if (view?.id === id || writing.has(id)) {
    if (view?.id !== id) show(writing.get(id));
    await reveal(turn);
    return;
  }
  const opening = ++wanted;
  if (!view) byId("welcome").hidden = true;
  try {
    const conversation = await Conversation.open(repo, id, hooks);
    if (opening !== wanted) return;
    show(conversation);
    await reveal(turn);
  } catch (error) {
    if (opening !== wanted) return;
    show(newConversation());
    replaceAddress({ c: "" });
    byId("welcome").hidden = true;
    view.node.append(failureCard(error, ["New conversation", startOver]));
  }
}

/** Scrolls to the turn `id`, on whichever branch it is. */
async function reveal(id) {
  const turn = id ? await view.reveal(id) : null;
  if (turn) scroll.show(turn.node);
}

function startOver() {
  closeSidebar();
  if (inAddress("c")) pushAddress({ c: "", file: "", lines: "" });
  panel.close();
  if (!view?.turns.length) composer.clear();
  show(newConversation());
  composer.focus();
}

/** Something was deleted for good in the privacy dialog. */
function deleted(scope) {
  if (scope === "profile") return;
  if (scope === "everything") forgetQuestions();
  for (const conversation of writing.values()) conversation.stop();
  pushAddress({ c: "", file: "", lines: "" });
  panel.close();
  show(newConversation());
  list.refresh();
}

function showTitle() {
  const title = view.turns.length ? (list.titleOf(view.id) ?? view.title) : "";
  document.title = [title, name, "CodeQA"].filter(Boolean).join(" · ");
  byId("topbar-title").textContent = title || name;
}

/** The user switched @codebase; while a question is edited that holds for this question alone. */
function onSwitch() {
  if (view && !composer.editing) view.codebase = composer.codebase;
}

function openFromAddress() {
  const id = inAddress("c");
  if (id) open(id, { push: false });
  else if (!view || view.turns.length) show(newConversation());
  const lines = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(inAddress("lines"));
  const first = Number(lines?.[1] ?? 0);
  if (inAddress("file"))
    panel.openFile(inAddress("file"), first, Number(lines?.[2] ?? first), { step: false });
  else if (contextOfStep()) panel.openContext(contextOfStep(), { step: false });
  else panel.close();
}

/** Shows a file that was chosen by its name; line 0 is the file as a whole. */
function openPlace(path, line, end, opener = null) {
  closeSidebar();
  panel.openFile(path, line, end, { opener });
}

/** Questions to begin with, on the empty page. */
async function showExamples() {
  const { questions } = await request(`/api/first-questions${query({ repo })}`);
  byId("examples").replaceChildren(
    ...questions.map((question) =>
      element(
        "li",
        questionButton(question, () => askAnew(question)),
      ),
    ),
  );
}

const openRepositories = onPlainClick(({ currentTarget: link }) => {
  link.removeEventListener("click", openRepositories);
  import(link.dataset.script).catch(() => location.assign(link.href));
});

async function openPrivacy({ currentTarget: button }) {
  const { setUpPrivacyDialog } = await import(button.dataset.script);
  button.removeEventListener("click", openPrivacy);
  setUpPrivacyDialog(repo, { conversation: () => (view?.turns.length ? view : null), deleted });
  button.click();
}

/** What clicks and keys do, wherever on the page they happen. */
function setUpClicksAndKeys() {
  // Citations open the panel; with a modifier key a new tab as usual.
  thread.addEventListener("click", (event) => {
    const link = event.target.closest("[data-path]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    panel.openFile(link.dataset.path, Number(link.dataset.start), Number(link.dataset.end), {
      opener: link,
    });
  });
  byId("show-skipped").addEventListener("click", () => {
    closeSidebar();
    byId("index").hidePopover();
    panel.openSkipped(byId("index-state"));
  });
  // What few open comes when it is opened; without it the link leads to a page of its own.
  byId("choose-repository").addEventListener("click", openRepositories);
  for (const id of ["new-conversation", "new-conversation-top"])
    byId(id).addEventListener("click", startOver);
  setUpShortcuts({
    search: () => showSidebar(byId("conversation-search")),
    fresh: startOver,
    sidebar: toggleSidebar,
    field: () => byId("question").focus(),
    ...clipboardActions(thread, () => view),
    editLast: () => (view?.turns.length ? edit(view.turns.at(-1)) : false),
    goTo: () => goTo.show(),
    help: setUpSettings(() => [
      ["Language model", models.described],
      ["Reranker", status.reranker],
      ["Embedding", status.embedding || "none"],
      ...(status.hyde
        ? [["Draft code first", { off: "never", one: "once", two: "twice" }[status.hyde]]]
        : []),
    ]),
  });
  document.addEventListener("keydown", (event) => {
    if (
      event.defaultPrevented ||
      event.key !== "Escape" ||
      document.querySelector("dialog[open], [popover]:popover-open")
    )
      return;
    if (closeSidebar()) return;
    if (view?.running) view.stop();
    else panel.close();
  });
}

const goTo = new GoToDialog(repo, openPlace);
setUpClicksAndKeys();
setUpPreview(thread);
addEventListener("popstate", openFromAddress);

setUpTheme();
setUpSidebar();
setUpFileTree(repo, (path, opener) => openPlace(path, 0, 0, opener));
byId("show-privacy").addEventListener("click", openPrivacy);
setUpRevisionField(repo, () => composer.text);
setUpIssueDialog({ review, model: () => models.name });
const indexStatus = new IndexStatus(repo, {
  status: (values) => {
    status = values;
    composer.settings = values;
    const known = values.files && values.state !== "indexing";
    if (known && !byId("examples").children.length) showExamples().catch(() => {}); // next time
  },
  lost: () => connection.lost(),
});
openFromAddress();
composer.focus();
