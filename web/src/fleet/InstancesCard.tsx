import type { InstanceView } from "../api/types";
import { ago, moment } from "../ui/format";
import { Card, Chips, Empty, TableBox } from "../ui/parts";
import { Warn } from "./Warn";
import styles from "./fleet.module.css";

/** Without these nothing goes on. Whoever answers plays `http`, and agents may be on their own. */
const NEEDED = ["controller", "scheduler"];

/** The instances of the cluster and what each of them does. */
export function InstancesCard({ instances, now }: { instances: InstanceView[]; now: number }) {
  const played = new Set(instances.flatMap(rolesOf));
  const missing = NEEDED.filter((role) => !played.has(role));
  return (
    <Card title={`Instances (${instances.length})`} className={styles.tableCard}>
      {missing.length > 0 && (
        <p>
          <Warn>
            Nobody plays {missing.join(" or ")}: runs do not go on until an instance does.
          </Warn>
        </p>
      )}
      {instances.length === 0 ? (
        <Empty>No instance is known to be alive.</Empty>
      ) : (
        <TableBox label="Table of instances">
          <table>
            <thead>
              <tr>
                <th scope="col">Instance</th>
                <th scope="col">Roles</th>
                <th scope="col">Since</th>
              </tr>
            </thead>
            <tbody>
              {instances.map((instance) => (
                <tr key={instance.id}>
                  <th scope="row" className={styles.name}>
                    <span className={styles.id}>{instance.id}</span>
                    <span className={styles.host}>on {instance.host}</span>
                  </th>
                  <td>
                    <Chips words={rolesOf(instance)} none="none" />
                  </td>
                  <td className={styles.seen} title={moment(instance.since)}>
                    {ago(instance.since, now)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </TableBox>
      )}
    </Card>
  );
}

function rolesOf(instance: InstanceView): string[] {
  return instance.roles.split(",").map((role) => role.trim()).filter(Boolean);
}
