import { count, shortName } from "../../ui/format";
import { endText, nameOf } from "./read";
import type { Change, Composition, Construct } from "./types";

/** A change in words. Names are those that the composition has now. */
export function changeWords(composition: Composition, change: Change): string {
  const name = (id: string) => `“${nameOf(composition, id)}”`;
  switch (change.change) {
    case "set-settings":
      return "changed the settings";
    case "add-workflow":
      return `made the workflow “${change.workflow.name || change.id}”`;
    case "remove-workflow":
      return `removed the workflow “${change.id}”`;
    case "set-about":
      return `described ${name(change.workflow)}`;
    case "set-interface":
      return `changed the ports of ${name(change.workflow)}`;
    case "set-task":
      return `changed the task of ${name(change.workflow)}`;
    case "set-construct":
      return `changed the ${change.construct.construct} of ${name(change.workflow)}`;
    case "set-body":
      return `changed what ${name(change.workflow)} consists of`;
    case "add-node":
      return `added “${change.node.label || change.id}” to ${name(change.workflow)}`;
    case "remove-node":
      return `removed “${change.id}” from ${name(change.workflow)}`;
    case "set-node":
      return `changed “${change.label || change.id}” in ${name(change.workflow)}`;
    case "move-node":
      return `moved “${change.id}” in ${name(change.workflow)}`;
    case "add-link":
      return `linked ${endText(change.link.from)} to ${endText(change.link.to)} in ${name(change.workflow)}`;
    case "remove-link":
      return `removed the link “${change.id}” in ${name(change.workflow)}`;
    case "replace":
      return "replaced everything";
  }
}

/** An operation in words: what matters most, and how much more there was. */
export function operationWords(composition: Composition, changes: Change[], note = ""): string {
  const weight: Change["change"][] = ["replace", "add-workflow", "add-node", "remove-node", "set-body", "set-interface", "set-construct"];
  const [first, ...rest] = [...changes].sort((a, b) => rank(weight, a) - rank(weight, b));
  if (!first) return note;
  const words = changeWords(composition, first) + (rest.length > 0 ? `, and ${count(rest.length, "more change")}` : "");
  const told = /^(undo|redo) (\d+)$/.exec(note);
  if (told) return `${told[1] === "undo" ? "took back" : "did again"} ${told[2]}: ${words}`;
  return note === "imported" || note.startsWith("back to") ? `${words} (${note})` : words;
}

function rank(weight: Change["change"][], change: Change): number {
  const at = weight.indexOf(change.change);
  return at < 0 ? weight.length : at;
}

/** What a part is or should be, as a text to be compared. */
export function contentText(change: Change | null): string {
  if (!change) return "It is not there any more.";
  switch (change.change) {
    case "set-about":
      return `${change.name}\n\n${change.description}`.trim();
    case "set-task": {
      const { run } = change.task.action;
      return typeof run === "string" && Object.keys(change.task.action).length === 1 ? run : JSON.stringify(change.task, null, 2);
    }
    case "set-node":
      return `label: ${change.label || "none"}\nafter: ${change.after.join(", ") || "nothing"}`;
    case "set-interface":
      return [...change.interface.inputs.map((p) => `takes ${p.id} (${p.name}): ${p.type}`), ...change.interface.outputs.map((p) => `gives ${p.id} (${p.name}): ${p.type}`)].join("\n");
    case "set-construct":
      return JSON.stringify(change.construct, null, 2);
    case "set-settings":
      return `name: ${change.name}\nvalues: ${JSON.stringify(change.values, null, 2)}`;
    default: {
      const { change: _, ...rest } = change;
      return JSON.stringify(rest, null, 2);
    }
  }
}

/** A value as it is typed, and back. Texts are typed as they are, everything else as JSON. */
export function valueText(value: unknown, type: string): string {
  if (value === undefined) return "";
  return typeof value === "string" && (isText(type) || !looksLikeJson(value)) ? value : JSON.stringify(value);
}

export function readValue(text: string, type: string): unknown {
  if (isText(type)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function isText(type: string): boolean {
  return type === "string" || type === "file" || type === "directory";
}

function looksLikeJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A message of the server, with names between quotes instead of marks for plain texts, and with users as people call them. */
export function plain(message: string, users: string[] = []): string {
  const short = users.reduce((text, user) => text.replaceAll(user, shortName(user)), message);
  return short.replace(/\*([^*\n]+)\*|`([^`\n]+)`/g, (_, a?: string, b?: string) => `“${a ?? b}”`);
}

/** What a construct does to a workflow, in a few signs. */
export function constructWords(how: Construct): { sign: string; words: string } {
  switch (how.construct) {
    case "map":
      return { sign: "map ×N", words: `for each ${how.over?.length ? how.over.join(", ") : "element"}` };
    case "reduce":
      return { sign: "reduce →", words: `from left to right: ${how.carry} carries, ${how.element} is next` };
    case "tree":
      return { sign: "tree ⋏", words: `pairs ${how.left}, ${how.right}` };
    case "conditional":
      return { sign: `? ${how.when}`, words: how.else ? `if ${how.when}, else ${how.else}` : `only if ${how.when}` };
    case "loop":
      return { sign: `loop ↻ ≤${how.max}`, words: `while ${how.while}, at most ${how.max} times` };
    case "curry": {
      const fixed = Object.entries(how.with).map(([port, value]) => `${port} = ${JSON.stringify(value)}`);
      return { sign: `curry ${fixed.join(", ")}`, words: fixed.length ? `with ${fixed.join(", ")}` : "nothing fixed yet" };
    }
  }
}
