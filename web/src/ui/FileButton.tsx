import { useRef, type ReactNode } from "react";
import { Button } from "./parts";
import { attempt } from "./toasts";

interface Props {
  /** What kind of file it is, for those who cannot see the button. */
  label: string;
  /** Endings of names. */
  accept: string;
  title?: string;
  onFile: (file: File) => Promise<void>;
  children: ReactNode;
}

/** Has the user choose a file. */
export function FileButton({ label, accept, title, onFile, children }: Props) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        accept={accept}
        className="visually-hidden"
        aria-label={label}
        tabIndex={-1}
        onChange={(event) => {
          const [file] = event.target.files ?? [];
          // The same file can be chosen again after it was changed.
          event.target.value = "";
          if (file) void attempt(() => onFile(file));
        }}
      />
      <Button onClick={() => input.current?.click()} title={title}>
        {children}
      </Button>
    </>
  );
}
