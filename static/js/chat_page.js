// The conversation page: joins the list, the conversation in view, composer, models and panel.

import { setUpPreview } from "./answer/preview.js";
import { Connection } from "./chat/connection.js";
import { Conversation } from "./chat/conversation.js";
import { Scroll } from "./chat/scroll.js";
import { setUpShortcuts } from "./chat/shortcuts.js";
import { Composer } from "./composer/composer.js";
import { setUpRevisionField } from "./composer/revision_field.js";
import { contextOfStep, inAddress, pushAddress, replaceAddress } from "./lib/address.js";
import { announce, byId, onPlainClick } from "./lib/dom.js";
import { leaveToInputMethod, takeFiles } from "./lib/fields.js";
import { page } from "./lib/page.js";
import {
  forgetQuestions,
  recallQuestion,
  rememberQuestion,
  setUpTheme,
} from "./lib/preferences.js";
import { failureCard, failureText, showMessage } from "./lib/widgets.js";
import { ModelChip } from "./models/model_chip.js";
import { GoToDialog } from "./panel/go_to.js";
import { Panel } from "./panel/panel.js";
import { ConversationList } from "./sidebar/conversation_list.js";
import { ConversationSearch } from "./sidebar/conversation_search.js";
import { setUpFileTree } from "./sidebar/file_tree.js";
import { IndexStatus } from "./sidebar/index_status.js";
import { setUpIssueDialog } from "./sidebar/issue_dialog.js";
import { setUpSettings } from "./sidebar/settings.js";
import { closeSidebar, setUpSidebar } from "./sidebar/sidebar.js";

const writing = new Map(); // conversations that are being answered, by id
let editing = null; // the turn whose question is in the field
let sent = null; // `{ text, conversation }` of the question of which nothing was heard yet
let wanted = 0; // counts openings: a slow one does not overtake a later one

/** Asks a question; with `keep` the text in the field stays. */
function send(asked, { keep = false } = {}) {
  if (!page.view || page.view.running) return; // or the conversation of the address is still being read
  const instead = page.composer.editing && page.view.turns.includes(editing) ? editing : null;
  if (!keep) {
    page.composer.clear();
    sent = { text: asked.text, conversation: page.view.turns.length ? page.view.id : "" };
    rememberQuestion(page.repo, sent.text, sent.conversation); // the server may be away
  }
  page.connection.settle();
  if (inAddress("c") !== page.view.id) pushAddress({ repo: page.repo, c: page.view.id });
  page.view.ask(asked, instead);
}

/** The server has the question: it need not be kept here. */
function accepted() {
  if (sent && recallQuestion(page.repo, sent.conversation) === sent.text)
    rememberQuestion(page.repo, "", sent.conversation);
  sent = null;
}

/** Asks a question that was offered; what is typed in the field stays. */
function ask(text) {
  send({ text, codebase: true, ...page.composer.answerOptions }, { keep: true });
}

/** The question cannot be asked now. */
function refused({ text }, error) {
  accepted();
  page.composer.putBack(text);
  failed(error);
}

function edit(turn) {
  editing = turn;
  page.composer.fill(turn.asked);
  announce("Edit the question. The old answer stays as another version");
}

function failed(error) {
  if (error.code === "away") page.connection.lost();
  else showMessage(failureText(error));
}

/** A question was asked, or an answer has ended, here or in a conversation out of view. */
function changed(conversation, { asked, answered, switched }) {
  const { id, running } = conversation;
  if (running) writing.set(id, conversation);
  else writing.delete(id);
  page.list.setRunning(conversation);
  if (answered) page.list.refresh();
  // A model may give a title behind the first answer.
  const titled = answered && conversation.turns.length === 1 ? [2_000, 9_000] : [];
  for (const wait of titled) setTimeout(() => page.list.refresh().then(showTitle), wait);
  if (answered?.outcome.failure?.code === "away") page.connection.lost();
  if (conversation !== page.view) return;
  page.composer.follow(page.view); // first: what the field keeps is another conversation's from here on
  page.composer.busy = running;
  byId("welcome").hidden = true;
  page.list.show(page.view);
  showTitle();
  if (asked) page.scroll.show(asked.node);
  if (answered || switched) page.scroll.rest();
}

/** Shows a new conversation. */
function showNew() {
  show(new Conversation());
}

/** The conversation in view was deleted. */
function leave(id) {
  writing.get(id)?.stop();
  showNew();
  pushAddress({ c: "", file: "", lines: "" });
}

function renamed(id, title) {
  if (writing.has(id)) writing.get(id).title = title;
  if (page.view.id === id) page.view.title = title;
  showTitle();
}

