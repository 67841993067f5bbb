// The conversation page: joins the list, the conversation in view, composer, models and panel.

import { pushAddress, replaceAddress, shown } from "./address.js";
import { Composer } from "./composer.js";
import { Conversation, newId } from "./conversation.js";
import { Conversations } from "./conversations.js";
import { announce, byId } from "./dom.js";
import { showEstimate } from "./estimate.js";
import { showExamples } from "./examples.js";
import { failureCard } from "./foot.js";
import { Models } from "./models.js";
import { Panel } from "./panel.js";
import { Scroll } from "./scroll.js";
import { contextOfStep } from "./sheet.js";
import { closeSidebar, setUpSidebar } from "./sidebar.js";
import { Status } from "./status.js";
import { setUpTheme } from "./theme.js";

const { repo, name } = document.body.dataset;
const thread = byId("thread");
const writing = new Map(); // conversations that are being answered, by id
let view = null; // the conversation on the page
let editing = null; // the turn whose question is in the field
let wanted = 0; // counts openings: a slow one does not overtake a later one

const hooks = {
  changed: onChange,
  context: (turn, opener) => panel.openContext(turn, { opener }),
  edit: (turn) => {
    editing = turn;
    composer.fill(turn.asked, turn.last && !view.running);
    announce(composer.replacing ? "Edit the question; sending it replaces the answer" : "Edit the question");
  },
  model: () => models.name,
  hyde: () => composer.hyde,
  chooseModel: () => models.choose(),
};

const panel = new Panel(repo);
const scroll = new Scroll(byId("scroller"), thread, byId("jump"));
const list = new Conversations(repo, {
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
  show: (turn) => { closeSidebar(); scroll.show(turn.node); },
  failed: (error) => announce(`${error.message} ${error.hint ?? ""}`),
});
const composer = new Composer({
  ask: send,
  stop: () => view?.stop(),
  switched: onSwitch,
  changed: estimate,
  chooseModel: () => models.choose(),
});
const models = new Models(() => {
  composer.model = models.name;
  estimate();
});

function send(asked) {
  if (!view) return; // the conversation of the address is still being read
  const instead = composer.replacing && editing.last && view.turns.includes(editing) ? editing : null;
  composer.clear();
  if (shown("c") !== view.id) pushAddress({ c: view.id });
  view.ask(asked, instead);
}

/** A question was asked, or an answer has ended, here or in a conversation out of view. */
function onChange(conversation, { asked, answered }) {
  const { id, running } = conversation;
  if (running) writing.set(id, conversation);
  else writing.delete(id);
  list.setRunning(conversation);
  if (answered) list.refresh();
  if (conversation !== view) return;
  composer.busy = running;
  composer.follow(view);
  byId("welcome").hidden = true;
  list.show(view);
  showTitle();
  estimate();
  if (asked) scroll.show(asked.node);
  if (answered) scroll.rest();
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
  composer.busy = view.running;
  list.show(view);
  showTitle();
  estimate();
  const last = view.turns.at(-1);
  if (last) {
    scroll.show(last.node, "auto");
    announce(`Opened: ${view.title}`);
  }
  if (!view.running) scroll.rest();
}

/** Opens the conversation `id` from the list, the address or the browser's history. */
async function open(id, { push = true } = {}) {
  closeSidebar();
  if (push && shown("c") !== id) pushAddress({ c: id, file: "", lines: "" });
  if (push) panel.close();
  if (view?.id === id) return;
  if (writing.has(id)) {
    show(writing.get(id));
    return;
  }
  const opening = ++wanted;
  if (!view) byId("welcome").hidden = true;
  try {
    const conversation = await Conversation.open(repo, id, hooks);
    if (opening === wanted) show(conversation);
  } catch (error) {
    if (opening !== wanted) return;
    show(newConversation());
    replaceAddress({ c: "" });
    byId("welcome").hidden = true;
    view.node.append(failureCard(error, ["New conversation", startOver]));
  }
}

function startOver() {
  closeSidebar();
  if (shown("c")) pushAddress({ c: "", file: "", lines: "" });
  panel.close();
  show(newConversation());
  composer.clear();
  composer.focus();
}

function showTitle() {
  const title = view.turns.length ? list.titleOf(view.id) ?? view.title : "";
  document.title = [title, name, "CodeQA"].filter(Boolean).join(" · ");
  byId("topbar-title").textContent = title || name;
}

/** The user works the switches; those of an earlier question in the field are its own. */
function onSwitch() {
  if (view && !composer.editing) view.codebase = composer.codebase;
}

function estimate() {
  if (!view) return;
  showEstimate({ carries: view.turns.length ? view.carries : 0, typed: composer.text, codebase: composer.codebase, model: models.name });
}

function openFromAddress() {
  const id = shown("c");
  if (id) open(id, { push: false });
  else if (!view || view.turns.length) show(newConversation());
  const lines = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(shown("lines"));
  const first = Number(lines?.[1] ?? 0);
  if (shown("file")) panel.openFile(shown("file"), first, Number(lines?.[2] ?? first), { step: false });
  else if (contextOfStep()) panel.openContext(contextOfStep(), { step: false });
  else panel.close();
}

// Citations open the panel; with a modifier key a new tab as usual.
thread.addEventListener("click", (event) => {
  const link = event.target.closest("[data-path]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  panel.openFile(link.dataset.path, Number(link.dataset.start), Number(link.dataset.end), { opener: link });
});
byId("show-skipped").addEventListener("click", (event) => {
  closeSidebar();
  panel.openSkipped(event.currentTarget);
});
for (const id of ["new-conversation", "new-conversation-top"]) byId(id).addEventListener("click", startOver);

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || byId("models").open) return;
  const typing = event.target.closest?.("input, textarea");
  if (event.key === "Escape") {
    if (closeSidebar()) return;
    if (view?.running) view.stop();
    else panel.close();
  } else if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    byId("question").focus();
  }
});
addEventListener("popstate", openFromAddress);

setUpTheme();
setUpSidebar();
new Status(repo, ({ hyde }) => { composer.hydeSetting = hyde; });
showExamples(repo, (text) => send({ text, codebase: true, rerank: composer.rerank, hyde: composer.hyde }));
openFromAddress();
composer.focus();
