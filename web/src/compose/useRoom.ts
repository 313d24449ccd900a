import { useEffect, useState, useSyncExternalStore } from "react";
import { keepInTab } from "../app/tabStorage";
import { Desk, type Drawer } from "./live/desk";
import { Room, type Notice, type View } from "./live/room";
import { browserWorld, tabMemory } from "./live/window";

interface Joined {
  room: Room;
  desk: Desk;
}

/** Comes to a composition when the page is opened, and goes when it is left. */
export function useRoom(id: string, notice: (joined: Joined, notice: Notice) => void): Joined | null {
  const [joined, setJoined] = useState<Joined | null>(null);
  useEffect(() => {
    let isGone = false;
    let leave = () => {
      isGone = true;
    };
    void tabMemory(id).then(({ memory, close }) => {
      if (isGone) return close();
      const room: Room = new Room(browserWorld(id), memory, (n) => notice(made, n));
      const desk = new Desk(room, drawer(id), () => Date.now());
      const made = { room, desk };
      leave = () => {
        desk.close();
        room.leave();
        close();
      };
      setJoined(made);
    });
    return () => leave();
    // Whoever hears notices does not change who comes and goes.
  }, [id]);
  return joined;
}

/** Everything there is to see, once there is something. */
export function useView(joined: Joined | null): View | null {
  return useSyncExternalStore(joined?.room.subscribe ?? nothing, () => joined?.room.view ?? null);
}

function nothing() {
  return () => undefined;
}

/** Drafts are kept by the tab. */
function drawer(id: string): Drawer {
  const key = `catena.drafts.${id}`;
  return {
    load() {
      try {
        return JSON.parse(sessionStorage.getItem(key) ?? "{}") as ReturnType<Drawer["load"]>;
      } catch {
        return {};
      }
    },
    keep(drafts) {
      keepInTab(key, Object.keys(drafts).length > 0 ? JSON.stringify(drafts) : null);
    },
  };
}
