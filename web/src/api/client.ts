import { currentToken } from "../app/session";

/** What a server says when it refuses something. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly details?: unknown,
  ) {
    super(message);
  }
}

/** Whatever was thrown, as a problem: with its own words, or with others that say more here. */
export function asProblem(error: unknown, otherwise?: string): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, otherwise ?? (error instanceof Error ? error.message : String(error)));
}

let refused = () => {};

/** Who is told when the server does not take the token any more, with which it has answered so far. */
export function whenTokenRefused(act: () => void) {
  refused = act;
}

export interface Options {
  method?: string;
  /** Sent as JSON, or as it is if it is a text. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Asks the server for something and returns the answer, whatever it contains. Refusals become a `Problem`. */
export async function ask(path: string, options: Options = {}): Promise<Response> {
  const { method = "GET", body, signal } = options;
  const headers = { ...options.headers };
  const token = currentToken();
  if (token) headers["Authorization"] = `Bearer ${token}`;
  const isText = typeof body === "string";
  if (body !== undefined && !headers["Content-Type"]) {
    headers["Content-Type"] = isText ? "application/yaml" : "application/json";
  }
  const sent = body === undefined ? undefined : isText ? body : JSON.stringify(body);
  let response: Response;
  try {
    response = await fetch(path, { method, headers, body: sent, signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, "The server does not answer.");
  }
  if (response.ok) return response;
  // Many requests may be on their way when a token expires; it is told once, and not of one that was left before.
  if (response.status === 401 && token && token === currentToken()) refused();
  const text = await response.text();
  let problem: { error?: string; details?: unknown } = {};
  try {
    problem = JSON.parse(text);
  } catch {
    // Not from Catena; the status has to do.
  }
  throw new Problem(response.status, problem.error ?? `The server answers ${response.status}.`, problem.details);
}

/** Asks for something that is JSON. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await ask(path, { signal })).json();
}

/** Sends something; what comes back is JSON, or nothing. */
export async function send<T = void>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await ask(path, { method, body: body ?? {} });
  const text = await response.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

/** The lines of an answer, as they arrive. */
export async function* lines(path: string, options: Options = {}): AsyncGenerator<string> {
  const response = await ask(path, options);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const all = (rest + value).split("\n");
      rest = all.pop()!;
      yield* all;
    }
    if (rest) yield rest;
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

/** Server-sent events, with a token, which an `EventSource` cannot carry. */
export async function* events<T>(path: string, signal?: AbortSignal): AsyncGenerator<T> {
  for await (const line of lines(path, { signal })) {
    if (line.startsWith("data:")) yield JSON.parse(line.slice(5)) as T;
  }
}

/** The address of a WebSocket. Browsers can carry a token there in the address only. */
export function socketAddress(path: string, query: Record<string, string> = {}): string {
  const token = currentToken();
  const parameters = new URLSearchParams({ ...query, ...(token ? { token } : {}) });
  return `${location.origin.replace(/^http/, "ws")}${path}?${parameters}`;
}
