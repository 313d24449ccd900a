import { useEffect, useRef, useState, type KeyboardEvent } from "react";
import { useQuery } from "../api/query";
import type { ChainView } from "../api/types";
import { Button, Empty, ProblemNote, StateBadge } from "../ui/parts";
import { ChainAbout } from "./ChainAbout";
import { ChainLog, type LogChoice } from "./ChainLog";
import { ChainFiles } from "./files/ChainFiles";
import { PanelTabs } from "../ui/PanelTabs";
import { Provenance } from "./Provenance";
import styles from "./runs.module.css";

/** Everything about one chain: how it stands and why, its logs, its files, where they come from. */
export function ChainPanel({ run, chain, onClose }: { run: number; chain: number; onClose: () => void }) {
  const panel = useRef<HTMLElement>(null);

  // Who opens the panel is in it, and where they were when they have closed it.
  useEffect(() => {
    const before = document.activeElement;
    panel.current!.focus({ preventScroll: true });
    // Below something long, it would open where nobody sees it.
    if (panel.current!.getBoundingClientRect().top > innerHeight / 2) panel.current!.scrollIntoView({ block: "start" });
    return () => {
      const isInPanel = document.activeElement === document.body || document.activeElement === null;
      if (isInPanel && before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);

  function key(event: KeyboardEvent) {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.stopPropagation();
    onClose();
  }

  return (
    <aside ref={panel} className={styles.panel} aria-label={`Chain ${chain}`} tabIndex={-1} onKeyDown={key}>
      <Inside key={`${run}/${chain}`} run={run} chain={chain} onClose={onClose} />
    </aside>
  );
}

type Part = "about" | "log" | "files" | "provenance";

const PARTS: { id: Part; name: string }[] = [
  { id: "about", name: "About" },
  { id: "log", name: "Log" },
  { id: "files", name: "Files" },
  { id: "provenance", name: "Provenance" },
];

function Inside({ run, chain, onClose }: { run: number; chain: number; onClose: () => void }) {
  const { data, problem } = useQuery<ChainView>(`/runs/${run}/chains/${chain}`, 2000);
  const [part, setPart] = useState<Part>("about");
  const [choice, setChoice] = useState<LogChoice>({ task: 0, attempt: null, stream: "out" });
  return (
    <>
      <div className={styles.panelTitle}>
        <h2>
          Chain {chain} {data && <StateBadge state={data.state} />}
        </h2>
        <Button look="quiet" aria-label="Close the chain" onClick={onClose}>
          ✕
        </Button>
      </div>
      <ProblemNote problem={problem} />
      {!data && !problem && <Empty>Loading …</Empty>}
      {data && (
        <PanelTabs label={`Parts of chain ${chain}`} tabs={PARTS} current={part} onChoose={setPart}>
          {part === "about" && <ChainAbout run={run} chain={data} />}
          {part === "log" && (
            <div className={styles.panelLog}>
              <ChainLog run={run} chain={data} choice={choice} onChoose={setChoice} />
            </div>
          )}
          {part === "files" && <ChainFiles run={run} chain={data} />}
          {part === "provenance" && <Provenance of={`/runs/${run}/chains/${chain}`} name={`${run}-${chain}`} />}
        </PanelTabs>
      )}
    </>
  );
}
