// The state of the index: a dot in the sidebar, which opens what else is known of it, and in the top bar.

import { showExamples } from "../chat/examples.js";
import { query, request } from "../lib/api.js";
import { byId, element } from "../lib/dom.js";
import { ago, count, left, plural } from "../lib/format.js";
import { page } from "../lib/page.js";
import { failureText } from "../lib/widgets.js";

const BUSY = 1000; // milliseconds between questions while something happens
const IDLE = 5000;

const LABELS = {
  missing: "Not indexed yet",
  indexing: "Indexing",
  ready: "Ready",
  refining: "Ready, improving",
  paused: "Paused",
  stopped: "Not complete",
  failed: "Indexing failed",
  unreachable: "Server not reachable",
};

const CHECK = { check: "Check now" };
const ACTIONS = {
  indexing: { pause: "Pause", cancel: "Cancel" },
  refining: { pause: "Pause", cancel: "Cancel" },
  paused: { check: "Resume", cancel: "Cancel" },
};

export class IndexStatus {
  #timer = 0;

  constructor() {
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.#ask();
    });
    byId("index-actions").addEventListener("click", (event) => {
      const { action } = event.target.dataset;
      if (action) this.#ask({ action });
    });
    this.#ask();
  }

  refresh() {
    this.#ask();
  }

  /** Asks how the index is; with `body` something is to be done with it first. */
  async #ask(body = null) {
    clearTimeout(this.#timer);
    let status;
    try {
      const address = `/api/${body ? "index" : "status"}${query({ repo: page.repo })}`;
      status = await request(address, body ? { body } : {});
      page.settings = status;
      page.composer.settings = status;
      if (status.files && status.state !== "indexing") showExamples();
    } catch (error) {
      if (error.code === "away") page.connection.lost();
      status = {
        state: error.code === "away" ? "unreachable" : "failed",
        error: failureText(error),
      };
    }
    show(status);
    const busy = ["indexing", "refining", "paused", "missing"].includes(status.state);
    const pause = busy || body ? BUSY : IDLE;
    clearTimeout(this.#timer); // of what was asked meanwhile
    if (!document.hidden) this.#timer = setTimeout(() => this.#ask(), pause);
  }
}

function show(status) {
  const { state, progress } = status;
  const label =
    state === "indexing" && status.updated_at ? "Ready, updating" : (LABELS[state] ?? state);
  const stateLine = byId("index-state");
  stateLine.children[0].dataset.state = state;
  stateLine.children[1].textContent = label;
  byId("topbar-dot").dataset.state = state;
  byId("topbar-state").textContent = progress?.total ? `${label} ${share(progress)} %` : label;

  showProgress(byId("index-progress"), progress);
  const detail = byId("index-detail");
  detail.textContent = describe(status);
  detail.classList.toggle("bad", Boolean(status.error));
  detail.hidden = !detail.textContent;

  showActions(status);
  const skipped = byId("show-skipped");
  skipped.hidden = !status.skipped_total;
  skipped.textContent = status.skipped_total
    ? `${plural(status.skipped_total, "file")} skipped: why?`
    : "";
}

/** The buttons for what can be done now, the same ones as long as that is the same. */
function showActions({ state, steerable }) {
  const place = byId("index-actions");
  const actions = Object.entries(ACTIONS[state] ?? CHECK);
  place.hidden = !steerable;
  if (place.dataset.shown === String(actions)) return;
  place.dataset.shown = String(actions);
  const focused = place.contains(document.activeElement);
  place.replaceChildren(
    ...actions.map(([action, label]) =>
      element("button.link", { type: "button", "data-action": action }, label),
    ),
  );
  if (focused) place.firstElementChild.focus();
}

/** Fills a progress bar; without a total it just moves. */
export function showProgress(bar, progress) {
  bar.hidden = !progress;
  if (!progress) return;
  const known = progress.total > 0;
  bar.classList.toggle("unknown", !known);
  bar.firstElementChild.style.width = known ? `${share(progress)}%` : "35%";
  if (known) bar.setAttribute("aria-valuenow", String(share(progress)));
  else bar.removeAttribute("aria-valuenow");
}

/** A line on what happens, or on what the index is. */
function describe(status) {
  const { error, progress, embedding, embedded, units, checked_at: checked, watched } = status;
  if (error) return error;
  if (progress) {
    const far = progress.total ? `: ${count(progress.done)} of ${count(progress.total)}` : "";
    const parts = [`${capital(progress.phase)}${far}`, left(status.seconds_left)];
    return parts.filter(Boolean).join(", ");
  }
  if (!checked) return "";
  if (!status.files) return "This folder has no files that can be indexed.";
  const covered =
    embedding && embedded < units
      ? `, ${count(embedded)} of ${count(units)} pieces of code can be searched by meaning so far`
      : "";
  const follows = watched ? "; later changes are noticed" : "";
  return `${plural(status.files, "file")}, checked for changes ${ago(checked)}${follows}${covered}`;
}

const share = ({ done, total }) => Math.min(100, Math.floor((100 * done) / total));
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
