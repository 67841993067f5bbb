// Draws diagrams with Mermaid, in a sandboxed frame that reaches nothing: the page shows what comes back
// as a picture, in which no script runs.

const { mermaid, parent } = globalThis;
const [ink, line, box, group] = ["#1d1b18", "#655f56", "#e6f2ef", "#f4f2ec"];
const MOST = { characters: 20_000, arrows: 400, words: 1000 };
const LINE = /\bline:? (\d+)/i; // in a message, where it stopped
// Generic types and tags, which Mermaid would leave out: only a line break is meant as one.
const ANGLE = /(?<!<)<(?=\/?[a-z])(?!br\s*\/?>)(?:((?:[^<>\n=-]|-(?![->]))*)>)?/gi;
// Labels of a flowchart without the quotes that `A[call(x)]` needs, as many models write them.
const FLOWCHART = /^\s*(?:flowchart|graph)\b/m;
const BARE = [
  [/\|([^|"\n]+)\|/g, '|"$1"|'],
  [/(?<=\w)\[(?![[(]|[/\\][^\]\n]*[/\\]\])([^"\n]{1,200}?)\](?=\s*(?:$|[-=&;:.<~]))/gm, '["$1"]'],
  [/(?<=\w)\{(?!\{)([^"\n]{1,200}?)\}(?=\s*(?:$|[-=&;:.<~]))/gm, '{"$1"}'],
  [/(?<=\w)\((?![([])([^"\n]{1,200}?)\)(?=\s*(?:$|[-=&;:.<~]))/gm, '("$1")'],
];
const ESCAPED_TWICE = /&amp;(#?\w+;)/g; // as Mermaid leaves `#quot;`

const ours = {
  theme: "base",
  themeCSS:
    ".edgeLabel rect, .labelBkg { fill: #f7f5f0 !important; opacity: 1 !important; } " +
    ".mindmap-node .label[transform^='translate(0,'] text { text-anchor: middle; }",
  themeVariables: {
    fontSize: "14px",
    primaryColor: box,
    primaryTextColor: ink,
    primaryBorderColor: line,
    secondaryColor: "#fff3cf",
    tertiaryColor: group,
    lineColor: line,
    textColor: ink,
    edgeLabelBackground: group,
    xyChart: { backgroundColor: "transparent", plotColorPalette: "#0b6e5f, #d99a1c, #a3282c" },
  },
  fontFamily: "ui-sans-serif, system-ui, sans-serif",
  htmlLabels: false,
  securityLevel: "strict",
  suppressErrorRendering: true,
  startOnLoad: false,
  logLevel: "fatal",
  maxTextSize: MOST.characters,
  maxEdges: MOST.arrows,
};
// No text changes these: one picture must do for the light and the dark page.
mermaid.initialize({ ...ours, secure: ["secure", "darkMode", ...Object.keys(ours)] });

addEventListener("message", async ({ data: { id, source } }) => {
  const told = await draw(id, source).catch(({ message }) => ({
    line: Number(LINE.exec(message)?.[1]),
  }));
  parent.postMessage({ id, ...told }, "*");
});

/** Has angles that are no markup be text, those of `Map<String, List<int>>` as well. */
function plain(source) {
  let text = source;
  for (let depth = 0; depth < 3; depth += 1)
    text = text.replace(ANGLE, (angle, type) => (type ? `#lt;${type}#gt;` : angle));
  return text.replace(ANGLE, "#lt;");
}

const quoted = (text) => BARE.reduce((some, [bare, label]) => some.replace(bare, label), text);

/** The drawing of `source` as the text of an SVG file, its size and its words. */
async function draw(id, source) {
  if (source.length > MOST.characters) return {};
  const text = plain(source);
  const render = (one) => mermaid.render(`diagram-${id}`, one);
  const { svg: html } = await render(text).catch((error) => {
    if (FLOWCHART.test(text)) return render(quoted(text)).catch(() => Promise.reject(error));
    throw error;
  });
  const drawn = new DOMParser().parseFromString(html.replace(ESCAPED_TWICE, "&$1"), "text/html");
  const drawing = drawn.querySelector("svg");
  const { width, height } = drawing.viewBox.baseVal;
  drawing.setAttribute("width", width);
  drawing.setAttribute("height", height);
  drawing.style.maxWidth = "";
  const labels = [...drawing.querySelectorAll("text, foreignObject")].map((one) =>
    one.textContent.trim(),
  );
  const svg = new XMLSerializer().serializeToString(drawing);
  return { svg, width, words: labels.filter(Boolean).join(", ").slice(0, MOST.words) };
}
