import { useEffect, useState } from "react";
import { asProblem, type Problem } from "../../api/client";
import { Button, Note } from "../../ui/parts";
import { bytes } from "../../ui/format";
import { attempt } from "../../ui/toasts";
import { download, fileName } from "./download";
import { ImagePreview } from "./ImagePreview";
import { kindOf, type Kind } from "./kind";
import { readPart, type Part } from "./part";
import { TablePreview } from "./TablePreview";
import { TextPreview } from "./TextPreview";
import styles from "./files.module.css";

/** So much of a file is looked at to see what it is; a text shows so much at first. */
const BEGINNING = 64 << 10;

/** A file of a run: what it contains, as far as it can be shown, and a way to have it. */
export function Preview({ path, name }: { path: string; name: string }) {
  const [part, setPart] = useState<Part>();
  const [problem, setProblem] = useState<Problem>();

  useEffect(() => {
    const abort = new AbortController();
    setPart(undefined);
    setProblem(undefined);
    readPart(path, 0, BEGINNING, abort.signal).then(setPart, (error) => {
      if (!abort.signal.aborted) setProblem(asProblem(error, "The file cannot be read."));
    });
    return () => abort.abort();
  }, [path]);

  if (problem) return <Note kind="warn">{problem.message}</Note>;
  if (!part) return <p className="soft">Loading …</p>;
  const size = part.total ?? (part.bytes.length < BEGINNING ? part.bytes.length : null);
  const kind = kindOf(name, part.bytes);
  return (
    <figure className={styles.preview} aria-label={fileName(name)}>
      <figcaption className={styles.caption}>
        <span className="soft">{size === null ? "of unknown size" : bytes(size)}</span>
        <Button onClick={() => void attempt(() => download(path, fileName(name)))} aria-label={`Download ${fileName(name)}`}>
          Download
        </Button>
      </figcaption>
      {part.bytes.length === 0 ? <p className="soft">The file is empty.</p> : <Content kind={kind} path={path} name={name} part={part} />}
    </figure>
  );
}

function Content({ kind, path, name, part }: { kind: Kind; path: string; name: string; part: Part }) {
  switch (kind.show) {
    case "image":
      return <ImagePreview path={path} name={fileName(name)} type={kind.type} part={part} />;
    case "table":
      return <TablePreview path={path} name={fileName(name)} separator={kind.separator} part={part} />;
    case "json":
      return <TextPreview path={path} name={fileName(name)} part={part} json />;
    case "text":
      return <TextPreview path={path} name={fileName(name)} part={part} />;
    case "none":
      return <p className="soft">This is no text and no picture that can be shown.</p>;
  }
}
