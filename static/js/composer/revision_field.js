// At which commit the repository is asked. Each commit has a page of its own, with its files and
// conversations: choosing one goes there and takes the question along that is being written.

import { query, request } from "../lib/api.js";
import { announce, byId, element } from "../lib/dom.js";
import { page } from "../lib/page.js";
import { recall, remember, rememberQuestion } from "../lib/preferences.js";
import { failureText } from "../lib/widgets.js";

export async function setUpRevisionField() {
  const field = byId("revision");
  const about = byId("revision-about");
  const address = `/api/revisions${query({ repo: page.repo })}`;
  const { repository, commit, names } = await request(address).catch(() => ({ names: [] }));
  if (!names.length && !commit) return; // no history
  byId("revision-part").hidden = false;
  byId("revisions").replaceChildren(...names.map((value) => element("option", { value })));
  const shown = (commit && recall(`revision.${page.repo}`)) || commit; // the tag that was typed
  field.value = shown;
  if (shown !== commit) about.textContent = `Commit ${commit}`;
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
    if (revision) remember(`revision.${id}`, revision);
    if (page.composer.text) rememberQuestion(id, page.composer.text);
    if (page.reading.asks) remember(`asks.${id}`, "yes");
    location.assign(`/${query({ repo: id })}`);
  }

  field.addEventListener("change", async (event) => {
    event.stopPropagation(); // it is none of the options that the form knows
    const revision = field.value.trim();
    page.reading = null;
    if (revision === shown) return;
    field.disabled = true;
    page.reading = { revision, asks: false }; // a question that is sent meanwhile waits
    await go(revision).catch((error) => {
      say(failureText(error));
      page.reading.problem = failureText(error); // nothing is asked about other files instead
    });
    field.disabled = false;
  });
  if (!recall(`asks.${page.repo}`)) return;
  remember(`asks.${page.repo}`, "");
  if (page.composer.text) page.composer.submit();
}
