// The list of repositories, and indexing another one with its progress in view.

import { query, request, sleep } from "./lib/api.js";
import { byId, element, icon } from "./lib/dom.js";
import { ago, plural } from "./lib/format.js";
import { setUpTheme } from "./lib/preferences.js";
import { failureText } from "./lib/widgets.js";
import { describe, showProgress } from "./sidebar/index_status.js";

const PAUSE = 500; // milliseconds between two looks at the progress

const STATES = {
  "folder gone": "folder is gone",
  incomplete: "not complete",
  unreadable: "must be indexed again",
};

async function showList() {
  const message = byId("no-repositories");
  try {
    const { repositories } = await request("/api/repos");
    byId("repositories").replaceChildren(...repositories.map(row));
    message.hidden = repositories.length > 0;
    message.textContent = "No repository is indexed yet.";
  } catch (error) {
    message.hidden = false;
    message.textContent = failureText(error);
  }
}

function row({ id, name, path, files, updated_at: updated, state }) {
  const gone = state === "folder gone";
  const facts = [
    plural(files, "file"),
    STATES[state] ?? (updated ? `updated ${ago(updated)}` : ""),
  ].filter(Boolean);
  return element(
    "li",
    element(
      "a",
      { href: gone ? null : `/${query({ repo: id })}`, class: gone ? "gone" : null },
      icon("folder"),
      element("span.text", element("strong", name), element("span.path", { title: path }, path)),
      element("span.facts", ...facts.map((fact) => element("span", fact))),
    ),
  );
}

byId("path-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.target.querySelector("button");
  button.disabled = true;
  try {
    await index(byId("path").value.trim());
  } catch (error) {
    show({ name: "That did not work", state: "", error: failureText(error) });
  }
  button.disabled = false;
});

/** Has the folder indexed and goes there as soon as it can be searched. */
async function index(path) {
  let status = await request("/api/repos", { body: { path } });
  const address = `/${query({ repo: status.id })}`;
  // The thread that indexes may not have begun when the server answers.
  for (let looks = 0; ; looks += 1) {
    show(status);
    const waiting = status.state === "indexing" || (status.state === "missing" && looks < 20);
    if (status.state === "ready" || status.state === "refining") return location.assign(address);
    if (status.state === "missing" && !waiting)
      show({ ...status, error: "Indexing did not begin. The server's log may say why." });
    if (!waiting) return;
    await sleep(PAUSE);
    status = await request(`/api/status${query({ repo: status.id })}`);
  }
}

function show(status) {
  byId("job").hidden = false;
  byId("job-name").textContent = status.name;
  byId("job-state").textContent = status.state;
  showProgress(byId("job-progress"), status.error ? null : (status.progress ?? { total: 0 }));
  const detail = byId("job-detail");
  detail.textContent = describe(status);
  detail.classList.toggle("bad", Boolean(status.error));
}

setUpTheme();
showList();
byId("path").focus();
