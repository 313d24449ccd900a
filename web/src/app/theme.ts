import { useSyncExternalStore } from "react";
import { Listeners } from "./listeners";

/** What the user wants; `system` is what the machine says. */
export type Wish = "system" | "light" | "dark";

const KEY = "catena.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Listeners();

function wish(): Wish {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

function actual(): "light" | "dark" {
  const wanted = wish();
  return wanted === "system" ? (dark.matches ? "dark" : "light") : wanted;
}

function apply() {
  document.documentElement.dataset.theme = actual();
  listeners.tell();
}

apply();
dark.addEventListener("change", apply);

/** The theme that is shown. Canvases draw anew when it changes. */
export function useTheme(): "light" | "dark" {
  return useSyncExternalStore(listeners.subscribe, actual);
}

export function useThemeWish(): Wish {
  return useSyncExternalStore(listeners.subscribe, wish);
}

export function setTheme(wanted: Wish) {
  if (wanted === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, wanted);
  apply();
}
