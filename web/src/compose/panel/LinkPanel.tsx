import { Button } from "../../ui/parts";
import { place } from "../model/place";
import { endText, graphOf, portAt } from "../model/read";
import { LockBadge } from "../marks";
import { NOTHING, useOthersLocks, useStudio } from "../studio";
import styles from "../compose.module.css";

/** One link: what flows from where to where. */
export function LinkPanel({ workflow, link }: { workflow: string; link: string }) {
  const { view, frozen, act, select } = useStudio();
  const locks = useOthersLocks(place.link(workflow, link));
  const found = graphOf(view.composition, workflow)?.links[link];
  if (!found) return null;
  const from = portAt(view.composition, workflow, found.from, "from");
  const to = portAt(view.composition, workflow, found.to, "to");
  const remove = async () => {
    if (await act([{ change: "remove-link", workflow, id: link }], "removed")) select(NOTHING);
  };
  return (
    <div className={styles.panelBody}>
      <h2>Link {link}</h2>
      {locks.map((lock) => (
        <LockBadge key={lock.session} view={view} lock={lock} />
      ))}
      <p>
        <strong>{endText(found.from)}</strong> <span className={styles.portType}>{from?.type}</span> goes to <strong>{endText(found.to)}</strong>{" "}
        <span className={styles.portType}>{to?.type}</span>
      </p>
      <p>
        {[found.from.node, found.to.node].map((node) =>
          node === undefined ? null : (
            <Button key={node} look="quiet" onClick={() => select({ nodes: [node], links: [] })}>
              Show {node}
            </Button>
          ),
        )}
      </p>
      <Button look="danger" disabled={frozen !== null} onClick={() => void remove()}>
        Remove this link
      </Button>
    </div>
  );
}
