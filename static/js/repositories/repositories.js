// The list of repositories, in its dialog and on the page that comes before any is open: adding,
// refreshing, renaming and removing them.

import { query, request } from "../lib/api.js";
import { announce, byId, element, icon, onPlainClick } from "../lib/dom.js";
import { ago, count, plural } from "../lib/format.js";
import { closesByClick, failureText } from "../lib/widgets.js";
import { showProgress } from "../sidebar/index_status.js";
import { setUpFolders } from "./folders.js";

const BUSY = 700; // milliseconds between two looks while something goes on
const BEGINS = 4000; // until what was asked for has begun
const GOES_ON = ["looking", "cloning", "describing", "refreshing", "indexing", "paused"];
const ADDRESS = /^(?!file:)[\w+.-]+:\/\/|^[\w.-]+@[\w.-]+:/;

const STATES = {
  "folder gone": "folder is gone",
  cloning: "being cloned",
  describing: "being described by the model",
  incomplete: "not complete",
  indexing: "being indexed",
  looking: "looking…",
  paused: "paused",
  refreshing: "being refreshed",
  unreadable: "needs to be indexed again",
};

let timer = 0;
let changed = 0; // when something was asked for last
let listed = null; // what the server last told
let shown = ""; // the list in view, as it came
let adding = ""; // what was asked to be added, until there is a row of it
let awaited = ""; // id of what was added and is gone to when it is there
let edited = null; // `{ id, how }` of the row that is being renamed or removed
let left = ""; // the button to go back to from there

/** Shows the list where it stands in the page. */
export function showRepositories() {
  setUp();
  look().then(() => byId("repository-path").focus());
}

/** Opens the list as a dialog, now and whenever the link to it is pressed. */
export function setUpRepositoriesDialog() {
  const dialog = byId("repositories-dialog");
  const show = () => {
    edited = null;
    dialog.showModal();
    look();
  };
  setUp();
  show();
  byId("choose-repository").addEventListener("click", onPlainClick(show));
  dialog.addEventListener("close", () => {
    clearTimeout(timer);
    settle(); // whoever closes it stays here
  });
  closesByClick(dialog, byId("repositories-close"));
}

function setUp() {
  const path = byId("repository-path");
  const kind = () => {
    byId("repository-branch-row").hidden = !ADDRESS.test(path.value.trim());
  };
  path.addEventListener("input", kind);
  byId("add-repository").addEventListener("submit", (event) => {
    event.preventDefault();
    add(path.value.trim(), byId("repository-branch").value.trim());
  });
  setUpFolders({ take: (folder) => add(folder, ""), say });
  addEventListener("pagehide", settle);
}

function say(error) {
  byId("repository-problem").textContent = error ? failureText(error) : "";
  byId("repository-problem").hidden = !error;
}

/** Does `work`, says what went wrong, and looks again. */
async function change(work) {
  changed = Date.now();
  try {
    await work();
    say(null);
  } catch (error) {
    say(error);
  }
  await look();
}

/** Adds a repository: the server may look at it for seconds, and the page of it takes its time. */
async function add(path, branch) {
  if (adding || !path) return;
  say(null);
  showAdding(path);
  announce(`Looking at ${path}`);
  await change(async () => {
    const { id } = await request("/api/repos", { body: { path, branch } });
    if (adding) awaited = id;
  });
  if (awaited) return;
  settle();
  byId("repository-path").focus();
}

/** Nothing that was added is waited for any more. */
function settle() {
  awaited = "";
  showAdding("");
}

function showAdding(path) {
  adding = path;
  const labels = { "add-this": "Add", "folders-take": "Add this folder" };
  for (const [id, label] of Object.entries(labels)) {
    byId(id).disabled = Boolean(path);
    byId(id).textContent = path ? "Adding…" : label;
  }
  if (listed) draw(listed);
}

async function look() {
  clearTimeout(timer);
  const message = byId("no-repositories");
  try {
    listed = await request("/api/repos");
    const { changeable, repositories } = listed;
    byId("add-repository").hidden = !changeable;
    follow(repositories);
    listed.repositories = repositories.filter((one) => !hasFailed(one, changeable));
    draw(listed);
    message.textContent = "No repository is indexed yet.";
    const goesOn = repositories.some(({ state }) => GOES_ON.includes(state));
    if (goesOn || Date.now() - changed < BEGINS) timer = setTimeout(look, BUSY);
  } catch (error) {
    message.hidden = false;
    message.textContent = failureText(error);
  }
}

/** Whether a first clone failed: that is said, and nothing is left of it. */
function hasFailed({ id, name, state, problem }, changeable) {
  if (state !== "failed") return false;
  if (changeable) {
    say(new Error(`${name}: ${problem}`));
    request(`/api/repos/${id}/cancel`, { method: "POST" }).catch(() => {});
  }
  return true;
}

/** Goes to what was added as soon as it can be opened; its page says how far the index is. */
function follow(repositories) {
  const found = repositories.find(({ id }) => id === awaited);
  if (!found) return;
  if (found.state === "cloning") showAdding("");
  else if (found.problem) settle();
  else location.assign(`/${query({ repo: found.id })}`);
}

