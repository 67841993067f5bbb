// On the first page, while no model is in use: those on this machine, each for one click, or the
// commands that bring one.

import { request } from "../lib/api.js";
import { byId, element, icon } from "../lib/dom.js";
import { copyButton } from "../lib/widgets.js";
import { chatModels } from "./providers.js";

let looking = false;
let shown = "";

/** Shows what is found, `use(provider, model)` for one click; slow servers keep nothing waiting. */
export async function offerLocal(use) {
  if (looking || byId("welcome").hidden) return;
  looking = true;
  // Without a reply nothing is offered; whoever opens the dialog is told why.
  const found = await request("/api/models/local").catch(() => null);
  looking = false;
  if (!found || JSON.stringify(found) === shown) return; // one of its buttons may have the focus
  shown = JSON.stringify(found);
  const servers = found.servers.map((one) => ({ ...one, model: chatModels(one.models)[0] }));
  const offered = servers
    .filter(({ model }) => model)
    .map(({ provider, title, model }) =>
      element(
        "button.button",
        { onclick: () => use(provider, model) },
        icon("home"),
        element("span", "Answer with ", element("strong", model), ` from ${title} on this machine`),
      ),
    );
  const empty = servers.some(({ provider }) => provider === "ollama");
  byId("local-models").replaceChildren(
    ...(offered.length ? offered : howTo(found.commands, empty)),
  );
}

/** `empty` says that Ollama runs without a model: it needs the last command alone. */
function howTo(commands, empty) {
  const why = empty
    ? "Ollama runs on this machine but has no model. This command installs one:"
    : "No model runs on this machine. To install one, run these two commands in a terminal:";
  const needed = commands.slice(empty ? -1 : 0).map((command) =>
    element(
      "div.command",
      element("code", command),
      copyButton("copy", "Copy", () => command),
    ),
  );
  return [element("p", why), ...needed];
}
