import type { StatusView } from "../api/types";
import { may, useMe } from "../app/session";
import { Button, Empty, LinkButton, ProblemNote } from "../ui/parts";
import { save } from "../ui/save";
import YamlEditor from "../ui/YamlEditor";
import { fileName } from "./files/download";
import { useWorkflow } from "./useWorkflow";
import styles from "./runs.module.css";

/** The workflow as it was submitted. */
export default function WorkflowTab({ run }: { run: StatusView }) {
  const { text, problem } = useWorkflow(run.run);
  const me = useMe();
  if (problem) return <ProblemNote problem={problem} />;
  if (text === undefined) return <Empty>Loading …</Empty>;
  return (
    <div className={styles.stack}>
      <div className={styles.actions}>
        <span className="soft">{run.workflow}</span>
        <span className={styles.spring} />
        <Button onClick={() => save([text], fileName(run.workflow))}>Download</Button>
        {may(me, "editor") && (
          <LinkButton to={`/submit?again=${run.run}`} look="primary">
            Edit and run again
          </LinkButton>
        )}
      </div>
      <div className={styles.workflow}>
        <YamlEditor value={text} readOnly label="Workflow of this run" />
      </div>
    </div>
  );
}
