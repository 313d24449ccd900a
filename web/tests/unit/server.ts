export interface Asked {
  path: string;
  method: string;
  headers: Record<string, string>;
  body: unknown;
}

/** Lets the server answer as `of` says, and returns what it is asked. */
export function serving(of: (asked: Asked, signal: AbortSignal | null) => Response | Promise<Response>): Asked[] {
  const all: Asked[] = [];
  globalThis.fetch = async (path, init) => {
    const asked = { path: String(path), method: init?.method ?? "", headers: init?.headers as Record<string, string>, body: init?.body };
    all.push(asked);
    return of(asked, init?.signal ?? null);
  };
  return all;
}

/** An answer that arrives in these pieces. */
export function answer(status: number, pieces: string[], headers: Record<string, string> = {}): Response {
  const left = pieces.map((piece) => new TextEncoder().encode(piece));
  const body = new ReadableStream({
    pull(controller) {
      const next = left.shift();
      if (next) controller.enqueue(next);
      else controller.close();
    },
  });
  return new Response(body, { status, headers });
}
