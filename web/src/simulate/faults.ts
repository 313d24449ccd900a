import { Problem } from "../api/client";
import type { Mistake, SimulateRequest } from "../api/types";

/** What the server said was wrong, sorted by where it belongs. */
export interface Faults {
  /** With places in the description of the cluster. */
  cluster: Mistake[];
  /** With places in the file of the workflow. */
  workflow: Mistake[];
  /** Why a policy cannot do this. */
  policies: Map<string, string>;
  /** What belongs nowhere in particular. */
  other: string[];
}

export const NO_FAULTS: Faults = { cluster: [], workflow: [], policies: new Map(), other: [] };

/** Sorts what went wrong: a refusal of the whole request, or lines that came with the results. */
export function sortOut(request: SimulateRequest, problem: Problem | undefined, errors: string[]): Faults {
  const faults: Faults = { cluster: [], workflow: [], policies: new Map(), other: [] };
  const file = "file" in request.workflow ? request.workflow.file : null;
  const hasOwnCluster = request.cluster.includes("\n") || request.cluster.includes(":");

  const place = (mistake: Mistake) => {
    const isOfWorkflow = file !== null && mistake.file === file;
    if (isOfWorkflow || (mistake.line !== undefined && !hasOwnCluster && file !== null)) faults.workflow.push(mistake);
    else if (mistake.line !== undefined && hasOwnCluster) faults.cluster.push(mistake);
    else faults.other.push(mistake.message);
  };

  const read = (text: string) => {
    const policy = request.policies.find((p) => text.includes(`\`${p}\``) || text.includes(`, ${p}: `));
    if (policy !== undefined) {
      faults.policies.set(policy, withoutPlace(text, policy));
      return;
    }
    const mistakes = text.split("\n").filter((line) => line.trim()).map(mistakeOf);
    // What only announces the others says nothing where these are shown.
    const isPlaced = mistakes.some((m) => m.line !== undefined);
    mistakes.filter((m) => !isPlaced || m.line !== undefined || !m.message.endsWith(":")).forEach(place);
  };

  if (problem) {
    const details = mistakesOf(problem.details);
    if (details.length > 0) details.forEach(place);
    else read(problem.message);
  }
  errors.forEach(read);
  return faults;
}

/** `montage:1000, heft: …` says again what is known from where it is shown. */
function withoutPlace(text: string, policy: string): string {
  const prefix = `, ${policy}: `;
  const at = text.indexOf(prefix);
  return at < 0 ? text : text.slice(at + prefix.length);
}

/** A mistake as it is written for people: `file:3:5: …`, `3:5: …`, or only words. */
export function mistakeOf(line: string): Mistake {
  const match = /^(?:(.*?):)?(\d+):(\d+): ?(.*)$/.exec(line.replace(/^error: /, ""));
  if (!match) return { severity: "error", message: line };
  const [, file, at, column, message] = match;
  return { severity: "error", message: message!, file: file || undefined, line: Number(at), column: Number(column) };
}

/** The details of a refusal: mistakes, or lines that are written as such. */
function mistakesOf(details: unknown): Mistake[] {
  if (!Array.isArray(details)) return [];
  return details.flatMap((detail: unknown) => {
    if (typeof detail === "string") return [mistakeOf(detail)];
    const isMistake = typeof detail === "object" && detail !== null && "message" in detail && typeof detail.message === "string";
    return isMistake ? [detail as Mistake] : [];
  });
}

/** Where a mistake is and what it is, in a line. */
export function mistakeWords(mistake: Mistake): string {
  const at = mistake.line === undefined ? "" : `${mistake.line}:${mistake.column ?? 1}: `;
  return at + mistake.message + (mistake.help ? ` (${mistake.help})` : "");
}
