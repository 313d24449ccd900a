import { useEffect, useRef } from "react";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension, type StateEffect } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import type { Mistake } from "../api/types";
import { useTheme } from "../app/theme";
import { yamlLook } from "./yamlLook";
import { changeTo, diagnosticsOf, placeOf, pointedOut, pointOut } from "./yamlMarks";
import styles from "./yaml.module.css";

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
  /** Where the cursor goes, each time this is another object. */
  place?: { line: number; column?: number };
}

/** A text in YAML, with colours and mistakes. Load it lazily: `lazy(() => import("../ui/YamlEditor"))`. */
export default function YamlEditor({ value, onChange, readOnly = false, mistakes, label, lines, place }: YamlEditorProps) {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const changeable = useRef(new Compartment());
  const changed = useRef(onChange);
  changed.current = onChange;
  const isDark = useTheme() === "dark";
  const settings = [EditorView.darkTheme.of(isDark), ...editing(readOnly, label)];

  useEffect(() => {
    const told = EditorView.updateListener.of((update) => {
      if (update.docChanged) changed.current?.(update.state.doc.toString());
    });
    const extensions = [...basics, changeable.current.of(settings), told];
    const made = new EditorView({ parent: box.current!, state: EditorState.create({ doc: value, extensions }) });
    view.current = made;
    return () => made.destroy();
    // Later values are changes of this one, below.
  }, []);

  useEffect(() => {
    view.current?.dispatch({ effects: changeable.current.reconfigure(settings) });
  }, [isDark, readOnly, label]);

  useEffect(() => {
    const old = view.current?.state.doc.toString();
    if (old !== undefined && old !== value) view.current!.dispatch({ changes: changeTo(old, value) });
  }, [value]);

  useEffect(() => {
    const editor = view.current;
    if (editor) editor.dispatch(setDiagnostics(editor.state, diagnosticsOf(editor.state.doc, mistakes ?? [])));
  }, [mistakes]);

  const [first, last] = lines ?? [];
  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const wanted: [number, number] | null = first && last ? [first, last] : null;
    const effects: StateEffect<unknown>[] = [pointOut.of(wanted)];
    if (wanted) effects.push(EditorView.scrollIntoView(placeOf(editor.state.doc, wanted[0]), { y: "center" }));
    editor.dispatch({ effects });
  }, [first, last]);

  useEffect(() => {
    const editor = view.current;
    if (!editor || !place) return;
    const anchor = placeOf(editor.state.doc, place.line, place.column);
    editor.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    editor.focus();
  }, [place]);

  return <div ref={box} className={styles.editor} />;
}

const basics: Extension[] = [
  lineNumbers(),
  highlightSpecialChars(),
  history(),
  foldGutter(),
  drawSelection(),
  indentUnit.of("  "),
  indentOnInput(),
  bracketMatching(),
  highlightActiveLine(),
  highlightActiveLineGutter(),
  highlightSelectionMatches(),
  search(),
  yaml(),
  lintGutter(),
  pointedOut,
  keymap.of([...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...lintKeymap]),
  yamlLook,
];

/** What depends on whether the text can be changed. Tab indents then; Escape and Tab leave the editor. */
function editing(readOnly: boolean, label: string): Extension[] {
  return [
    EditorState.readOnly.of(readOnly),
    EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": String(readOnly), tabindex: "0" }),
    readOnly ? [] : keymap.of([indentWithTab]),
  ];
}
