// One conversation: its turns, and the answer that is being written. It goes on writing
// while another conversation is in view.

import { ServerError, ask, query, request } from "./api.js";
import { announce, element } from "./dom.js";
import { Turn } from "./turn.js";

const TAG = /(?<!\w)@codebase\b/i;
const LEADING_TAG = /^@codebase\s+(?=\S)/i;
const LOOKS = 4; // how often a stopped answer is looked for before it counts as not kept
const PAUSE = 150;

export class Conversation {
  node = element("div", { class: "turns" });
  turns = [];
  carries = 0; // tokens that a follow-up without @codebase would send
  grounded = false; // code was found in it, which a follow-up goes on from
  codebase = true; // whether the next question is to be searched for
  #repo;
  #hooks;
  #running = null; // the AbortController of the answer that is being written

  /**
   * `hooks`: `changed(conversation)` after each step, `context(id, opener)`, `edit(turn)`,
   * `model()` the name of the model in use or "", `hyde()` what is chosen of it, `chooseModel()`.
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
    conversation.carries = kept.carries;
    conversation.grounded = kept.context;
    conversation.codebase = !(kept.context && kept.turns.at(-1)?.model);
    for (const turn of kept.turns) conversation.#append(Turn.restored(turn, conversation.#turnHooks()));
    return conversation;
  }

  get running() {
    return this.#running !== null;
  }

  /** Asks `{ text, codebase, rerank, hyde, withoutModel }`; `instead` is the turn that it replaces. */
  async ask(given, instead = null) {
    if (this.#running) return;
    const tagged = TAG.test(given.text);
    const asked = tagged ? { ...given, text: given.text.replace(LEADING_TAG, ""), codebase: true } : given;
    const controller = new AbortController();
    this.#running = controller;
    const model = asked.withoutModel ? "" : this.#hooks.model();
    const turn = new Turn({ ...asked, model }, this.#turnHooks());
    turn.node.id = `turn-${newId()}`;
    const replaces = instead ? this.#idOf(instead) : Promise.resolve("");
    if (instead) this.#replace(instead, turn);
    else this.#append(turn);
    this.title ||= asked.text.replace(/\s+/g, " ").slice(0, 80);
    this.#hooks.changed(this, { asked: turn });
    announce("Looking for an answer");

    const ending = {};
    try {
      const body = {
        question: asked.codebase && !TAG.test(asked.text) ? `@codebase ${asked.text}` : asked.text,
        rerank: asked.rerank,
        // Without a model nothing can be drafted, and nobody asked for it.
        hyde: model || asked.hyde === "off" ? asked.hyde : "",
        conversation: this.id,
        repo: this.#repo,
        render: true,
        replaces: turn.replaces = await replaces,
        without_model: Boolean(asked.withoutModel),
      };
      for await (const event of ask(body, controller.signal)) {
        if (controller.signal.aborted) break;
        turn.take(event);
      }
      ending.stopped = controller.signal.aborted;
    } catch (error) {
      if (controller.signal.aborted) ending.stopped = true;
      else ending.failure = { message: error.message, hint: error.hint, code: error.code };
    }
    turn.finish(ending);
    this.carries = turn.outcome.carries ?? this.carries;
    if (turn.foundCode) {
      this.grounded = true;
      // Searched for anew, the few words of a follow-up find little; but without a model that
      // understands them, only a search can answer.
      if (model) this.codebase = false;
    }
    this.#running = null;
    this.#hooks.changed(this, { answered: turn });
  }

  stop() {
    this.#running?.abort();
  }

  #turnHooks() {
    return {
      again: (turn, changes = {}) => this.#again(turn, changes),
      context: async (turn, opener) => this.#hooks.context(await this.#idOf(turn), opener),
      edit: (turn) => this.#hooks.edit(turn),
      rate: (turn, value, reason) => this.#rate(turn, value, reason),
      model: this.#hooks.model,
      chooseModel: this.#hooks.chooseModel,
    };
  }

  #again(turn, changes) {
    if (this.#running) return;
    const hyde = turn.asked.hyde || this.#hooks.hyde();
    const asked = { ...turn.asked, hyde, withoutModel: false, ...changes };
    this.ask(asked, turn.last ? turn : null);
  }

  /** Keeps a thumb for an answer. Throws what the server says. */
  async #rate(turn, value, reason) {
    await this.#idOf(turn);
    if (!turn.id) throw new ServerError("Nothing was kept of this answer.", "Ask again, then say what you think of it.");
    await request(`/api/turns/${encodeURIComponent(turn.id)}/feedback${query({ repo: this.#repo })}`, { body: { value, reason } });
  }

  /** What the server keeps `turn` under. Of one that broke off the page was never told. */
  async #idOf(turn) {
    const untold = turn.outcome.stopped || turn.outcome.failure?.code === "away";
    for (let look = 0; !turn.id && untold && look < LOOKS; look += 1) {
      if (look) await new Promise((resolve) => { setTimeout(resolve, PAUSE); });
      const known = new Set(this.turns.map(({ id }) => id));
      const kept = await this.#kept().catch(() => []);
      turn.id = kept.findLast(({ id, finished }) => !finished && !known.has(id))?.id ?? "";
    }
    // Of what was never kept, the one that it should have replaced is still there.
    return turn.id || turn.replaces || "";
  }

  /** The turns that the server keeps; none while it does not know the conversation yet. */
  async #kept() {
    const { conversations } = await request(`/api/conversations${query({ repo: this.#repo })}`);
    if (!conversations.some(({ id }) => id === this.id)) return [];
    return (await request(`/api/conversations/${encodeURIComponent(this.id)}${query({ repo: this.#repo })}`)).turns;
  }

  #append(turn) {
    for (const earlier of this.turns) earlier.last = false;
    this.turns.push(turn);
    this.node.append(turn.node);
  }

  #replace(old, turn) {
    this.turns[this.turns.indexOf(old)] = turn;
    old.node.replaceWith(turn.node);
  }
}

export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
