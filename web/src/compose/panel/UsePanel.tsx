import { Button } from "../../ui/parts";
import { count } from "../../ui/format";
import { tell } from "../../ui/toasts";
import { constructAround, mayUse, ownCopy, removeParts, replaceUse, unwrapNode, wrapNode } from "../model/edit";
import { place } from "../model/place";
import { graphOf, interfaceOf, nameOf, stackOf, uses } from "../model/read";
import { CONSTRUCTS, type Change, type ConstructName } from "../model/types";
import { NOTHING, useStudio } from "../studio";
import styles from "../compose.module.css";

const VERBS: Record<ConstructName, string> = {
  map: "Map this",
  reduce: "Reduce this",
  tree: "Tree of this",
  conditional: "Only if …",
  loop: "Loop this",
  curry: "Fix inputs",
};

/** What a node does with a workflow: constructs around it, another one in its place, a copy of its own. */
export function UsePanel({ workflow, node }: { workflow: string; node: string }) {
  const { view, frozen, act, select } = useStudio();
  const { composition } = view;
  const used = graphOf(composition, workflow)?.nodes[node]?.workflow;
  if (used === undefined) return null;
  const ports = interfaceOf(composition, used);
  const { constructs } = stackOf(composition, used);
  const isFrozen = frozen !== null;

  const change = async (changes: Change[] | string | null, note: string) => {
    if (typeof changes === "string") return void tell(changes);
    if (!changes) return;
    const gone = changes.filter((c) => c.change === "remove-link").length;
    // The node as a whole, with what it uses: both ends of what is taken apart and put together.
    if ((await act(changes, note, place.node(workflow, node))) && gone > 0) tell(`${count(gone, "link")} did not fit any more and went with it.`);
  };
  const remove = async () => {
    if (await act(removeParts(composition, workflow, [node], []), "removed")) select(NOTHING);
  };
  return (
    <div className={styles.part} role="group" aria-label="Use">
      <div className={styles.partTitle}>Use</div>
      <div className={styles.buttons}>
        {CONSTRUCTS.map((kind) => {
          const made = constructAround(kind, used, ports);
          const why = typeof made === "string" ? made : undefined;
          return (
            <Button key={kind} disabled={isFrozen || why !== undefined} title={why ?? `Puts a ${kind} around it.`} onClick={() => void change(wrapNode(composition, workflow, node, kind), kind)}>
              {VERBS[kind]}
            </Button>
          );
        })}
        {constructs.length > 0 && (
          <Button disabled={isFrozen} onClick={() => void change(unwrapNode(composition, workflow, node), "unwrapped")}>
            Take the {constructs[0]!.construct} away
          </Button>
        )}
        {uses(composition, used) > 1 && (
          <Button disabled={isFrozen} onClick={() => void change(ownCopy(composition, workflow, node), "copied")} title="Other places stay as they are.">
            Edit a copy
          </Button>
        )}
        <Button look="danger" disabled={isFrozen} onClick={() => void remove()}>
          Remove the node
        </Button>
      </div>
      <label className={styles.field}>
        Use another workflow here
        <select value={used} disabled={isFrozen} onChange={(e) => void change(replaceUse(composition, workflow, node, e.target.value), "replaced")}>
          {Object.keys(composition.workflows)
            .filter((id) => id === used || mayUse(composition, workflow, id))
            .map((id) => (
              <option key={id} value={id}>
                {nameOf(composition, id) === id ? id : `${nameOf(composition, id)} (${id})`}
              </option>
            ))}
        </select>
      </label>
    </div>
  );
}
