import { useState } from "react";
import { PanelTabs } from "../../ui/PanelTabs";
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
      <PanelTabs label="Inspector" tabs={tabs} current={tab} onChoose={setTab} fills>
        {tab === "inspect" && <Inspector />}
        {tab === "history" && <History />}
        {tab === "versions" && <Versions />}
        {tab === "problems" && <Problems />}
      </PanelTabs>
    </aside>
  );
}
