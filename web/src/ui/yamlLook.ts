import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

/** How the editor looks: only colours of the theme, so light and dark need no more than their variables. */
const look = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--paper)", fontSize: "13px" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--ink)", padding: "0.5rem 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--ground)", color: "var(--soft)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in oklab, var(--accent-wash) 45%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--accent-wash)", color: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "color-mix(in oklab, var(--accent) 28%, transparent)",
  },
  ".cm-pointed": { backgroundColor: "var(--warn-wash)", boxShadow: "inset 3px 0 var(--state-paused)" },
  ".cm-searchMatch": { backgroundColor: "color-mix(in oklab, var(--state-paused) 20%, transparent)", outline: "1px solid var(--state-paused)" },
  ".cm-searchMatch-selected": { backgroundColor: "color-mix(in oklab, var(--accent) 20%, transparent)", outline: "2px solid var(--accent)" },
  ".cm-panels": { backgroundColor: "var(--ground)", color: "var(--ink)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-panel.cm-search": { padding: "0.4rem 2rem 0.4rem 0.6rem" },
  ".cm-panel.cm-search input, .cm-panel.cm-search button, .cm-panel.cm-search label": { fontSize: "13px" },
  ".cm-panel.cm-search [name=close]": { color: "var(--ink)", fontSize: "16px" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--raised)", border: "1px solid var(--line-strong)", borderRadius: "6px" },
  ".cm-textfield": { border: "1px solid var(--line-strong)", borderRadius: "6px", backgroundColor: "var(--paper)", padding: "0.15rem 0.4rem" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--line-strong)", borderRadius: "6px" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", fontFamily: "var(--font)", maxWidth: "36rem" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--state-failed)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--state-paused)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--state-failed) 1px", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--state-paused) 1px", textUnderlineOffset: "3px" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--accent-wash)", border: "1px solid var(--line)", color: "var(--soft)" },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--state-succeeded)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--state-cancelled)" },
  { tag: [tags.lineComment, tags.comment], color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.separator, tags.punctuation, tags.squareBracket, tags.brace, tags.meta], color: "var(--soft)" },
  { tag: [tags.labelName, tags.typeName, tags.attributeName], color: "var(--state-paused)" },
]);

export const yamlLook = [look, syntaxHighlighting(colours)];
