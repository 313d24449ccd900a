import { socketAddress } from "../../api/client";
import { keepInTab } from "../../app/tabStorage";
import type { World } from "./connection";
import type { Pending } from "./outbox";
import type { Memory } from "./room";

/** The world as a browser has it. */
export function browserWorld(composition: string): World {
  return {
    connect(session, ears) {
      const query: Record<string, string> = session ? { session: String(session) } : {};
      const socket = new WebSocket(socketAddress(`/compositions/${encodeURIComponent(composition)}/live`, query));
      socket.onmessage = (message) => ears.text(String(message.data));
      socket.onclose = () => ears.closed();
      return {
        send: (text) => socket.readyState === WebSocket.OPEN && socket.send(text),
        close: () => {
          socket.close();
          // A line that is dead does not say that it is closed.
          ears.closed();
        },
      };
    },
    now: () => Date.now(),
    after(millis, work) {
      const timer = setTimeout(work, millis);
      return () => clearTimeout(timer);
    },
  };
}

/** How long another tab may take to say that it has a session. */
const ANSWER = 80;

/**
 * What this tab remembers of a composition, so that a reload comes back to the same session. A tab that was duplicated has
 * the memory of the other one, which is asked; if it answers, this one begins anew and leaves the unsaved changes to it.
 */
export async function tabMemory(composition: string): Promise<{ memory: Memory; close: () => void }> {
  const key = `catena.compose.${composition}`;
  let session: number | null = null;
  let pending: Pending[] = [];
  try {
    const kept = JSON.parse(sessionStorage.getItem(key) ?? "null") as { session: number; pending: Pending[] } | null;
    if (kept) ({ session, pending } = kept);
  } catch {
    // What cannot be read is as good as nothing.
  }
  const channel = new BroadcastChannel("catena.compose");
  if (session !== null && (await isElsewhere(channel, session))) {
    session = null;
    pending = [];
  }
  channel.onmessage = ({ data }: MessageEvent<{ asks?: number }>) => {
    if (data.asks !== undefined && data.asks === memory.session) channel.postMessage({ has: data.asks });
  };
  const memory: Memory = {
    session,
    pending,
    keep(now, unsaved) {
      memory.session = now;
      keepInTab(key, now === null ? null : JSON.stringify({ session: now, pending: unsaved }));
    },
  };
  return { memory, close: () => channel.close() };
}

function isElsewhere(channel: BroadcastChannel, session: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ANSWER);
    channel.onmessage = ({ data }: MessageEvent<{ has?: number }>) => {
      if (data.has !== session) return;
      clearTimeout(timer);
      resolve(true);
    };
    channel.postMessage({ asks: session });
  });
}
