import { useMemo } from "react";
import { useQuery } from "../api/query";
import type { AgentView, FleetView, InstanceView, WaitingView } from "../api/types";
import { Empty, Note, Page, ProblemNote } from "../ui/parts";
import { AgentsCard } from "./AgentsCard";
import { Headline } from "./Headline";
import { InstancesCard } from "./InstancesCard";
import { loadOf, totals } from "./load";
import { MachinesCard } from "./MachinesCard";
import { SetupsCard } from "./SetupsCard";
import { WaitingCard } from "./WaitingCard";
import { WhyCard } from "./WhyCard";
import styles from "./fleet.module.css";

const OFTEN = 2000;
const SELDOM = 10_000;

/** The cluster as its operator sees it: who there is, how busy they are, what waits and why. */
export function FleetPage() {
  const agents = useQuery<AgentView[]>("/agents", OFTEN);
  const waiting = useQuery<WaitingView[]>("/waiting", OFTEN);
  const fleet = useQuery<FleetView>("/fleet", OFTEN);
  const instances = useQuery<InstanceView[]>("/instances", SELDOM);
  const loaded = useMemo(() => (agents.data ?? []).map(loadOf), [agents.data]);
  // Times are shown as of the last answer, not of the last time something was drawn.
  const now = useMemo(() => Date.now(), [agents.data, fleet.data, instances.data]);

  const problem = agents.problem ?? waiting.problem ?? fleet.problem ?? instances.problem;
  if (!agents.data || !waiting.data || !fleet.data || !instances.data) {
    return (
      <Page title="Fleet">
        {problem ? <ProblemNote problem={problem} /> : <Empty>Loading …</Empty>}
      </Page>
    );
  }
  const hasMachines = fleet.data.setups.length + fleet.data.machines.length > 0;
  return (
    <Page title="Fleet">
      {problem && <Note kind="warn">{problem.message} What is shown was last heard.</Note>}
      <Headline totals={totals(loaded, waiting.data, fleet.data, now)} />
      <div className={styles.columns}>
        <WaitingCard waiting={waiting.data} />
        <WhyCard />
      </div>
      <AgentsCard agents={loaded} now={now} />
      {hasMachines && <SetupsCard fleet={fleet.data} />}
      <div className={styles.columns}>
        {hasMachines ? <MachinesCard machines={fleet.data.machines} now={now} /> : <SetupsCard fleet={fleet.data} />}
        <InstancesCard instances={instances.data} now={now} />
      </div>
    </Page>
  );
}
