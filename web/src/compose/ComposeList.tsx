import { useState, type FormEvent } from "react";
import { ask, asProblem, send } from "../api/client";
import { useQuery } from "../api/query";
import type { CompositionHead } from "../api/types";
import { go, Link } from "../app/router";
import { may, useMe } from "../app/session";
import { FileButton } from "../ui/FileButton";
import { moment, shortName } from "../ui/format";
import { Button, Card, Dialog, Empty, Note, Page, ProblemNote, TableBox } from "../ui/parts";
import { attempt, tell } from "../ui/toasts";
import { freeName, slug } from "./model/edit";
import styles from "./compose.module.css";

/** All compositions of the server. */
export default function ComposeList() {
  const me = useMe();
  const { data, problem, again } = useQuery<CompositionHead[]>("/compositions", 5000);
  const [isNew, setNew] = useState(false);
  const [removing, setRemoving] = useState<CompositionHead | null>(null);
  const isEditor = may(me, "editor");
  const isOperator = may(me, "operator");
  const taken = data?.map((c) => c.id) ?? [];

  const remove = async (head: CompositionHead) => {
    setRemoving(null);
    await attempt(() => send("DELETE", `/compositions/${encodeURIComponent(head.id)}`));
    again();
  };
  return (
    <Page
      title="Compositions"
      actions={
        isEditor ? (
          <>
            <Import taken={taken} />
            <Button look="primary" onClick={() => setNew(true)}>
              New composition
            </Button>
          </>
        ) : (
          <span className="soft">You may look at compositions. Changing them needs the role editor.</span>
        )
      }
    >
      <ProblemNote problem={problem} />
      <Card>
        {!data && !problem && <Empty>Loading …</Empty>}
        {data?.length === 0 && <Empty>There is no composition yet.{isEditor ? " Make a new one, or import the YAML file of one." : ""}</Empty>}
        {data && data.length > 0 && (
          <TableBox label="Table of compositions">
            <table>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Id</th>
                  <th scope="col">Made by</th>
                  <th scope="col">Made</th>
                  <th scope="col" className="number">
                    Operations
                  </th>
                  <th scope="col">Published</th>
                  {isOperator && (
                    <th scope="col">
                      <span className="visually-hidden">Actions</span>
                    </th>
                  )}
                </tr>
              </thead>
              <tbody>
                {data.map((head) => (
                  <tr key={head.id}>
                    <td>
                      <Link to={`/compose/${encodeURIComponent(head.id)}`}>{head.name || head.id}</Link>
                    </td>
                    <td>
                      <code>{head.id}</code>
                    </td>
                    <td title={head.creator}>{shortName(head.creator)}</td>
                    <td>{moment(head.created)}</td>
                    <td className="number">{head.seq}</td>
                    <td>{head.published ?? <span className="soft">not yet</span>}</td>
                    {isOperator && (
                      <td>
                        <Button look="quiet" onClick={() => setRemoving(head)} aria-label={`Delete ${head.id}`}>
                          Delete
                        </Button>
                      </td>
                    )}
                  </tr>
                ))}
              </tbody>
            </table>
          </TableBox>
        )}
      </Card>
      {isNew && <NewDialog taken={taken} onClose={() => setNew(false)} />}
      {removing && (
        <Dialog
          title={`Delete ${removing.name || removing.id}?`}
          onClose={() => setRemoving(null)}
          buttons={
            <>
              <Button onClick={() => setRemoving(null)}>Keep it</Button>
              <Button look="danger" onClick={() => void remove(removing)}>
                Delete
              </Button>
            </>
          }
        >
          It goes with its history and all its versions, also for those who have it open. Runs stay.
        </Dialog>
      )}
    </Page>
  );
}

/** The text of a composition in which nothing is done yet. */
function minimal(name: string): string {
  return `composition: 1\nname: ${JSON.stringify(name)}\nroot: main\nworkflows:\n  main:\n    name: ${JSON.stringify(name)}\n    graph: {nodes: {}, links: {}}\n`;
}

function NewDialog({ taken, onClose }: { taken: string[]; onClose: () => void }) {
  const [name, setName] = useState("");
  const id = freeName(slug(name, "composition"), taken);
  const make = async (event: FormEvent) => {
    event.preventDefault();
    const made = await attempt(() => ask(`/compositions/${id}`, { method: "PUT", body: minimal(name.trim()) }));
    if (made) go(`/compose/${id}`);
  };
  return (
    <Dialog title="New composition" onClose={onClose}>
      <form className={styles.newForm} onSubmit={(e) => void make(e)}>
        <label className={styles.field}>
          Name
          <input value={name} maxLength={100} required onChange={(e) => setName(e.target.value)} />
        </label>
        <p className="soft">
          It is kept as <code>{id}</code>.
        </p>
        <Button type="submit" look="primary" disabled={name.trim() === ""}>
          Make it
        </Button>
      </form>
    </Dialog>
  );
}

/** Brings a file to the server. */
function Import({ taken }: { taken: string[] }) {
  const [refused, setRefused] = useState<string | null>(null);
  const read = async (file: File) => {
    const text = await file.text();
    if (!/^composition\s*:/m.test(text)) {
      setRefused(`${file.name} is not a composition. An ordinary workflow becomes one with “catena convert --to composition”.`);
      return;
    }
    const id = freeName(slug(file.name.replace(/\.(ya?ml|json)$/i, ""), "composition"), taken);
    try {
      await ask(`/compositions/${id}`, { method: "PUT", body: text });
      tell(`Imported as ${id}.`);
      go(`/compose/${id}`);
    } catch (error) {
      setRefused(`${file.name}: ${asProblem(error).message}`);
    }
  };
  return (
    <>
      <FileButton label="File of a composition" accept=".yaml,.yml,.json" title="The YAML file of a composition. Ordinary workflows are converted first." onFile={read}>
        Import a file
      </FileButton>
      {refused && (
        <Dialog title="This cannot be imported" onClose={() => setRefused(null)} buttons={<Button onClick={() => setRefused(null)}>Close</Button>}>
          <Note kind="error">{refused}</Note>
        </Dialog>
      )}
    </>
  );
}
