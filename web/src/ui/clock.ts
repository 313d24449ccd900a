import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let now = Date.now();

function tick() {
  now = Date.now();
  listeners.forEach((listener) => listener());
}

/** One clock for all, which stands still while nobody needs it or looks at it. */
function wind() {
  clearInterval(timer);
  timer = undefined;
  if (listeners.size === 0 || document.hidden) return;
  timer = setInterval(tick, 1000);
}

function seen() {
  if (!document.hidden) tick();
  wind();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  if (listeners.size === 1) {
    document.addEventListener("visibilitychange", seen);
    now = Date.now();
    wind();
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    document.removeEventListener("visibilitychange", seen);
    wind();
  };
}

/** As it was at the last second, so that all see the same; what stood still is set first. */
function current(): number {
  if (timer === undefined && Math.abs(Date.now() - now) >= 1000) now = Date.now();
  return now;
}

const still = () => () => undefined;

const never = () => 0;

/** The time, again every second while somebody needs it; 0 if nobody does. */
export function useNow(isNeeded: boolean): number {
  return useSyncExternalStore(isNeeded ? subscribe : still, isNeeded ? current : never);
}
