import type { Change, Composition } from "./types";

/** The parts that changes make or change. The server says this to others only. */
export function touched(changes: Change[], after: Composition): string[] {
  const units = new Set<string>();
  for (const c of changes) {
    switch (c.change) {
      case "set-settings":
        units.add("settings");
        break;
      case "add-workflow":
      case "remove-workflow":
        units.add(`workflows/${c.id}`);
        break;
      case "set-about":
        units.add(`workflows/${c.workflow}/about`);
        break;
      case "set-interface":
        units.add(`workflows/${c.workflow}/interface`);
        break;
      case "set-task":
        units.add(`workflows/${c.workflow}/task`);
        break;
      case "set-construct":
        units.add(`workflows/${c.workflow}/construct/how`);
        break;
      case "set-node":
        units.add(`workflows/${c.workflow}/nodes/${c.id}/properties`);
        break;
      case "add-node":
      case "remove-node":
        units.add(`workflows/${c.workflow}/nodes/${c.id}`);
        break;
      case "add-link":
      case "remove-link":
        units.add(`workflows/${c.workflow}/links/${c.id}`);
        break;
      case "set-body":
        units.add(`workflows/${c.workflow}`);
        for (const unit of allParts(after)) if (unit.startsWith(`workflows/${c.workflow}/`)) units.add(unit);
        break;
      case "replace":
        for (const unit of allParts(after)) units.add(unit);
        break;
      case "move-node":
        break;
    }
  }
  return [...units];
}

function allParts(composition: Composition): string[] {
  const parts = ["settings"];
  for (const [id, { body }] of Object.entries(composition.workflows)) {
    const whole = `workflows/${id}`;
    parts.push(whole, `${whole}/about`);
    if (body.kind === "construct") parts.push(`${whole}/construct`, `${whole}/construct/how`);
    else parts.push(`${whole}/interface`);
    if (body.kind === "task") parts.push(`${whole}/task`);
    if (body.kind !== "graph") continue;
    for (const node of Object.keys(body.nodes)) parts.push(`${whole}/nodes/${node}`, `${whole}/nodes/${node}/properties`);
    for (const link of Object.keys(body.links)) parts.push(`${whole}/links/${link}`);
  }
  return parts;
}
