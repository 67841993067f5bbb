// One conversation: its turns, and the answer that is being written. It goes on writing
// while another conversation is in view.

import { breather } from "../answer/streaming.js";
import { Turn } from "../answer/turn.js";
import { effortOf, rememberAnswerTime } from "../composer/answer_options.js";
import { query, request, ServerError, sleep, streamAnswer } from "../lib/api.js";
import { announce, element } from "../lib/dom.js";

const TAG = /(?<!\w)@codebase\b/i;
const LEADING_TAG = /^@codebase\s+(?=\S)/i;
const LOOKS = 4; // how often a stopped answer is looked for before it counts as not kept
const PAUSE = 150; // milliseconds between two looks

export class Conversation {
  node = element("div.turns");
  turns = [];
  carries = 0; // tokens that a follow-up without @codebase would send
  grounded = false; // code was found in it, which a follow-up goes on from
  codebase = true; // whether the next question is to be searched for
  #repo;
  #hooks;
  #running = null; // the AbortController of the answer that is being written

  /**
   * `hooks`: `changed(conversation)` after each step, `context(id, opener)`, `edit(turn)`,
   * `ask(text)`, `model()` the name of the model in use or "", `answerOptions()` how to answer,
   * `chooseModel()`, `failed(error)`.
   */
  constructor(repo, id, hooks, title = "") {
    this.#repo = repo;
    this.#hooks = hooks;
    this.id = id;
    this.title = title;
  }

  /** Reads a conversation from the server. Throws what the server says. */
  static async open(repo, id, hooks) {
    const kept = await request(`/api/conversations/${encodeURIComponent(id)}${query({ repo })}`);
    const conversation = new Conversation(repo, id, hooks, kept.title);
    conversation.codebase = !(kept.context && kept.turns.at(-1)?.model);
    conversation.#take(kept);
    return conversation;
  }

  get running() {
    return this.#running !== null;
  }

  /**
   * Asks `{ text, codebase, effort, rerank, hyde, retrieval, strict, withoutModel, pin, exclude }`;
   * `instead` is the turn that it becomes another version of.
   */
  async ask(given, instead = null) {
    if (this.#running) return;
    const tagged = TAG.test(given.text);
    const asked = tagged
      ? { ...given, text: given.text.replace(LEADING_TAG, ""), codebase: true }
      : given;
    const controller = new AbortController();
    this.#running = controller;
    const model = asked.withoutModel ? "" : this.#hooks.model();
    const turn = new Turn({ ...asked, model }, this.#turnHooks());
    turn.node.id = `turn-${newId()}`;
    const replaces = instead ? this.#idOf(instead) : Promise.resolve("");
    const after = instead ? Promise.resolve("") : this.#leaf();
    if (instead) this.#replace(instead, turn);
    else this.#append(turn);
    this.title ||= asked.text.replace(/\s+/g, " ").slice(0, 80);
    this.#hooks.changed(this, { asked: turn });
    announce("Looking for an answer");

    const ending = {};
    try {
      const body = {
        question: asked.codebase && !TAG.test(asked.text) ? `@codebase ${asked.text}` : asked.text,
        effort: asked.effort ?? "",
        rerank: Boolean(asked.rerank),
        // Without a model nothing can be drafted, and nobody asked for it.
        hyde: model || asked.hyde === "off" ? asked.hyde : "",
        conversation: this.id,
        repo: this.#repo,
        render: true,
        tag_is_default: Boolean(asked.codebase && asked.untouched && !tagged),
        replaces: (turn.replaces = await replaces),
        after: await after,
        without_model: Boolean(asked.withoutModel),
        retrieval: asked.retrieval || "auto",
        strict: Boolean(asked.strict),
        pin: asked.pin ?? [],
        exclude: asked.exclude ?? [],
      };
      const breathe = breather();
      for await (const event of streamAnswer(body, controller.signal)) {
        if (controller.signal.aborted) break;
        turn.take(event);
        await breathe();
      }
      ending.stopped = controller.signal.aborted;
    } catch (error) {
      if (controller.signal.aborted) ending.stopped = true;
      else ending.failure = { message: error.message, hint: error.hint, code: error.code };
    }
    turn.finish(ending);
    turn.siblings = this.#versions(turn, instead);
    if (turn.foundCode) rememberAnswerTime(effortOf(asked), model, turn.outcome.milliseconds);
    this.carries = turn.outcome.carries ?? this.carries;
    if (turn.foundCode) {
      this.grounded = true;
      // From here on the server knows which follow-ups need more code; but without a model that
      // understands the others, only a search can answer.
      if (model) this.codebase = false;
    }
    this.#running = null;
    this.#hooks.changed(this, { answered: turn });
  }

  stop() {
    this.#running?.abort();
  }

  /** The turn in view that the server keeps under `id`, if there is one. */
  turnOf(id) {
    return this.turns.find((turn) => turn.id && turn.id === id);
  }

  /** The turn that the server keeps under `id`, on whichever branch; null when it is gone. */
  async reveal(id) {
    if (!this.turnOf(id) && !this.#running) await this.#choose(id).catch(this.#hooks.failed);
    return this.turnOf(id) ?? null;
  }

  /** Shows the version `id` of `turn` and what was asked after it. */
  async #branch(turn, id, step) {
    if (this.#running) return;
    try {
      await this.#choose(id, this.turns.indexOf(turn));
    } catch (error) {
      this.#hooks.failed(error);
      return;
    }
    const shown = this.turnOf(id);
    this.#hooks.changed(this, { switched: shown });
    if (!shown) return;
    shown.focusBranches(step);
    announce(`Version ${shown.siblings.indexOf(id) + 1} of ${shown.siblings.length}`);
  }

  async #choose(id, from = 0) {
    this.#take(
      await request(`${this.#address}/branch${query({ repo: this.#repo })}`, {
        body: { turn: id },
      }),
      from,
    );
  }

  /** Takes over what the server keeps; turns before the one at `from` stay as they are. */
  #take(kept, from = 0) {
    this.carries = kept.carries;
    this.grounded = kept.context;
    for (const turn of this.turns.splice(from)) turn.node.remove();
    for (const turn of kept.turns.slice(from)) this.#append(Turn.restored(turn, this.#turnHooks()));
  }

