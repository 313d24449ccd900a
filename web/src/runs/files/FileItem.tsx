import { useState } from "react";
import { fileName } from "./download";
import { Preview } from "./Preview";
import styles from "./files.module.css";

/** A file that is shown when it is opened; nothing of it is loaded before. */
export function FileItem({ path, name, isOpen = false }: { path: string; name: string; isOpen?: boolean }) {
  const [open, setOpen] = useState(isOpen);
  return (
    <details className={styles.file} open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>{fileName(name)}</summary>
      {open && (
        <div className={styles.fileBody}>
          <p className={styles.path}>
            <code className="soft">{name}</code>
          </p>
          <Preview path={path} name={name} />
        </div>
      )}
    </details>
  );
}
