// Where the lines of a file are beside this page: in an editor on this machine, at the git host.

import { byId } from "../lib/dom.js";
import { recall } from "../lib/preferences.js";

const EDITORS = {
  vscode: "vscode://file{path}:{line}",
  cursor: "cursor://file{path}:{line}",
  jetbrains: "idea://open?file={path}&line={line}",
};
const RUNS = /^\s*(javascript|data|vbscript|blob):/i;

/** Has the links below a file lead to its lines, to the whole of it where none are given; one that
 * leads nowhere is hidden. */
export function linkTo({ on_disk: onDisk, hosted }, start, end) {
  const kept = recall("editor");
  const form = EDITORS[kept] ?? kept;
  // `C:\x` of Windows is `/C:/x`.
  const path = onDisk.replaceAll("\\", "/").replace(/^(?!\/)/, "/");
  const written = path.split("/").map(encodeURIComponent).join("/").replace("%3A", ":");
  const opens = onDisk && form.includes("{path}") && !RUNS.test(form);
  lead(
    byId("panel-editor"),
    opens && form.replace("{path}", written).replace("{line}", start || 1),
  );
  const lines = start ? hosted : hosted.replace(/#.*/, "");
  lead(byId("panel-hosted"), lines.replace("{start}", start).replace("{end}", end));
  byId("panel-hosted").textContent = hosted && `At ${new URL(hosted).host}`;
}

function lead(link, address) {
  link.hidden = !address;
  link.href = address;
}
