import type { Problem } from "../api/client";
import type { Mistake } from "../api/types";

/** The mistakes that a refusal tells in its details; its message alone if it tells none. */
export function mistakesOf(problem: Problem): Mistake[] {
  const { details } = problem;
  const told = Array.isArray(details) ? details.filter(isMistake) : [];
  return told.length > 0 ? told : [{ severity: "error", message: problem.message }];
}

function isMistake(it: unknown): it is Mistake {
  if (typeof it !== "object" || it === null) return false;
  const { message, severity, line, column } = it as Partial<Record<keyof Mistake, unknown>>;
  const isPlace = (n: unknown) => n === undefined || (typeof n === "number" && n > 0);
  return typeof message === "string" && (severity === "error" || severity === "warning") && isPlace(line) && isPlace(column);
}

/** Where a mistake is: `line 3, column 7`. */
export function placeWords(mistake: Mistake): string {
  if (mistake.line === undefined) return "";
  return `line ${mistake.line}${mistake.column === undefined ? "" : `, column ${mistake.column}`}`;
}
