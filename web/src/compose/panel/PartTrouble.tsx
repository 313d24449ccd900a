import { ago, shortName } from "../../ui/format";
import { Button, Note } from "../../ui/parts";
import { attempt } from "../../ui/toasts";
import type { Part } from "../live/desk";
import { contentText } from "../model/words";
import { describePlace, findTrail, workflowOfPlace } from "../model/place";
import type { Change } from "../model/types";
import { lockWords, useStudio } from "../studio";
import styles from "../compose.module.css";

/** What stands between the user and a part, and what can be done about it. */
export function PartTrouble({ unit, part, now }: { unit: string; part: Part; now: Change | null }) {
  const { view, desk, room, walk, frozen } = useStudio();
  const { status, refused, draft } = part;
  const blocker = refused?.blockers?.[0];

  if (status === "waiting") {
    const { waiting } = view;
    const holders = view.locks.filter((l) => l.session !== view.session && waiting?.blockers.some((b) => b.session === l.session && b.unit === l.unit));
    return (
      <Note>
        You are number {waiting?.position ?? 1} in line.{" "}
        {holders.length > 0 ? holders.map((l) => `${lockWords(view, l)} since ${ago(l.at)}.`).join(" ") : "It is about to be yours."}
        <div className={styles.partButtons}>
          <Button onClick={() => desk.cancel(unit)}>Do not wait</Button>
        </div>
      </Note>
    );
  }
  if (status === "conflict" && draft) {
    const by = shortName(refused?.theirs?.find((t) => t.unit === unit)?.by ?? "");
    return (
      <Note kind="warn">
        {by ? `${by} has changed this meanwhile.` : refused?.message} Which one shall count?
        <div className={styles.versus}>
          <div>
            <strong>Yours</strong>
            <pre>{contentText(draft)}</pre>
          </div>
          <div>
            <strong>{by ? `${by}’s` : "Theirs"}</strong>
            <pre>{contentText(now)}</pre>
          </div>
        </div>
        <div className={styles.partButtons}>
          <Button look="primary" onClick={() => void desk.insist(unit)}>
            Use mine
          </Button>
          <Button onClick={() => desk.discard(unit)}>Use theirs</Button>
        </div>
      </Note>
    );
  }
  if (status === "lost" && draft) {
    return (
      <Note kind="warn">
        This is a draft: you do not have the lock any more, but nothing you typed is lost.{refused ? ` ${refused.message}` : ""}
        <div className={styles.partButtons}>
          <Button look="primary" disabled={frozen !== null} onClick={() => void desk.insist(unit)}>
            Save it
          </Button>
          <Button disabled={frozen !== null} onClick={() => void desk.lock(unit, true)}>
            Wait for the lock
          </Button>
          <Button onClick={() => desk.discard(unit)}>Discard</Button>
        </div>
      </Note>
    );
  }
  if (!refused) return null;
  if (!blocker) {
    return <Note kind={status === "mine" ? "error" : "warn"}>{refused.message}</Note>;
  }
  const ask = () =>
    attempt(async () => {
      await room.ask({ type: "hand-over", unit: blocker.unit });
      await desk.lock(unit, true);
    });
  const take = () =>
    attempt(async () => {
      await room.ask({ type: "break", unit: blocker.unit });
      await desk.lock(unit, false);
    });
  const { alternative } = refused;
  const goThere = () => {
    const workflow = alternative && workflowOfPlace(alternative);
    if (!workflow) return;
    const [, , kind, id = ""] = alternative.split("/");
    const selection = { nodes: kind === "nodes" ? [id] : [], links: kind === "links" ? [id] : [] };
    walk(findTrail(view.composition, workflow), selection);
  };
  return (
    <Note kind="warn">
      {refused.message}
      <div className={styles.partButtons}>
        <Button look="primary" onClick={() => void desk.lock(unit, true)}>
          Wait
        </Button>
        <Button onClick={() => void ask()}>Ask to hand over</Button>
        {view.role === "owner" && (
          <Button look="danger" onClick={() => void take()}>
            Take it away
          </Button>
        )}
        {alternative && <Button onClick={goThere}>Go to {describePlace(view.composition, alternative)}</Button>}
      </div>
    </Note>
  );
}
