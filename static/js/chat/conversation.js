// One conversation: its turns, and the answer that is being written. It goes on writing
// while another conversation is in view.

import { breather } from "../answer/streaming.js";
import { Turn } from "../answer/turn.js";
import { effortOf, rememberAnswerTime } from "../composer/answer_options.js";
import { query, request, streamAnswer } from "../lib/api.js";
import { announce, element } from "../lib/dom.js";
import { withoutProvider } from "../lib/format.js";
import { page } from "../lib/page.js";

const TAG = /(?<!\w)@codebase\b/i;
const LEADING_TAG = /^@codebase\s+(?=\S)/i;
const AGAIN = 200; // milliseconds after which one is told again to stop
const STOPPED_BY = 3000; // milliseconds after which an answer that was stopped is not waited for

export class Conversation {
  node = element("div.turns");
  turns = [];
  codebase = true; // whether the next question is to be searched for
  following = new Map(); // by the id of a version that was in view: how many questions follow it
  title = "";
  #running = null; // the AbortController of the answer that is being written

  constructor(id = newId()) {
    this.id = id;
  }

  /** Reads a conversation from the server. Throws what the server says. */
  static async open(id) {
    const conversation = new Conversation(id);
    const kept = await request(conversation.#address());
    conversation.title = kept.title;
    conversation.codebase = !(kept.context && kept.turns.at(-1)?.model);
    conversation.#take(kept);
    return conversation;
  }

  get running() {
    return this.#running !== null;
  }

  /**
   * Asks `{ text, codebase, untouched, withoutModel, ...options }`, whose options go to the server as
   * they are; `instead` is the turn that it becomes another version of.
   */
  async ask(given, instead = null) {
    if (this.#running) return;
    const tagged = TAG.test(given.text);
    const asked = tagged
      ? { ...given, text: given.text.replace(LEADING_TAG, ""), codebase: true }
      : given;
    const { text, codebase, untouched, withoutModel, with_model: other, ...options } = asked;
    const model = withoutModel ? "" : other ? withoutProvider(other) : page.models.name;
    const turn = new Turn({ ...asked, model }, this);
    turn.replaces = instead?.id || instead?.replaces || "";
    const after = instead ? "" : (this.turns.findLast(({ id }) => id)?.id ?? "");
    if (instead) this.#replace(instead, turn);
    else this.#append(turn);
    this.title ||= text.replace(/\s+/g, " ").slice(0, 80);
    const body = {
      ...options,
      model: undefined, // of a turn that is asked again
      question: codebase && !TAG.test(text) ? `@codebase ${text}` : text,
      // Without a model nothing can be drafted, and nobody asked for it.
      hyde: model || options.hyde === "off" ? options.hyde : "",
      retrieval: options.retrieval || "auto",
      conversation: this.id,
      repo: page.repo,
      render: true,
      tag_is_default: Boolean(codebase && untouched && !tagged),
      replaces: turn.replaces,
      after,
      without_model: Boolean(withoutModel),
      with_model: other,
    };
    const versions = () => this.#versions(turn, instead);
    const refused = await this.#write(turn, "/chat/stream", body, versions);
    if (refused) page.refused(given, refused);
  }

  /**
   * Shows the answer to `turn` that `address` streams. Returns the server's error when there is none,
   * for another question is being answered here, or the answer has ended meanwhile.
   */
  async #write(turn, address, body = null, versions = () => turn.siblings) {
    const controller = new AbortController();
    const { signal } = controller;
    this.#running = controller;
    page.changed(this, { asked: turn });
    announce("Looking for an answer");
    const ending = {};
    try {
      const breathe = breather();
      for await (const event of streamAnswer(address, { body, signal })) {
        if (signal.aborted) break;
        page.accepted();
        turn.take(event);
        await breathe();
      }
      ending.stopped = signal.aborted;
    } catch (error) {
      const overtaken = error.code === (body ? "busy" : "not_found");
      const kept = overtaken && (await request(this.#address()).catch(() => null));
      if (kept) {
        this.#running = null;
        this.#take(kept);
        page.changed(this, { answered: turn });
        return error;
      }
      if (signal.aborted) ending.stopped = true;
      else ending.failure = { message: error.message, hint: error.hint, code: error.code };
    }
    turn.finish(ending);
    turn.siblings = versions();
    const { model } = turn.asked;
    if (turn.foundCode) rememberAnswerTime(effortOf(turn.asked), model, turn.outcome.milliseconds);
    // From here on the server knows which follow-ups need more code; but without a model that
    // understands the others, only a search can answer.
    if (turn.foundCode && model) this.codebase = false;
    this.#running = null;
    page.changed(this, { answered: turn });
    return null;
  }

  /** Has the server end the answer; it tells here that it has. */
  stop() {
    const running = this.#running;
    if (!running) return;
    const send = async () => {
      const { stopped } = await request(this.#address("/stop"), { method: "POST" });
      // The question may still be on its way.
      if (!stopped && this.#running === running && !running.signal.aborted) setTimeout(send, AGAIN);
    };
    send().catch(() => running.abort());
    setTimeout(() => running.abort(), STOPPED_BY);
  }

  /** Goes on with the last turn, whose connection was lost, as the server knows it. */
  async refresh() {
    const last = this.turns.at(-1);
    try {
      const kept = await request(this.#address());
      const index = this.turns.length - 1;
      const there = kept.turns[index]?.id ?? "";
      if (there && (last.id ? there === last.id : !last.siblings.includes(there)))
        this.#take(kept, index);
      else last.id = "";
    } catch (error) {
      if (error.code === "not_found") last.id = ""; // nothing was kept of it
    }
    page.changed(this, {});
  }

  /** The turn in view that the server keeps under `id`, if there is one. */
  turnOf(id) {
    return this.turns.find((turn) => turn.id && turn.id === id);
  }

  /** The turn that the server keeps under `id`, on whichever branch; null when it is gone. */
  async reveal(id) {
    if (!this.turnOf(id) && !this.#running) await this.#choose(id).catch(page.failed);
    return this.turnOf(id) ?? null;
  }

  /** Shows the version `id` of `turn` and what was asked after it. */
  async branch(turn, id, step) {
    if (this.#running) return;
    const at = this.turns.indexOf(turn);
    this.following.set(turn.id, this.turns.length - at - 1);
    try {
      await this.#choose(id, at);
    } catch (error) {
      page.failed(error);
      return;
    }
    const shown = this.turnOf(id);
    page.changed(this, { switched: shown });
    if (!shown) return;
    shown.focusBranches(step);
    announce(`Version ${shown.siblings.indexOf(id) + 1} of ${shown.siblings.length}`);
  }

  async #choose(id, from = 0) {
    this.#take(await request(this.#address("/branch"), { body: { turn: id } }), from);
  }

  /** Takes over what the server keeps; turns before the one at `from` stay as they are. */
  #take(kept, from = 0) {
    for (const turn of this.turns.splice(from)) turn.node.remove();
    for (const one of kept.turns.slice(from)) {
      if (one.id === kept.answering) this.#join(one);
      else this.#append(Turn.restored(one, this));
    }
  }

  /** Reads along what the server is writing, from its beginning on. */
  #join(kept) {
    const turn = Turn.joined(kept, this, page.models.name);
    this.#append(turn);
    this.#write(turn, this.#address("/answer"));
  }

  #address(below = "") {
    return `/api/conversations/${encodeURIComponent(this.id)}${below}${query({ repo: page.repo })}`;
  }

  /** Ids of all versions of `turn`, which became one of `instead`. */
  #versions(turn, instead) {
    if (!instead) return turn.id ? [turn.id] : [];
    const earlier = instead.siblings.length ? instead.siblings : [turn.replaces].filter(Boolean);
    return [...new Set([...earlier, turn.id])].filter(Boolean);
  }

  /** All versions of a turn, as they are kept; with its question only where that was another. */
  async versions({ id, asked }) {
    const { turns } = await request(`${this.#address()}&${new URLSearchParams({ versions: id })}`);
    const shown = turns.map((one) => Turn.restored(one, this));
    for (const { node } of shown.filter((one) => one.asked.text === asked.text))
      node.querySelector(".question").remove();
    return shown.map(({ node }) => node);
  }

  /** Asks the question of `turn` once more, with `changes` to how it was asked, like `{ pin, exclude }`. */
  async again(turn, changes = {}) {
    if (this.#running) return;
    const options = page.composer.answerOptions;
    const asked = {
      ...options,
      ...turn.asked,
      ...page.panel.takeChoice(turn.id),
      hyde: turn.asked.hyde || options.hyde,
      withoutModel: false,
      ...changes,
    };
    // Of an answer that broke off with the server, nothing may be kept but what is in view.
    const lost = turn.outcome.failure?.code === "away" && turn.text.trim() && !turn.id;
    this.ask(asked, lost ? null : turn);
  }

  #append(turn) {
    this.turns.push(turn);
    this.node.append(turn.node);
  }

  /** Puts `turn` in the place of `old` and removes the turns after it: they belong to `old`. */
  #replace(old, turn) {
    const [first, ...later] = this.turns.splice(this.turns.indexOf(old), Infinity, turn);
    this.following.set(first.id, later.length);
    for (const one of later) one.node.remove();
    first.node.replaceWith(turn.node);
  }
}

function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
