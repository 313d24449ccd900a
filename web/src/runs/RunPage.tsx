import { lazy, Suspense, useEffect, type ReactNode } from "react";
import type { StatusView } from "../api/types";
import { moment } from "../ui/format";
import { Empty, Page, ProblemNote, Progress, StateBadge, Tabs } from "../ui/parts";
import { refreshBoard } from "./board";
import { ChainPanel } from "./ChainPanel";
import { ChainsTab } from "./ChainsTab";
import { chooseChain, useChosenChain } from "./chosenChain";
import { Elapsed } from "./Elapsed";
import { FailuresTab } from "./FailuresTab";
import { LogsTab } from "./LogsTab";
import { ResultsTab } from "./ResultsTab";
import { RunActions } from "./RunActions";
import { RunNotes } from "./RunNotes";
import { isOver, progressWords } from "../ui/states";
import { useStatus } from "./useStatus";
import styles from "./runs.module.css";

// What draws is large; it is loaded by those who look at it.
const GraphTab = lazy(async () => ({ default: (await import("./GraphTab")).GraphTab }));
const TimelineTab = lazy(async () => ({ default: (await import("./TimelineTab")).TimelineTab }));
const CriticalPathTab = lazy(async () => ({ default: (await import("./CriticalPathTab")).CriticalPathTab }));
const WorkflowTab = lazy(() => import("./WorkflowTab"));

/** Everything about one run. */
export function RunPage({ id, tab }: { id: number; tab: string }) {
  const { status, problem, again } = useStatus(id);
  // One that was over and goes on is not looked at as often as it should be.
  useEffect(() => refreshBoard(id), [id, status?.state]);
  if (!status) return <Page title={`Run ${id}`}>{problem ? <ProblemNote problem={problem} /> : <Empty>Loading …</Empty>}</Page>;
  return (
    <Page title={status.name} actions={<RunActions run={status} onChange={again} />}>
      <Headline run={status} />
      <ProblemNote problem={problem} />
      <RunNotes run={status} tab={tab} />
      <Tabs label="Parts of the run" tabs={tabsOf(status)} current={tab} />
      <Suspense fallback={<Empty>Loading …</Empty>}>
        <Content run={status} tab={tab} onChange={again} />
      </Suspense>
    </Page>
  );
}

function tabsOf(run: StatusView) {
  const tab = (id: string, name: string) => ({ id, name, to: `/runs/${run.run}/${id}` });
  return [
    tab("graph", "Graph"),
    tab("timeline", "Timeline"),
    tab("critical-path", "Critical path"),
    tab("failures", run.failures.length > 0 ? `Failures (${failuresWord(run.failures.length)})` : "Failures"),
    tab("chains", "Chains"),
    tab("logs", "Logs"),
    tab("results", "Results"),
    tab("workflow", "Workflow"),
  ];
}

/** A status names a hundred failures at most. */
function failuresWord(n: number): string {
  return n >= 100 ? "100 or more" : String(n);
}

/** How the run stands, in one line. */
function Headline({ run }: { run: StatusView }) {
  return (
    <div className={styles.headline}>
      <StateBadge state={run.state} held={run.held} />
      <div className={styles.headProgress}>
        <Progress counts={run.chains} />
      </div>
      <span>{progressWords(run.chains)}</span>
      <span>
        <span className="soft">run</span> {run.run}
      </span>
      <span>
        <span className="soft">started</span> {run.started === null ? "not yet" : moment(run.started)}
      </span>
      <span>
        <span className="soft">{isOver(run.state) ? "took" : "for"}</span>{" "}
        <Elapsed from={run.started} to={run.ended} isOver={isOver(run.state)} />
      </span>
      <span>
        <span className="soft">priority</span> {run.priority}
      </span>
      <span className={styles.file} title={run.workflow}>
        <span className="soft">from</span> {run.workflow}
      </span>
    </div>
  );
}

interface ContentProps {
  run: StatusView;
  tab: string;
  onChange: () => void;
}

function Content({ run, tab, onChange }: ContentProps) {
  switch (tab) {
    // The pictures show a chain in their own way.
    case "graph":
      return <GraphTab run={run.run} />;
    case "timeline":
      return <TimelineTab run={run.run} />;
    case "critical-path":
      return <CriticalPathTab run={run.run} />;
    default:
      return (
        <Beside run={run.run}>
          <OwnTab run={run} tab={tab} onChange={onChange} />
        </Beside>
      );
  }
}

function OwnTab({ run, tab, onChange }: ContentProps) {
  switch (tab) {
    case "failures":
      return <FailuresTab run={run} onChange={onChange} />;
    case "chains":
      return <ChainsTab run={run.run} />;
    case "logs":
      return <LogsTab run={run.run} />;
    case "results":
      return <ResultsTab run={run} />;
    case "workflow":
      return <WorkflowTab run={run} />;
    default:
      return <Empty>There is no such page.</Empty>;
  }
}

/** A part of the page, and beside it the chain that was chosen, if one was. */
function Beside({ run, children }: { run: number; children: ReactNode }) {
  const chain = useChosenChain();
  return (
    <div className={styles.beside}>
      <div className={styles.besideMain}>{children}</div>
      {chain !== null && <ChainPanel run={run} chain={chain} onClose={() => chooseChain(null)} />}
    </div>
  );
}