  get #address() {
    return `/api/conversations/${encodeURIComponent(this.id)}`;
  }

  /** Ids of all versions of `turn`, which became one of `instead`. */
  #versions(turn, instead) {
    if (!instead) return turn.id ? [turn.id] : [];
    const earlier = instead.siblings.length ? instead.siblings : [turn.replaces].filter(Boolean);
    return [...new Set([...earlier, turn.id])].filter(Boolean);
  }

  /** What the next question follows: the last turn in view that is kept. */
  async #leaf() {
    const last = this.turns.at(-1);
    if (!last) return "";
    const id = await this.#ownId(last);
    if (id || last.outcome.stopped) return id;
    return this.turns.findLast((turn) => turn.id)?.id ?? "";
  }

  #turnHooks() {
    return {
      again: (turn, changes) => this.again(turn, changes),
      context: async (turn, opener) => this.#hooks.context(await this.#idOf(turn), opener),
      edit: (turn) => this.#hooks.edit(turn),
      ask: (text) => {
        if (!this.#running) this.#hooks.ask(text);
      },
      branch: (turn, id, step) => this.#branch(turn, id, step),
      rate: (turn, value, reason) => this.#rate(turn, value, reason),
      model: this.#hooks.model,
      chooseModel: this.#hooks.chooseModel,
    };
  }

  /** Asks the question of `turn` once more, with `changes` to how it was asked, like `{ pin, exclude }`. */
  async again(turn, changes = {}) {
    if (this.#running) return;
    const options = this.#hooks.answerOptions();
    const asked = {
      ...options,
      ...turn.asked,
      hyde: turn.asked.hyde || options.hyde,
      withoutModel: false,
      ...changes,
    };
    // Of an answer that broke off with the server, nothing may be kept but what is in view.
    const broke =
      turn.outcome.failure?.code === "away" && turn.text.trim() && !(await this.#ownId(turn));
    this.ask(asked, broke ? null : turn);
  }

  /** Keeps a thumb for an answer. Throws what the server says. */
  async #rate(turn, value, reason) {
    await this.#idOf(turn);
    if (!turn.id)
      throw new ServerError(
        "Nothing was kept of this answer.",
        "Ask again, then say what you think of it.",
      );
    await request(
      `/api/turns/${encodeURIComponent(turn.id)}/feedback${query({ repo: this.#repo })}`,
      { body: { value, reason } },
    );
  }

  /** The server's id of `turn`; if it was never kept, that of the version before it. */
  async #idOf(turn) {
    return (await this.#ownId(turn)) || turn.replaces || "";
  }

  /** The same for `turn` itself. The page is never told the id of one that broke off: it looks it up. */
  async #ownId(turn) {
    const brokeOff = turn.outcome.stopped || turn.outcome.failure?.code === "away";
    if (!brokeOff) return turn.id;
    for (let look = 0; !turn.id && look < LOOKS; look += 1) {
      if (look) await sleep(PAUSE);
      const known = new Set(this.turns.map(({ id }) => id));
      const kept = await this.#kept().catch(() => []);
      turn.id = kept.findLast(({ id, finished }) => !finished && !known.has(id))?.id ?? "";
    }
    return turn.id;
  }

  /** The turns that the server keeps; none while it does not know the conversation yet. */
  async #kept() {
    const { conversations } = await request(`/api/conversations${query({ repo: this.#repo })}`);
    if (!conversations.some(({ id }) => id === this.id)) return [];
    return (await request(this.#address + query({ repo: this.#repo }))).turns;
  }

  #append(turn) {
    this.turns.push(turn);
    this.node.append(turn.node);
  }

  /** Puts `turn` in the place of `old` and removes the turns after it: they belong to `old`. */
  #replace(old, turn) {
    const [first, ...later] = this.turns.splice(this.turns.indexOf(old), Infinity, turn);
    for (const one of later) one.node.remove();
    first.node.replaceWith(turn.node);
  }
}

export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
