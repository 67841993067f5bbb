// Questions to begin with, on the empty page.

import { query, request } from "../lib/api.js";
import { byId, element } from "../lib/dom.js";
import { page } from "../lib/page.js";
import { questionButton } from "../lib/widgets.js";

/** Shows them, once there is an index to make them from. */
export async function showExamples() {
  const list = byId("examples");
  if (list.children.length) return;
  const address = `/api/first-questions${query({ repo: page.repo })}`;
  const { questions } = await request(address).catch(() => ({ questions: [] })); // next time
  const buttons = questions.map((question) => questionButton(question, () => page.ask(question)));
  list.replaceChildren(...buttons.map((button) => element("li", button)));
}
