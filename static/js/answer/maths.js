// Formulas in answers. Temml sets them; it is loaded with the first one. What it cannot read stays as it
// was written.

import { byId, element } from "../lib/dom.js";

const MARKS = /^\s*(\$\$?|\\[([])([^]*?)(?:\$\$?|\\[)\]])\s*([.,;:]?)\s*$/;
const ENVIRONMENT = /^\s*\\begin\{/;
const MOST = { characters: 4000, expansions: 200, size: [5, 40] }; // `size` in em, of one thing

let temml = null; // resolves once it is there

/** Sets the formulas in a rendered block. */
export async function setMaths(block) {
  const formulas = block.querySelectorAll(".maths");
  if (!formulas.length) return;
  temml ??= load();
  if (await temml) for (const formula of formulas) set(formula);
}

function set(formula) {
  const source = formula.textContent;
  const [, mark = "$$", written = source, after = ""] = MARKS.exec(source) ?? [];
  if (source.length > MOST.characters || (written === source && !ENVIRONMENT.test(source))) return;
  const name = formula.localName === "pre" ? "div" : "span";
  const node = element(`${name}.maths.set`, { dir: "ltr", title: source.trim() });
  try {
    globalThis.temml.render(written.trim(), node, {
      displayMode: mark === "$$" || mark === "\\[",
      throwOnError: true,
      trust: false,
      maxExpand: MOST.expansions,
      maxSize: MOST.size,
    });
  } catch {
    return;
  }
  node.append(after);
  formula.replaceWith(node);
}

const load = () =>
  new Promise((resolve) => {
    const script = element("script", { src: byId("thread").dataset.maths });
    script.addEventListener("load", () => resolve(true));
    script.addEventListener("error", () => resolve(false));
    document.head.append(script);
  });
