// At which commit the repository is asked. Each commit has a page of its own, with its files and
// conversations: choosing one goes there and takes the question along that is being written.

import { query, request } from "../lib/api.js";
import { announce, byId, element } from "../lib/dom.js";
import { page } from "../lib/page.js";
import { rememberQuestion } from "../lib/preferences.js";
import { failureText } from "../lib/widgets.js";

export async function setUpRevisionField() {
  const field = byId("revision");
  const about = byId("revision-about");
  const address = `/api/revisions${query({ repo: page.repo })}`;
  const { repository, commit, names } = await request(address).catch(() => ({ names: [] }));
  if (!names.length && !commit) return; // no history
  byId("revision-part").hidden = false;
  byId("revisions").replaceChildren(...names.map((value) => element("option", { value })));
  field.value = commit;
  const say = (text) => {
    about.textContent = text;
    announce(text);
  };

  async function go(revision) {
    let id = repository;
    if (revision) {
      say(`Reading the files of ${revision}…`);
      const taken = `/api/revisions${query({ repo: repository })}`;
      ({ id } = await request(taken, { body: { revision } }));
    }
    if (page.composer.text) rememberQuestion(id, page.composer.text);
    location.assign(`/${query({ repo: id })}`);
  }

  field.addEventListener("change", async (event) => {
    event.stopPropagation(); // it is none of the options that the form knows
    const revision = field.value.trim();
    if (revision === commit) return;
    field.disabled = true;
    await go(revision).catch((error) => say(failureText(error)));
    field.disabled = false;
  });
}
