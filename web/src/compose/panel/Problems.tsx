import { Empty } from "../../ui/parts";
import { describePlace, findTrail } from "../model/place";
import { NOTHING, useStudio, type Flaw } from "../studio";
import styles from "../compose.module.css";

/** What is missing or wrong, each with the way to it. */
export function Problems() {
  const { view, flaws, walk } = useStudio();
  const show = (flaw: Flaw) => {
    const [first, workflow = "", , kind, id = ""] = flaw.place.split("/");
    if (first !== "workflows") return walk([{ workflow: view.composition.root }], NOTHING);
    const selection = { nodes: kind === "nodes" ? [id] : [], links: kind === "links" ? [id] : [] };
    walk(findTrail(view.composition, workflow), selection);
  };
  if (flaws.length === 0) return <Empty>Nothing is missing. It can run.</Empty>;
  return (
    <ul className={styles.problems} aria-label="Problems">
      {flaws.map((flaw) => (
        <li key={flaw.place + flaw.message}>
          <button type="button" onClick={() => show(flaw)}>
            <strong>{flaw.is_gap ? "Missing" : "Wrong"}</strong> {flaw.message}
            <span className="soft">in {describePlace(view.composition, flaw.place.split("/").slice(0, 2).join("/"))}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
