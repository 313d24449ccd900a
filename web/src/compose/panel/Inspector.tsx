import { Button } from "../../ui/parts";
import { count } from "../../ui/format";
import { graphOf, nameOf, uses, workflowOf } from "../model/read";
import type { Step } from "../model/place";
import { removeParts } from "../model/edit";
import { NOTHING, useStudio } from "../studio";
import { AboutForm, NodeForm, SettingsForm } from "./forms";
import { ConnectForm } from "./ConnectForm";
import { ConstructForm } from "./ConstructForm";
import { LinkPanel } from "./LinkPanel";
import { PortsForm } from "./PortsForm";
import { TaskForm } from "./TaskForm";
import { UsePanel } from "./UsePanel";
import styles from "../compose.module.css";

/** What is selected, to be looked at and changed. */
export function Inspector() {
  const { view, trail, selection, frozen, act, select } = useStudio();
  const { composition } = view;
  const workflow = trail.at(-1)!.workflow;
  const graph = graphOf(composition, workflow);
  const nodes = selection.nodes.filter((n) => graph && Object.hasOwn(graph.nodes, n));
  const links = selection.links.filter((l) => graph && Object.hasOwn(graph.links, l));
  const [node] = nodes;
  const [link] = links;

  if (nodes.length + links.length > 1) {
    const remove = async () => {
      if (await act(removeParts(composition, workflow, nodes, links), "removed")) select(NOTHING);
    };
    return (
      <div className={styles.panelBody}>
        <h2>
          {[nodes.length > 0 && count(nodes.length, "node"), links.length > 0 && count(links.length, "link")].filter(Boolean).join(" and ")}
        </h2>
        <Button look="danger" disabled={frozen !== null} onClick={() => void remove()}>
          Remove them
        </Button>
      </div>
    );
  }
  if (link !== undefined) return <LinkPanel workflow={workflow} link={link} />;
  if (node !== undefined) {
    const used = graph!.nodes[node]!.workflow;
    const inside: Step[] = [...trail, { workflow: used, node }];
    return (
      <div className={styles.panelBody} key={`${workflow}/${node}`}>
        <h2>{graph!.nodes[node]!.label || node}</h2>
        <NodeForm trail={trail} node={node} />
        <ConnectForm workflow={workflow} node={node} />
        <UsePanel workflow={workflow} node={node} />
        <h2 className={styles.usedTitle}>Uses {nameOf(composition, used)}</h2>
        <WorkflowForms trail={inside} />
      </div>
    );
  }
  return (
    <div className={styles.panelBody} key={workflow}>
      <h2>{nameOf(composition, workflow)}</h2>
      {workflow === composition.root && <SettingsForm />}
      <WorkflowForms trail={trail} />
      {graph && <ConnectForm workflow={workflow} />}
    </div>
  );
}

function WorkflowForms({ trail }: { trail: Step[] }) {
  const { view } = useStudio();
  const id = trail.at(-1)!.workflow;
  const body = workflowOf(view.composition, id)?.body;
  const places = uses(view.composition, id);
  return (
    <>
      {places > 1 && <p className={styles.shared}>Used in {places} places: what is changed here changes in all of them.</p>}
      {body?.kind === "task" && <TaskForm trail={trail} />}
      {body?.kind === "construct" && <ConstructForm trail={trail} />}
      <AboutForm trail={trail} />
      <PortsForm trail={trail} />
    </>
  );
}
