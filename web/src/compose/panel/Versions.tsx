import { useEffect, useState } from "react";
import { asProblem, get, type Problem } from "../../api/client";
import { moment, shortName } from "../../ui/format";
import { Button, Dialog, Note } from "../../ui/parts";
import { attempt, tell } from "../../ui/toasts";
import type { Applied, Version } from "../live/protocol";
import { useStudio } from "../studio";
import { runComposition } from "../run";
import styles from "../compose.module.css";

/** Versions with names, and the one that runs. */
export function Versions() {
  const { id, view, room, frozen } = useStudio();
  const [name, setName] = useState("");
  const [publishing, setPublishing] = useState<Version | "now" | null>(null);
  const [restoring, setRestoring] = useState<Version | null>(null);

  const give = async () => {
    const named = await attempt(async () => (await room.ask({ type: "name", name }), true));
    if (named) setName("");
  };
  const restore = async (version: Version) => {
    setRestoring(null);
    const done = await attempt(async () => (await room.turn({ type: "restore", name: version.name }), true));
    if (done) tell(`This is “${version.name}” again.`, { actions: [{ label: "Take that back", act: () => void attempt(() => room.turn({ type: "undo", skip: false })) }] });
  };
  return (
    <div className={styles.panelBody}>
      <form
        className={styles.connect}
        onSubmit={(e) => {
          e.preventDefault();
          void give();
        }}
      >
        <input aria-label="Name of the version" placeholder="name what there is now" value={name} maxLength={100} disabled={frozen !== null} onChange={(e) => setName(e.target.value)} />
        <Button type="submit" disabled={frozen !== null || name.trim() === ""}>
          Name it
        </Button>
      </form>
      <Button look="primary" disabled={frozen !== null} onClick={() => setPublishing("now")}>
        Publish what there is now
      </Button>
      <ul className={styles.versions} aria-label="Versions">
        {view.named.toReversed().map((v) => (
          <li key={v.name}>
            <div>
              <strong>{v.name}</strong> {view.published?.name === v.name && <span className={styles.published}>published</span>}
              <div className="soft">
                by {shortName(v.user)}, {moment(v.time)}, after {v.seq}
                {v.authors && v.authors.length > 0 && `; changes of ${people(v.authors)}`}
              </div>
            </div>
            <div className={styles.buttons}>
              <Button disabled={frozen !== null} onClick={() => setRestoring(v)} aria-label={`Restore ${v.name}`}>
                Restore
              </Button>
              {view.published?.name !== v.name && (
                <Button disabled={frozen !== null} onClick={() => setPublishing(v)} aria-label={`Publish ${v.name}`}>
                  Publish
                </Button>
              )}
              <Button disabled={view.role === "viewer"} onClick={() => void attempt(() => runComposition(id, v.name))} aria-label={`Run ${v.name}`}>
                Run
              </Button>
            </div>
          </li>
        ))}
      </ul>
      {view.named.length === 0 && <p className="soft">No version has a name yet.</p>}
      {publishing && <PublishDialog version={publishing} onClose={() => setPublishing(null)} />}
      {restoring && (
        <Dialog
          title={`Bring “${restoring.name}” back?`}
          onClose={() => setRestoring(null)}
          buttons={
            <>
              <Button onClick={() => setRestoring(null)}>Leave it as it is</Button>
              <Button look="primary" onClick={() => void restore(restoring)}>
                Restore
              </Button>
            </>
          }
        >
          Everything becomes as it was after operation {restoring.seq}. This is an operation like any other, so it can be taken back.
        </Dialog>
      )}
    </div>
  );
}

function PublishDialog({ version, onClose }: { version: Version | "now"; onClose: () => void }) {
  const { id, view, room, flaws } = useStudio();
  const [authors, setAuthors] = useState<string[] | null>(null);
  const [problem, setProblem] = useState<Problem>();
  const until = version === "now" ? view.seq : version.seq;
  const since = view.published?.seq ?? 0;
  useEffect(() => {
    const abort = new AbortController();
    get<Applied[]>(`/compositions/${encodeURIComponent(id)}/operations?after=${Math.min(since, until)}&limit=10000`, abort.signal)
      .then((all) => abort.signal.aborted || setAuthors([...new Set(all.filter((o) => o.seq <= until).map((o) => o.user))]))
      .catch((error) => abort.signal.aborted || setProblem(asProblem(error)));
    return () => abort.abort();
  }, [id, since, until]);
  const publish = async () => {
    onClose();
    const name = version === "now" ? undefined : version.name;
    const done = await attempt(async () => (await room.ask(name === undefined ? { type: "publish" } : { type: "publish", name }), true));
    if (done) tell("Published: this is the version that runs.");
  };
  return (
    <Dialog
      title={version === "now" ? "Publish what there is now?" : `Publish “${version.name}”?`}
      onClose={onClose}
      buttons={
        <>
          <Button onClick={onClose}>Not now</Button>
          <Button look="primary" onClick={() => void publish()}>
            Publish
          </Button>
        </>
      }
    >
      {problem ? <Note kind="warn">Whose changes are in it is not known: {problem.message}</Note> : <p>{authorWords(authors)}</p>}
      {version === "now" && flaws.length > 0 && <Note kind="warn">It cannot run yet: {flaws[0]!.message}</Note>}
    </Dialog>
  );
}

function people(users: string[]): string {
  return users.map(shortName).join(", ");
}

function authorWords(authors: string[] | null): string {
  if (authors === null) return "Looking whose changes are in it …";
  if (authors.length === 0) return "Nothing has changed since the version that was published before.";
  return `It has changes of ${people(authors)} since the version that was published before.`;
}
