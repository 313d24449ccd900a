import { useEffect, useState } from "react";
import { Note } from "../../ui/parts";
import { bytes } from "../../ui/format";
import { readPart, type Part } from "./part";
import styles from "./files.module.css";

/** Larger pictures are not loaded. */
const LARGEST = 16 << 20;

/** A picture. It is only ever the source of an `img`, where even an SVG can execute nothing. */
export function ImagePreview({ path, name, type, part }: { path: string; name: string; type: string; part: Part }) {
  const [url, setUrl] = useState<string>();
  const [isBroken, setIsBroken] = useState(false);
  const size = part.total ?? part.bytes.length;
  const isTooLarge = size > LARGEST;

  useEffect(() => {
    if (isTooLarge) return;
    const abort = new AbortController();
    let made: string | undefined;
    const whole = size <= part.bytes.length ? Promise.resolve(part) : readPart(path, 0, size, abort.signal);
    whole.then(
      ({ bytes }) => {
        if (abort.signal.aborted) return;
        made = URL.createObjectURL(new Blob([bytes], { type }));
        setUrl(made);
      },
      () => setIsBroken(!abort.signal.aborted),
    );
    return () => {
      abort.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [path, type, part, size, isTooLarge]);

  if (isTooLarge) return <p className="soft">Pictures of more than {bytes(LARGEST)} are not shown.</p>;
  if (isBroken) return <Note kind="warn">The picture cannot be shown.</Note>;
  if (!url) return <p className="soft">Loading …</p>;
  return <img className={styles.image} src={url} alt={name} onError={() => setIsBroken(true)} />;
}
