// Questions to begin with, on the empty page.

import { query, request } from "./api.js";
import { byId, element, icon } from "./dom.js";

export async function showExamples(repo, ask) {
  const { questions } = await request(`/api/examples${query({ repo })}`).catch(() => ({ questions: [] }));
  byId("examples").replaceChildren(...questions.map((question) => {
    // `name` in backticks is shown as code; the text itself is never taken as markup.
    const words = question.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));
    const text = question.replaceAll("`", "");
    return element("li", {}, element("button", { type: "button", onclick: () => ask(text) }, element("span", {}, ...words), icon("chevron")));
  }));
}
