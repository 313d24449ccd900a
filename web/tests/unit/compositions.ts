import type { Body, Composition, Interface, Port, Workflow } from "../../src/compose/model/types";

/** Ports by their names and types: `ports({ a: "file" }, { b: "string" })`. */
export function ports(inputs: Record<string, string>, outputs: Record<string, string>): Interface {
  const list = (of: Record<string, string>): Port[] => Object.entries(of).map(([id, type]) => ({ id, name: id, type }));
  return { inputs: list(inputs), outputs: list(outputs) };
}

export function workflow(body: Body, own: Interface = ports({}, {})): Workflow {
  return { name: "", interface: own, body };
}

export const task = (own: Interface, action: Record<string, unknown> = { run: "true" }): Workflow => workflow({ kind: "task", action }, own);

/**
 * Reads are aligned and then counted: `main` takes a file `reads`, gives an integer `n`, and has the nodes `first` (align),
 * `second` (count) and `report`, which only comes after `second`.
 */
export function reads(): Composition {
  return {
    name: "Reads",
    root: "main",
    values: { reads: "a.fq" },
    workflows: {
      main: workflow(
        {
          kind: "graph",
          nodes: {
            first: { workflow: "align", x: 0, y: 0 },
            second: { workflow: "count", label: "Count", x: 300, y: 0 },
            report: { workflow: "report", after: ["second"], x: 600, y: 0 },
          },
          links: {
            in: { from: { port: "reads" }, to: { node: "first", port: "reads" } },
            between: { from: { node: "first", port: "bam" }, to: { node: "second", port: "bam" } },
            out: { from: { node: "second", port: "n" }, to: { port: "n" } },
          },
        },
        ports({ reads: "file" }, { n: "integer" }),
      ),
      align: task(ports({ reads: "file" }, { bam: "file" })),
      count: task(ports({ bam: "file" }, { n: "integer" })),
      report: task(ports({}, {})),
    },
  };
}