/** Shows a conversation that is at hand. */
function show(conversation) {
  wanted += 1;
  if (page.composer.editing) page.composer.clear();
  page.view = conversation;
  page.composer.follow(page.view);
  byId("thread").replaceChildren(page.view.node);
  byId("welcome").hidden = page.view.turns.length > 0;
  page.models.offer();
  page.composer.busy = page.view.running;
  page.list.show(page.view);
  showTitle();
  const last = page.view.turns.at(-1);
  if (last) {
    page.scroll.show(last.node, "auto");
    announce(`Opened: ${page.view.title}`);
  }
  if (!page.view.running) page.scroll.rest();
}

/** Opens the conversation `id` from the list, the address or the browser's history. */
async function open(id, { push = true, turn = "" } = {}) {
  closeSidebar();
  if (push && inAddress("c") !== id) pushAddress({ repo: page.repo, c: id, file: "", lines: "" });
  if (push) page.panel.close();
  if (page.view?.id === id || writing.has(id)) {
    if (page.view?.id !== id) show(writing.get(id));
    await reveal(turn);
    return;
  }
  const opening = ++wanted;
  if (!page.view) byId("welcome").hidden = true;
  try {
    const conversation = await Conversation.open(id);
    if (opening !== wanted) return;
    show(conversation);
    await reveal(turn);
  } catch (error) {
    if (opening !== wanted) return;
    showNew();
    replaceAddress({ c: "" });
    byId("welcome").hidden = true;
    page.view.node.append(failureCard(error, ["New conversation", startOver]));
  }
}

/** Scrolls to the turn `id`, on whichever branch it is. */
async function reveal(id) {
  const turn = id ? await page.view.reveal(id) : null;
  if (turn) page.scroll.show(turn.node);
}

function startOver() {
  closeSidebar();
  if (inAddress("c")) pushAddress({ c: "", file: "", lines: "" });
  page.panel.close();
  if (!page.view?.turns.length) page.composer.clear();
  showNew();
  page.composer.focus();
}

/** Something was deleted for good in the privacy dialog. */
function deleted(scope) {
  if (scope === "profile") return;
  if (scope === "everything") forgetQuestions();
  for (const conversation of writing.values()) conversation.stop();
  pushAddress({ c: "", file: "", lines: "" });
  page.panel.close();
  showNew();
  page.list.refresh();
}

function showTitle() {
  const title = page.view.turns.length ? (page.list.titleOf(page.view.id) ?? page.view.title) : "";
  document.title = [title, page.name, "CodeQA"].filter(Boolean).join(" · ");
  byId("topbar-title").textContent = title || page.name;
}

function openFromAddress() {
  const id = inAddress("c");
  if (id) open(id, { push: false });
  else if (!page.view || page.view.turns.length) showNew();
  const lines = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(inAddress("lines"));
  const first = Number(lines?.[1] ?? 0);
  if (inAddress("file"))
    page.panel.openFile(inAddress("file"), first, Number(lines?.[2] ?? first), { step: false });
  else if (contextOfStep()) page.panel.openContext(contextOfStep(), { step: false });
  else page.panel.close();
}

const openRepositories = onPlainClick(({ currentTarget: link }) => {
  link.removeEventListener("click", openRepositories);
  import(link.dataset.script).catch(() => location.assign(link.href));
});

async function openPrivacy({ currentTarget: button }) {
  const { setUpPrivacyDialog } = await import(button.dataset.script);
  button.removeEventListener("click", openPrivacy);
  setUpPrivacyDialog(page);
  button.click();
}

/** Escape closes what is open, or stops the answer in view. */
function escape(event) {
  if (
    event.defaultPrevented ||
    event.key !== "Escape" ||
    document.querySelector("dialog[open], [popover]:popover-open")
  )
    return;
  if (closeSidebar()) return;
  if (page.view?.running) page.view.stop();
  else page.panel.close();
}

Object.assign(page, {
  accepted,
  ask,
  changed,
  deleted,
  edit,
  failed,
  leave,
  open,
  refused,
  renamed,
  send,
  showNew,
  startOver,
});
addEventListener("keydown", leaveToInputMethod, true); // before others listen
page.panel = new Panel();
page.scroll = new Scroll();
page.list = new ConversationList();
page.connection = new Connection();
page.composer = new Composer();
page.models = new ModelChip();
page.goTo = new GoToDialog();
new ConversationSearch();
// What few open comes when it is opened; without it the link leads to a page of its own.
byId("choose-repository").addEventListener("click", openRepositories);
byId("show-privacy").addEventListener("click", openPrivacy);
for (const id of ["new-conversation", "new-conversation-top"])
  byId(id).addEventListener("click", startOver);
setUpSettings();
setUpShortcuts();
document.addEventListener("keydown", escape);
setUpPreview();
addEventListener("popstate", openFromAddress);
setUpTheme();
setUpSidebar();
setUpFileTree();
setUpRevisionField();
const takeIssue = setUpIssueDialog();
takeFiles((files) => {
  if (byId("issue").open) takeIssue(files[0]);
  else if (!document.querySelector("dialog[open]")) page.composer.attach(files);
});
page.index = new IndexStatus();
openFromAddress();
page.composer.focus();
