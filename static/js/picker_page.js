// The list of repositories, and adding another one.

import { query, request } from "./lib/api.js";
import { byId, element, icon } from "./lib/dom.js";
import { ago, plural } from "./lib/format.js";
import { setUpTheme } from "./lib/preferences.js";
import { failureText } from "./lib/widgets.js";

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
    // Its page says how far indexing is, and can be asked meanwhile.
    const { id } = await request("/api/repos", { body: { path: byId("path").value.trim() } });
    location.assign(`/${query({ repo: id })}`);
  } catch (error) {
    byId("job").hidden = false;
    byId("job-detail").textContent = failureText(error);
  }
  button.disabled = false;
});

setUpTheme();
showList();
byId("path").focus();
