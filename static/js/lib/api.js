// Requests to the server: JSON with one shape of error, and the stream of an answer.

export class ServerError extends Error {
  constructor(message, hint = "", code = "") {
    super(message);
    this.hint = hint;
    this.code = code;
  }
}

const AWAY = new ServerError(
  "The server cannot be reached.",
  "Check that it is running, or start it again. Then retry.",
  "away",
);

const BROKEN = new ServerError(
  "The answer broke off.",
  "The connection to the server was lost. The text so far stays here.",
  "away",
);

/** GETs, or POSTs `body`, or does what `method` says; returns the JSON of the reply. */
export async function request(address, options = {}) {
  const response = await send(address, options);
  return response.json();
}

/** Yields `{ text }` and the server's annotations of the answer at `address`, in order. */
export async function* streamAnswer(address, { body, signal }) {
  const response = await send(address, { body, signal });
  for await (const line of lines(response.body)) {
    const value = JSON.parse(line.slice(line.indexOf(":") + 1));
    if (line[0] === "0") yield { text: value };
    else if (line[0] === "8") yield* value;
    else if (line[0] === "d") return;
  }
  throw BROKEN;
}

/**
 * Only the last of several quick calls counts: `run(pause, ...values)` calls `work(signal, ...values)`
 * after `pause` milliseconds in which it is not called again. `cancel()`, and each later call, stops
 * what waits and aborts `signal`.
 */
export function latestOnly(work) {
  let timer = 0;
  let controller = new AbortController();
  const cancel = () => {
    clearTimeout(timer);
    controller.abort();
  };
  const run = (pause, ...values) => {
    cancel();
    controller = new AbortController();
    const { signal } = controller;
    timer = setTimeout(() => work(signal, ...values), pause);
  };
  return { run, cancel };
}

/** `query({ repo: "x" })` → `?repo=x`. */
export const query = (values) => `?${new URLSearchParams(values)}`;

async function send(address, { body, method = body ? "POST" : "GET", signal, keepalive }) {
  let response;
  try {
    const sent = body
      ? { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }
      : {};
    response = await fetch(address, { method, signal, keepalive, ...sent });
  } catch (error) {
    throw error.name === "AbortError" ? error : AWAY;
  }
  if (response.ok) return response;
  if (response.status === 401) location.assign("/login");
  const { error } = await response.json().catch(() => ({}));
  throw new ServerError(error?.message ?? "The server failed.", error?.hint, error?.code);
}

async function* lines(stream) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error) => {
        throw error.name === "AbortError" ? error : BROKEN;
      });
      rest += decoder.decode(value, { stream: !done });
      const parts = rest.split("\n");
      rest = parts.pop();
      yield* parts.filter(Boolean);
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
