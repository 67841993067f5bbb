// The conversation page: joins composer, answers, panel and status.

import { ask, request } from "./api.js";
import { Composer } from "./composer.js";
import { byId, element, icon } from "./dom.js";
import { Panel } from "./panel.js";
import { Scroll } from "./scroll.js";
import { Status } from "./status.js";
import { setUpTheme } from "./theme.js";
import { Turn } from "./turn.js";

const { repo } = document.body.dataset;
const thread = byId("thread");
const welcome = byId("welcome");
const outline = byId("outline");
const panel = new Panel(repo);
const scroll = new Scroll(byId("scroller"), thread, byId("jump"));
const composer = new Composer(start, stop);

let conversation = newId();
let running = null; // the AbortController of the answer that is being written

async function start({ text, codebase, rerank }) {
  if (running) return;
  const controller = new AbortController();
  running = controller;
  composer.busy = true;
  composer.clear();
  welcome.hidden = true;

  const turn = new Turn(repo, text, codebase);
  turn.node.id = `turn-${newId()}`;
  thread.append(turn.node);
  addToOutline(turn);
  scroll.show(turn.node);

  const ending = { retry: () => start({ text, codebase, rerank }) };
  const question = codebase && !/(^|\s)@codebase\b/.test(text) ? `@codebase ${text}` : text;
  try {
    for await (const event of ask({ question, rerank, conversation, repo, render: true }, controller.signal)) {
      if (controller.signal.aborted) break;
      turn.take(event);
    }
    ending.stopped = controller.signal.aborted;
  } catch (error) {
    if (controller.signal.aborted) ending.stopped = true;
    else ending.failure = { message: error.message, hint: error.hint };
  }
  turn.finish(ending);
  if (running === controller) {
    running = null;
    composer.busy = false;
    scroll.rest();
  }
}

function stop() {
  running?.abort();
}

function startOver() {
  stop();
  running = null;
  composer.busy = false;
  conversation = newId();
  thread.replaceChildren();
  outline.replaceChildren();
  outline.parentElement.hidden = true;
  welcome.hidden = false;
  panel.close();
  closeSidebar();
  composer.reset();
  composer.focus();
}

function addToOutline(turn) {
  const link = element("a", { href: `#${turn.node.id}`, title: turn.question }, turn.question);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    closeSidebar();
    scroll.show(turn.node);
  });
  outline.append(element("li", {}, link));
  outline.parentElement.hidden = false;
}

async function showExamples() {
  const { questions } = await request(`/api/examples?${new URLSearchParams({ repo })}`).catch(() => ({ questions: [] }));
  byId("examples").replaceChildren(...questions.map((question) => {
    // `name` in backticks is shown as code; the text itself is never taken as markup.
    const words = question.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));
    const text = question.replaceAll("`", "");
    return element("li", {}, element("button", {
      type: "button",
      onclick: () => start({ text, codebase: true, rerank: false }),
    }, element("span", {}, ...words), icon("chevron")));
  }));
}

// Citations, and chunks of a context, open the panel; with a modifier key a new tab as usual.
thread.addEventListener("click", (event) => {
  const link = event.target.closest("[data-path]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  panel.openFile(link.dataset.path, Number(link.dataset.start), Number(link.dataset.end), link);
});

byId("show-skipped").addEventListener("click", (event) => {
  closeSidebar();
  panel.openSkipped(event.currentTarget);
});
byId("new-conversation").addEventListener("click", startOver);
byId("new-conversation-top").addEventListener("click", startOver);

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea");
  if (event.key === "Escape") {
    if (document.body.classList.contains("sidebar-open")) closeSidebar();
    else if (running) stop();
    else panel.close();
  } else if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    byId("question").focus();
  }
});

// The sidebar is a drawer where there is no room for it.
const opener = byId("open-sidebar");
opener.addEventListener("click", () => {
  document.body.classList.add("sidebar-open");
  opener.setAttribute("aria-expanded", "true");
  byId("backdrop").hidden = false;
  byId("close-sidebar").focus();
});
byId("close-sidebar").addEventListener("click", closeSidebar);
byId("backdrop").addEventListener("click", closeSidebar);

function closeSidebar() {
  if (!document.body.classList.contains("sidebar-open")) return;
  document.body.classList.remove("sidebar-open");
  opener.setAttribute("aria-expanded", "false");
  byId("backdrop").hidden = true;
  opener.focus();
}

function openFromAddress() {
  const values = new URLSearchParams(location.search);
  const lines = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(values.get("lines") ?? "");
  const first = Number(lines?.[1] ?? 0);
  if (values.get("file")) panel.openFile(values.get("file"), first, Number(lines?.[2] ?? first), null);
}

function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

setUpTheme();
new Status(repo);
showExamples();
openFromAddress();
composer.focus();