function draw(reply) {
  const begun = adding && !awaited ? [{ id: null, name: adding, state: "looking" }] : [];
  const rows = [...begun, ...reply.repositories];
  byId("no-repositories").hidden = rows.length > 0;
  const text = JSON.stringify([begun, reply, edited]);
  if (text === shown || (edited && shown.endsWith(`${JSON.stringify(edited)}]`))) return;
  shown = text;
  const list = byId("repositories");
  const focused = list.contains(document.activeElement) && document.activeElement.dataset.key;
  list.replaceChildren(...rows.map((one) => row(one, reply)));
  const wanted = edited ? `${edited.id} ${edited.how}` : left || focused;
  left = "";
  if (wanted) list.querySelector(`[data-key="${CSS.escape(wanted)}"]`)?.focus();
}

/** Whether the page asks the repository `id`, alone or together with others. */
function isAsked(id, current) {
  const ends = (document.body.dataset.repo || current).split("~"); // of all together "~"
  return Boolean(id) && ends.some((end) => (end || ends.length > 1) && id.endsWith(end));
}

function row(repository, { changeable, current }) {
  const { id, name, path, url, branch, files, updated_at: updated, state, progress } = repository;
  const gone = ["folder gone", "looking", "cloning"].includes(state);
  const facts = [
    [isAsked(id, current) ? "open" : "", files ? plural(files, "file") : ""]
      .filter(Boolean)
      .join(" · "),
    STATES[state] ?? (updated ? `indexed ${ago(updated)}` : ""),
  ].filter(Boolean);
  const from = url ? [url, branch].filter(Boolean).join(" · ") : path;
  const link = element(
    "a",
    { href: gone ? null : `/${query({ repo: id })}`, class: gone ? "gone" : null },
    icon(url ? "cloud" : "folder"),
    element("span.text", element("strong", name), element("span.path", { title: path }, from)),
    element("span.row-facts", ...facts.map((fact) => element("span", fact))),
  );
  const item = element("li", link);
  const editor = { rename: renaming, remove: removing };
  if (edited?.id === id) item.append(editor[edited.how](repository));
  else if (changeable && id) item.append(actions(repository));
  if (GOES_ON.includes(state)) {
    const label = { role: "progressbar", "aria-label": `${name}: ${state}` };
    const bar = element("div.progress", label, element("span"));
    const { phase, done, total } = progress ?? { phase: "", done: 0, total: 0 };
    showProgress(bar, { done, total });
    const far = total ? `${phase}: ${count(done)} of ${count(total)}` : phase;
    item.append(bar, element("p.help", far));
  }
  if (repository.problem) item.append(element("p.help.bad", repository.problem));
  return item;
}

function actions({ id, name, state, problem }) {
  const edit = (how) => () => {
    edited = { id, how };
    look();
  };
  const ask = (work) => () => change(() => request(`/api/repos/${id}/${work}`, { method: "POST" }));
  const button = (key, symbol, label, onclick) =>
    element(
      "button.icon-button",
      { "aria-label": `${label} ${name}`, title: label, "data-key": `${id} ${key}`, onclick },
      icon(symbol),
    );
  if (["cloning", "describing", "refreshing"].includes(state))
    return element("div.row-actions", button("cancel", "stop", "Cancel", ask("cancel")));
  const dismiss = problem ? button("dismiss", "close", "Dismiss", ask("cancel")) : null;
  return element(
    "div.row-actions",
    dismiss,
    button("refresh", "retry", "Refresh", ask("refresh")),
    button("begin rename", "edit", "Rename", edit("rename")),
    button("begin remove", "trash", "Remove", edit("remove")),
  );
}

function leave() {
  left = `${edited.id} begin ${edited.how}`;
  edited = null;
  look();
}

function onEscape(event) {
  if (event.key !== "Escape") return;
  event.preventDefault(); // the dialog stays
  event.stopPropagation();
  leave();
}

function renaming({ id, name }) {
  const field = element("input", {
    type: "text",
    maxlength: "60",
    value: name,
    "aria-label": `New name of ${name}`,
    "data-key": `${id} rename`,
  });
  return element(
    "form.row-edit",
    {
      onkeydown: onEscape,
      onsubmit: (event) => {
        event.preventDefault();
        left = `${id} begin rename`;
        edited = null;
        change(() => request(`/api/repos/${id}`, { body: { name: field.value } }));
      },
    },
    field,
    element("button.button.primary", { type: "submit" }, "Save"),
    element("button.button", { onclick: leave }, "Cancel"),
  );
}

function removing({ id, name, path, url }) {
  const kept = url ? "The clone is deleted with it." : `The folder ${path} stays as it is.`;
  const remove = () => {
    edited = null;
    change(async () => {
      await request(`/api/repos/${id}`, { method: "DELETE" });
      if (document.body.dataset.repo === id) location.assign("/repositories");
    });
  };
  return element(
    "div.row-edit",
    { onkeydown: onEscape, role: "group", "aria-label": `Remove ${name}` },
    element("p", `Remove the index of ${name}? ${kept} Its conversations stay.`),
    element("button.button.danger", { onclick: remove }, "Remove"),
    element("button.button", { onclick: leave, "data-key": `${id} remove` }, "Keep"),
  );
}
