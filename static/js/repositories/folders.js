// Choosing a folder of the server's machine.

import { query, request } from "../lib/api.js";
import { byId, element, icon } from "../lib/dom.js";

/** `take(path)` gets the folder that is chosen, `say(error)` what went wrong, null for nothing. */
export function setUpFolders({ take, say }) {
  const [opener, section, list, hidden] = [
    "browse-folders",
    "folders",
    "folders-list",
    "folders-hidden",
  ].map(byId);
  let here = null;

  async function open(path) {
    try {
      here = await request(`/api/folders${query({ path })}`);
    } catch (error) {
      say(error);
      return;
    }
    say(null);
    show();
  }

  function show() {
    byId("folders-path").textContent = here.path;
    byId("folders-up").disabled = !here.parent;
    byId("folders-take").classList.toggle("primary", here.git);
    const shown = here.folders.filter((folder) => hidden.checked || !folder.name.startsWith("."));
    list.replaceChildren(...shown.map(row));
    if (!shown.length) list.append(element("li.help", "This folder has no other folders."));
    list.scrollTop = 0;
  }

  const row = ({ name, path, git }) =>
    element(
      "li",
      element(
        "button",
        { onclick: () => open(path).then(() => (list.querySelector("button") ?? opener).focus()) },
        icon("folder"),
        element("span", name),
        git ? element("span.badge", "git") : null,
      ),
    );

  opener.addEventListener("click", () => {
    section.hidden = !section.hidden;
    opener.setAttribute("aria-expanded", String(!section.hidden));
    if (!section.hidden) open(byId("repository-path").value.trim());
  });
  hidden.addEventListener("change", show);
  byId("folders-up").addEventListener("click", () => open(here.parent));
  byId("folders-take").addEventListener("click", () => take(here.path));
}
