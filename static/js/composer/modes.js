// The modes in which a question can be answered, named by a `/` at its beginning.

const MODES = [
  { name: "explain", does: "How it works, in words", asks: "What should be explained?" },
  { name: "locate", does: "Where it is: a list of places", asks: "What should be located?" },
  {
    name: "issue",
    does: "How hard an issue is: paste it",
    asks: "Which issue should be reviewed?",
  },
  { name: "review", does: "Bugs and weak spots", asks: "What should be reviewed?" },
  { name: "plan", does: "The steps, before any code", asks: "What should be planned?" },
  { name: "change", does: "A proposed change, as code", asks: "What should be changed?" },
  { name: "files", does: "Sends the best files whole", asks: "What should be searched for?" },
  { name: "all", does: "Sends every file: /all src/*.py …", asks: "What should be answered?" },
];
const NEED_MODEL = ["review", "plan", "change", "files", "all"];
const ALONE = /^(?:@codebase\s*)?\/(\w+)$/i;
const TAG_ALONE = /^@codebase$/i;

/** Those whose name begins with `typed`, as a list has them; `model` is the one in use, "" for none. */
export const modesFor = (typed, model) =>
  MODES.filter(({ name }) => name.startsWith(typed.toLowerCase())).map(({ name, does }) => {
    const group = model || !NEED_MODEL.includes(name) ? "" : "Only with a language model";
    return { kind: "mode", text: name, label: name, detail: does, group };
  });

/** What a question that only names a mode, or only carries the tag, still lacks; "" when nothing. */
export function missingFrom(text) {
  if (TAG_ALONE.test(text)) return "What should be searched for? Write it after @codebase.";
  const word = ALONE.exec(text)?.[1].toLowerCase();
  const mode = MODES.find(({ name }) => name === word);
  return mode ? `${mode.asks} Write it after /${mode.name}.` : "";
}
