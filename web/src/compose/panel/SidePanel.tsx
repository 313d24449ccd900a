import { useState } from "react";
import { classes } from "../../ui/parts";
import { useStudio } from "../studio";
import { History } from "./History";
import { Inspector } from "./Inspector";
import { Problems } from "./Problems";
import { Versions } from "./Versions";
import styles from "../compose.module.css";

type Tab = "inspect" | "history" | "versions" | "problems";

/** What is selected, what was done, and what is missing. */
export function SidePanel() {
  const { flaws } = useStudio();
  const [tab, setTab] = useState<Tab>("inspect");
  const tabs: { id: Tab; name: string }[] = [
    { id: "inspect", name: "Inspect" },
    { id: "history", name: "History" },
    { id: "versions", name: "Versions" },
    { id: "problems", name: flaws.length > 0 ? `Problems (${flaws.length})` : "Problems" },
  ];
  return (
    <aside className={styles.side} aria-label="Inspector">
      <div className={styles.sideTabs} role="tablist" aria-label="Inspector">
        {tabs.map((t) => (
          <button key={t.id} type="button" role="tab" id={`tab-${t.id}`} aria-selected={tab === t.id} aria-controls="side-panel" className={classes(styles.sideTab, tab === t.id && styles.sideTabCurrent)} onClick={() => setTab(t.id)}>
            {t.name}
          </button>
        ))}
      </div>
      <div className={styles.sideBody} role="tabpanel" id="side-panel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {tab === "inspect" && <Inspector />}
        {tab === "history" && <History />}
        {tab === "versions" && <Versions />}
        {tab === "problems" && <Problems />}
      </div>
    </aside>
  );
}
