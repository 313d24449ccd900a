import { useId, useMemo, useState } from "react";
import { Button } from "../../ui/parts";
import { addLink } from "../model/edit";
import { endText, graphOf, interfaceOf, linkProblem } from "../model/read";
import type { Composition, End } from "../model/types";
import { useStudio } from "../studio";
import styles from "../compose.module.css";

interface Choice {
  from: End;
  to: End;
}

/** Links without a mouse: which port goes where. All links of a node, or of the workflow itself. */
export function ConnectForm({ workflow, node }: { workflow: string; node?: string }) {
  const { view, frozen, act, select } = useStudio();
  const { composition } = view;
  const [chosen, setChosen] = useState("");
  const id = useId();
  const graph = graphOf(composition, workflow);
  const choices = useMemo(() => choicesFor(composition, workflow, node), [composition, workflow, node]);
  if (!graph) return null;
  const words = (c: Choice) => `${endText(c.from)} → ${endText(c.to)}`;
  const existing = Object.entries(graph.links).filter(([, l]) => l.from.node === node || l.to.node === node);
  const connect = () => {
    const choice = choices.find((c) => words(c) === chosen);
    if (choice) void act([addLink(composition, workflow, choice.from, choice.to)], "linked");
    setChosen("");
  };
  return (
    <div className={styles.part} role="group" aria-labelledby={id}>
      <div className={styles.partTitle} id={id}>
        Links
      </div>
      <ul className={styles.links}>
        {existing.map(([link, { from, to }]) => (
          <li key={link}>
            <button type="button" className={styles.linkWords} onClick={() => select({ nodes: [], links: [link] })}>
              {endText(from)} → {endText(to)}
            </button>
            <Button look="quiet" aria-label={`Remove the link ${link}`} disabled={frozen !== null} onClick={() => void act([{ change: "remove-link", workflow, id: link }], "removed")}>
              ✕
            </Button>
          </li>
        ))}
      </ul>
      <div className={styles.connect}>
        <label className="visually-hidden" htmlFor={`${id}c`}>
          Connect to
        </label>
        <select id={`${id}c`} value={chosen} disabled={frozen !== null || choices.length === 0} onChange={(e) => setChosen(e.target.value)}>
          <option value="">{choices.length === 0 ? "Nothing that fits is free" : "Connect to …"}</option>
          {choices.map((c) => (
            <option key={words(c)}>{words(c)}</option>
          ))}
        </select>
        <Button disabled={frozen !== null || chosen === ""} onClick={connect}>
          Connect
        </Button>
      </div>
    </div>
  );
}

/** All links there could be at a node, or at the ports of the workflow. */
function choicesFor(composition: Composition, workflow: string, node?: string): Choice[] {
  const graph = graphOf(composition, workflow);
  if (!graph) return [];
  const own = interfaceOf(composition, workflow);
  const sources: End[] = own.inputs.map((p) => ({ port: p.id }));
  const targets: End[] = own.outputs.map((p) => ({ port: p.id }));
  for (const [id, n] of Object.entries(graph.nodes)) {
    const ports = interfaceOf(composition, n.workflow);
    sources.push(...ports.outputs.map((p) => ({ node: id, port: p.id })));
    targets.push(...ports.inputs.map((p) => ({ node: id, port: p.id })));
  }
  const taken = new Set(Object.values(graph.links).map((l) => endText(l.to)));
  const free = targets.filter((t) => !taken.has(endText(t)));
  const choices: Choice[] = [];
  for (const from of sources) {
    for (const to of free) {
      if (from.node !== node && to.node !== node) continue;
      if (linkProblem(composition, workflow, from, to) === null) choices.push({ from, to });
    }
  }
  return choices;
}
