import { ask, Problem } from "../../api/client";

/** A part of a file, and how large the whole is, where that is known. */
export interface Part {
  bytes: Uint8Array<ArrayBuffer>;
  from: number;
  total: number | null;
}

/** The part `bytes=from-` with at most so many bytes; a negative `from` counts from the end. */
export async function readPart(path: string, from: number, length: number, signal?: AbortSignal): Promise<Part> {
  const range = from < 0 ? `bytes=${from}` : `bytes=${from}-${from + length - 1}`;
  let response: Response;
  try {
    response = await ask(path, { headers: { Range: range }, signal });
  } catch (error) {
    // Nothing is there yet, or nothing more.
    if (error instanceof Problem && error.status === 416) return { bytes: new Uint8Array(), from: Math.max(from, 0), total: null };
    throw error;
  }
  const place = contentRange(response.headers.get("Content-Range"));
  if (response.status === 206 && place) {
    return { bytes: new Uint8Array(await response.arrayBuffer()), from: place.from, total: place.total };
  }
  // A server that knows nothing of parts sends everything; no more is read than was asked for.
  const size = Number(response.headers.get("Content-Length") ?? NaN);
  const total = Number.isFinite(size) ? size : null;
  const skip = from < 0 ? Math.max(0, (total ?? 0) + from) : from;
  return { bytes: await firstBytes(response, skip, length), from: skip, total };
}

/** The numbers in `bytes 0-99/1234`. */
export function contentRange(header: string | null): { from: number; total: number } | null {
  const match = /^bytes (\d+)-\d+\/(\d+)$/.exec(header ?? "");
  return match ? { from: Number(match[1]), total: Number(match[2]) } : null;
}

async function firstBytes(response: Response, skip: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
  const reader = response.body!.getReader();
  const all = new Uint8Array(length);
  let have = 0;
  while (have < length) {
    const { done, value } = await reader.read();
    if (done) break;
    const wanted = value.subarray(Math.min(skip, value.length)).subarray(0, length - have);
    skip = Math.max(0, skip - value.length);
    all.set(wanted, have);
    have += wanted.length;
  }
  void reader.cancel().catch(() => undefined);
  return all.slice(0, have);
}
