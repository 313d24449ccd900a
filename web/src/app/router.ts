import { createElement, useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent } from "react";
import { Listeners } from "./listeners";

/** Where the workbench lives on its server. */
const BASE = "/ui";

/** A place in the workbench: `/runs/12/timeline?chain=4` is `["runs", "12", "timeline"]` with one parameter. */
export interface Place {
  parts: string[];
  query: URLSearchParams;
}

const listeners = new Listeners();
let current = read();

function read(): Place {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : "";
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { parts, query: new URLSearchParams(location.search) };
}

/** Addresses are also written by hand: what is not encoded well stays as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function changed() {
  current = read();
  listeners.tell();
}

window.addEventListener("popstate", changed);

/** Where the user is. */
export function usePlace(): Place {
  return useSyncExternalStore(listeners.subscribe, () => current);
}

/** Goes somewhere: `go("/runs/12")`. */
export function go(to: string, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", BASE + to);
  changed();
}

/** Changes one parameter of the place and leaves the rest; `null` removes it. Only what was `left` can be gone back to. */
export function setParameter(name: string, value: string | null, { left = false } = {}) {
  const query = new URLSearchParams(location.search);
  if (value === null) query.delete(name);
  else query.set(name, value);
  const text = query.toString();
  history[left ? "pushState" : "replaceState"](null, "", location.pathname + (text ? `?${text}` : ""));
  changed();
}

/** A link within the workbench. */
export function Link({ to, ...rest }: { to: string } & AnchorHTMLAttributes<HTMLAnchorElement>) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    rest.onClick?.(event);
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !plain) return;
    event.preventDefault();
    go(to);
  };
  return createElement("a", { ...rest, href: BASE + to, onClick: follow });
}
