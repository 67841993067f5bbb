// The dialog that takes an issue, typed, pasted or as a file, to be reviewed as a turn.

import { byId } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { page } from "../lib/page.js";
import { closesByClick } from "../lib/widgets.js";
import { closeSidebar } from "./sidebar.js";

const LONGEST = 20_000; // characters, as of every question
const COMMAND = "/issue ";

/** Has an issue reviewed, in a conversation of its own. */
function review(text) {
  closeSidebar();
  page.panel.close();
  if (!page.view || page.view.running || page.view.turns.length) page.showNew();
  page.ask(text);
}

export function setUpIssueDialog() {
  const dialog = byId("issue");
  const [title, body, problem] = ["title", "body", "problem"].map((name) => byId(`issue-${name}`));

  function say(text) {
    problem.textContent = text;
    problem.hidden = !text;
  }

  async function take(file) {
    if (!file) return;
    const text = file.size > 4 * LONGEST ? "" : (await file.text()).trim();
    if (file.size > 4 * LONGEST) say(`${file.name} is too long for an issue.`);
    else if (!text || text.includes("\0")) say(`${file.name} contains no text.`);
    else {
      const [first, ...rest] = text.split("\n");
      if (!title.value.trim()) title.value = first.replace(/^#+ */, "");
      body.value = title.value === first.replace(/^#+ */, "") ? rest.join("\n").trim() : text;
      say("");
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
  dialog.addEventListener("dragover", (event) => event.preventDefault());
  dialog.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return; // text goes where it is dropped
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
  byId("issue-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = [title.value.trim(), body.value.trim()].filter(Boolean).join("\n\n");
    const over = COMMAND.length + text.length - LONGEST;
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
}
