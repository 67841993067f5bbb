// The dialog that takes an issue, typed, pasted or as a file, to be reviewed as a turn.

import { byId } from "../lib/dom.js";
import { excess, textOf } from "../lib/fields.js";
import { count } from "../lib/format.js";
import { page } from "../lib/page.js";
import { closesByClick } from "../lib/widgets.js";
import { closeSidebar } from "./sidebar.js";

const COMMAND = "/issue ";

/** Has an issue reviewed, in a conversation of its own. */
function review(text) {
  closeSidebar();
  page.panel.close();
  if (!page.view || page.view.running || page.view.turns.length) page.showNew();
  page.ask(text);
}

/** Gives the function that takes a file as the issue. */
export function setUpIssueDialog() {
  const dialog = byId("issue");
  const [title, body, problem] = ["title", "body", "problem"].map((name) => byId(`issue-${name}`));

  function say(text) {
    problem.textContent = text;
    problem.hidden = !text;
  }

  async function take(file) {
    if (!file) return;
    try {
      const text = (await textOf(file)).trim();
      const [first, ...rest] = text.split("\n");
      if (!title.value.trim()) title.value = first.replace(/^#+ */, "");
      body.value = title.value === first.replace(/^#+ */, "") ? rest.join("\n").trim() : text;
      say("");
    } catch ({ message }) {
      say(message);
    }
  }

  byId("review-issue").addEventListener("click", () => {
    say("");
    byId("issue-about").textContent = page.models.name
      ? `${page.models.name} searches the code and says how hard the issue is, what you need to know, and which files change.`
      : "Without a language model, this lists the files and tests that the issue is likely about, and who wrote them.";
    dialog.showModal();
    title.focus();
  });
  byId("issue-choose").addEventListener("click", () => byId("issue-file").click());
  byId("issue-file").addEventListener("change", ({ target }) => {
    take(target.files[0]);
    target.value = ""; // the same file may be chosen again
  });
  byId("issue-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = [title.value.trim(), body.value.trim()].filter(Boolean).join("\n\n");
    const over = excess(COMMAND + text);
    if (!text) say("Give a title, a text, or both.");
    else if (over > 0) say(`The issue is ${count(over)} characters too long; shorten it.`);
    else {
      review(COMMAND + text);
      title.value = "";
      body.value = "";
      dialog.close();
    }
  });
  byId("issue-form").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
      byId("issue-form").requestSubmit();
  });
  closesByClick(dialog, byId("issue-close"));
  return take;
}
