// The conversation page: joins the list, the conversation in view, composer, models and panel.

import { pushAddress, replaceAddress, shown } from "./address.js";
import { Composer } from "./composer.js";
import { Connection } from "./connection.js";
import { setUpControls } from "./controls.js";
import { Conversation, newId } from "./conversation.js";
import { Conversations } from "./conversations.js";
import { announce, byId } from "./dom.js";
import { showEstimate } from "./estimate.js";
import { showExamples } from "./examples.js";
import { Find } from "./find.js";
import { failureCard } from "./foot.js";
import { Models } from "./models.js";
import { Panel } from "./panel.js";
import { Scroll } from "./scroll.js";
import { contextOfStep } from "./sheet.js";
import { closeSidebar, setUpSidebar } from "./sidebar.js";
import { Status } from "./status.js";
import { setUpStored } from "./stored.js";
import { setUpSymbols } from "./symbols.js";
import { setUpTheme } from "./theme.js";
import { tell } from "./toast.js";
import { Tree } from "./tree.js";

const { repo, name } = document.body.dataset;
const thread = byId("thread");
const writing = new Map(); // conversations that are being answered, by id
let view = null; // the conversation on the page
let editing = null; // the turn whose question is in the field
let wanted = 0; // counts openings: a slow one does not overtake a later one

const hooks = {
  changed: onChange,
  context: (turn, opener) => panel.openContext(turn, { opener }),
  edit,
  ask: (text) => send({ text, codebase: true, ...composer.manner }, { keep: true }),
  failed,
  model: () => models.name,
  manner: () => ({ ...composer.manner, automatic: composer.automatic }),
  chooseModel: () => models.choose(),
};

const panel = new Panel(repo, (id, places) => {
  const turn = view?.turnOf(id);
  if (turn && !view.running) view.askWith(turn, places);
  else announce("That answer is not in view any more, or another one is being written");
});
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
  failed,
});
new Find(repo, {
  open: (id, turn) => { open(id, { turn }); },
  failed,
});
const connection = new Connection({
  back: () => { for (const part of [list, models, status]) part.refresh(); },
  broken: () => {
    const last = view?.turns.at(-1);
    return last && !view.running && last.outcome.failure?.code === "away" ? () => view.again(last) : null;
  },
});
const composer = new Composer({
  ask: send,
  stop: () => view?.stop(),
  switched: onSwitch,
  changed: estimate,
  chooseModel: () => models.choose(),
  open: (path, line, end, opener) => panel.openFile(path, line, end, { opener }),
});
const models = new Models(() => {
  composer.model = models.name;
  estimate();
});

/** Asks; what is typed in the field stays there with `keep`. */
function send(asked, { keep = false } = {}) {
  if (!view || view.running) return; // or the conversation of the address is still being read
  const instead = composer.replacing && view.turns.includes(editing) ? editing : null;
  if (!keep) composer.clear();
  connection.settle();
  if (shown("c") !== view.id) pushAddress({ c: view.id });
  view.ask(asked, instead);
}

function edit(turn) {
  editing = turn;
  composer.fill(turn.asked, true);
  announce("Edit the question; the new answer will stand beside the one there is");
}

function failed(error) {
  if (error.code === "away") connection.lost();
  else tell([error.message, error.hint].filter(Boolean).join(" "));
}

/** A question was asked, or an answer has ended, here or in a conversation out of view. */
function onChange(conversation, { asked, answered, switched }) {
  const { id, running } = conversation;
  if (running) writing.set(id, conversation);
  else writing.delete(id);
  list.setRunning(conversation);
  if (answered) list.refresh();
  if (answered?.outcome.failure?.code === "away") connection.lost();
  if (conversation !== view) return;
  composer.busy = running;
  composer.follow(view);
  byId("welcome").hidden = true;
  list.show(view);
  showTitle();
  estimate();
  if (asked) scroll.show(asked.node);
  if (answered || switched) scroll.rest();
}

function newConversation() {
  const conversation = new Conversation(repo, newId(), hooks);
  conversation.codebase = !composer.automatic;
  return conversation;
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
async function open(id, { push = true, turn = "" } = {}) {
  closeSidebar();
  if (push && shown("c") !== id) pushAddress({ c: id, file: "", lines: "" });
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
  if (shown("c")) pushAddress({ c: "", file: "", lines: "" });
  panel.close();
  show(newConversation());
  composer.clear();
  composer.focus();
}

/** Something was deleted for good, beside the list. */
function deleted(scope) {
  if (scope === "profile") return;
  for (const conversation of writing.values()) conversation.stop();
  pushAddress({ c: "", file: "", lines: "" });
  panel.close();
  show(newConversation());
  list.refresh();
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

/** Shows a file that was chosen by its name; line 0 is the file as a whole. */
function openPlace(path, line, end, opener = null) {
  closeSidebar();
  panel.openFile(path, line, end, { opener });
}

const symbols = setUpSymbols(repo, openPlace);
setUpControls({ thread, panel, startOver, edit, view: () => view, symbols: () => symbols.show() });
addEventListener("popstate", openFromAddress);

setUpTheme();
setUpSidebar();
new Tree(repo, (path, opener) => openPlace(path, 0, 0, opener));
setUpStored(repo, { conversation: () => (view?.turns.length ? view : null), deleted });
const status = new Status(repo, { told: (values) => { composer.settings = values; }, lost: () => connection.lost() });
showExamples(repo, (text) => send({ text, codebase: true, ...composer.manner }, { keep: true }));
openFromAddress();
composer.focus();
