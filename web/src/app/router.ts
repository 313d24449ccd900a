import { createElement, useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent } from "react";

/** Where the workbench lives on its server. */
const BASE = "/ui";

/** A place in the workbench: `/runs/12/timeline?chain=4` is `["runs", "12", "timeline"]` with one parameter. */
export interface Place {
  parts: string[];
  query: URLSearchParams;
}

const listeners = new Set<() => void>();
let current = read();

function read(): Place {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : "";
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { parts, query: new URLSearchParams(location.search) };
}

function changed() {
  current = read();
  listeners.forEach((listener) => listener());
}

window.addEventListener("popstate", changed);

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Where the user is. */
export function usePlace(): Place {
  return useSyncExternalStore(subscribe, () => current);
}

/** Goes somewhere: `go("/runs/12")`. */
export function go(to: string, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", BASE + to);
  changed();
}

/** Changes one parameter of the place and leaves the rest; `null` removes it. One may go back only to what was `left`. */
export function setParameter(name: string, value: string | null, { left = false } = {}) {
  const query = new URLSearchParams(location.search);
  if (value === null) query.delete(name);
  else query.set(name, value);
  const text = query.toString();
  history[left ? "pushState" : "replaceState"](null, "", location.pathname + (text ? `?${text}` : ""));
  changed();
}

/** An address that can be opened in another tab. */
export function address(to: string): string {
  return BASE + to;
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
  return createElement("a", { ...rest, href: address(to), onClick: follow });
}
