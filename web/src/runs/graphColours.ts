import { mixed, rgb, type Rgb } from "../canvas/pixels";
import { token } from "../ui/colours";
import { STANDINGS, type Standing } from "./graphModel";

/** The colours of a graph in the theme that is shown. */
export interface GraphColours {
  paper: string;
  ink: string;
  soft: string;
  line: string;
  strong: string;
  path: string;
  standing: Record<Standing, string>;
  wash: Record<Standing, string>;
}

export function graphColours(): GraphColours {
  const paper = token("paper");
  const standing = Object.fromEntries(STANDINGS.map((s) => [s, s === "none" ? token("line-strong") : token(`state-${s}`)]));
  const wash = Object.fromEntries(STANDINGS.map((s) => [s, css(mixed(rgb(paper), rgb(standing[s]!), s === "none" ? 0.08 : 0.13))]));
  return {
    paper,
    ink: token("ink"),
    soft: token("soft"),
    line: token("line"),
    strong: token("line-strong"),
    path: token("state-paused"),
    standing: standing as Record<Standing, string>,
    wash: wash as Record<Standing, string>,
  };
}

function css([r, g, b]: Rgb): string {
  return `rgb(${Math.round(r)} ${Math.round(g)} ${Math.round(b)})`;
}
