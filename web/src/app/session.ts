import { useSyncExternalStore } from "react";
import type { WhoAmI } from "../api/types";
import { Listeners } from "./listeners";

const KEY = "catena.token";

/** A token that came with the address, as `catena serve --open` writes it, is taken and not shown any longer. */
function fromAddress(): string | null {
  const match = /^#token=([\w-]+)$/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, "", location.pathname + location.search);
  return match[1]!;
}

let token = fromAddress() ?? sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);
if (token) sessionStorage.setItem(KEY, token);

let me: WhoAmI | null = null;
const listeners = new Listeners();

/** The token requests carry, if there is one. */
export function currentToken(): string | null {
  return token;
}

/** Who uses the workbench; `null` before that is known, or if nobody has signed in. */
export function useMe(): WhoAmI | null {
  return useSyncExternalStore(listeners.subscribe, () => me);
}

/** Notes who uses the workbench. */
export function signedIn(who: WhoAmI, as: string | null, remember: boolean) {
  me = who;
  token = as;
  if (as) {
    sessionStorage.setItem(KEY, as);
    if (remember) localStorage.setItem(KEY, as);
  }
  listeners.tell();
}

/** Forgets the token. */
export function signOut() {
  me = null;
  token = null;
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
  listeners.tell();
}

/** Whether a user may do what needs this role. */
export function may(who: WhoAmI | null, needed: "viewer" | "editor" | "operator"): boolean {
  const order = ["viewer", "editor", "operator"];
  return who !== null && order.indexOf(who.role) >= order.indexOf(needed);
}
