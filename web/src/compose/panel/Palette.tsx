import { useState, type DragEvent } from "react";
import { get } from "../../api/client";
import { useQuery } from "../../api/query";
import type { CompositionHead, ServiceView } from "../../api/types";
import { Button } from "../../ui/parts";
import { attempt } from "../../ui/toasts";
import { DRAGGED, type Item } from "../items";
import { mayUse, servicesOf, slug } from "../model/edit";
import { graphOf, nameOf, stackOf } from "../model/read";
import type { Composition } from "../model/types";
import { useStudio } from "../studio";
import styles from "../compose.module.css";

interface Entry {
  key: string;
  label: string;
  hint: string;
  item: Item;
}

/** What graphs can be made of: new things, workflows of this composition, services, and workflows of other compositions. */
export function Palette({ onAdd }: { onAdd: (item: Item) => void }) {
  const { view, trail, id, frozen } = useStudio();
  const { composition } = view;
  const workflow = trail.at(-1)!.workflow;
  const isGraph = graphOf(composition, workflow) !== undefined;
  const [filter, setFilter] = useState("");
  const { data: services = [], problem: noServices } = useQuery<ServiceView[]>("/services");
  const { data: heads, problem: noHeads } = useQuery<CompositionHead[]>("/compositions");
  const others = heads?.filter((h) => h.id !== id) ?? [];
  const isDisabled = frozen !== null || !isGraph;
  const wanted = slug(filter, "");
  const fits = (e: Entry) => wanted === "" || slug(`${e.label} ${e.hint}`).includes(wanted);

  const made: Entry[] = [
    { key: "task", label: "New task", hint: "a script", item: { what: "task" } },
    { key: "graph", label: "New graph", hint: "of other workflows", item: { what: "graph" } },
  ];
  const own: Entry[] = Object.keys(composition.workflows)
    .filter((w) => mayUse(composition, workflow, w))
    .map((w) => ({ key: w, label: ownName(composition, w), hint: w, item: { what: "workflow", id: w } }));
  const known = [...servicesOf(composition), ...services];
  const served: Entry[] = known.map((s) => ({ key: s.id, label: s.name || s.id, hint: s.description ?? s.id, item: { what: "service", id: s.id } }));

  return (
    <section className={styles.palette} aria-label="Palette">
      <input type="search" placeholder="Filter" aria-label="Filter the palette" value={filter} onChange={(e) => setFilter(e.target.value)} />
      {!isGraph && <p className={styles.hint}>Only graphs are made of nodes. Open one to add something to it.</p>}
      <Group title="New" entries={made.filter(fits)} isDisabled={isDisabled} onAdd={onAdd} />
      <Group title="This composition" entries={own.filter(fits)} isDisabled={isDisabled} onAdd={onAdd} />
      <Group title="Services" entries={served.filter(fits)} isDisabled={isDisabled} onAdd={onAdd} none={noServices ? noServices.message : "The server knows no services."} />
      <h2>Library</h2>
      {noHeads && <p className="soft">{noHeads.message}</p>}
      {heads && others.length === 0 && <p className="soft">There is no other composition.</p>}
      {others.map((head) => (
        <Shelf key={head.id} head={head} fits={fits} isDisabled={isDisabled} onAdd={onAdd} />
      ))}
    </section>
  );
}

function ownName(composition: Composition, id: string): string {
  const { constructs, base } = stackOf(composition, id);
  if (nameOf(composition, id) !== id || constructs.length === 0) return nameOf(composition, id);
  return `${constructs.map((c) => c.construct).join(" of ")} of ${nameOf(composition, base)}`;
}

/** The workflows of another composition, looked at when it is opened. */
function Shelf({ head, fits, isDisabled, onAdd }: { head: CompositionHead; fits: (e: Entry) => boolean; isDisabled: boolean; onAdd: (item: Item) => void }) {
  const [found, setFound] = useState<Composition>();
  const [isOpen, setOpen] = useState(false);
  const open = async () => {
    setOpen(!isOpen);
    if (found) return;
    const read = await attempt(() => get<Composition>(`/compositions/${encodeURIComponent(head.id)}?form=json`));
    if (read) setFound(read);
  };
  const entries: Entry[] = Object.keys(found?.workflows ?? {}).map((w) => ({
    key: w,
    label: ownName(found!, w),
    hint: w,
    item: { what: "copy", composition: head.id, id: w },
  }));
  return (
    <div>
      <Button look="quiet" aria-expanded={isOpen} onClick={() => void open()}>
        {isOpen ? "▾" : "▸"} {head.name || head.id}
      </Button>
      {isOpen && <Group entries={entries.filter(fits)} isDisabled={isDisabled} onAdd={onAdd} none="Nothing here fits the filter." />}
    </div>
  );
}

function Group({ title, entries, isDisabled, onAdd, none }: { title?: string; entries: Entry[]; isDisabled: boolean; onAdd: (item: Item) => void; none?: string }) {
  const drag = (event: DragEvent, item: Item) => {
    event.dataTransfer.setData(DRAGGED, JSON.stringify(item));
    event.dataTransfer.effectAllowed = "copy";
  };
  return (
    <>
      {title && <h2>{title}</h2>}
      {entries.length === 0 && none && <p className="soft">{none}</p>}
      <ul className={styles.entries}>
        {entries.map((e) => (
          <li key={e.key}>
            <button type="button" className={styles.entry} draggable={!isDisabled} disabled={isDisabled} onDragStart={(event) => drag(event, e.item)} onClick={() => onAdd(e.item)} title={e.hint} aria-label={`Add ${e.label}`}>
              {e.label}
              {e.hint !== e.label && <span className={styles.entryHint}>{e.hint}</span>}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
