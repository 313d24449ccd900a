//! Who waits for whom.

use super::super::lex::Token;
use super::super::{DagArc, Name};
use super::{Assembler, Named, Recent, Scope};
use crate::diag::Span;

impl Assembler {
    /// Connects nodes if all of them are ordinary ones that are defined already, as they are in most files. So large files
    /// need not be kept in memory command by command.
    pub(super) fn connect_known(
        &mut self,
        parents: &[Token],
        children: &[Token],
        weak: bool,
        span: Span,
        scope: &mut Scope,
    ) -> bool {
        let mut find = |side: usize, names: &[Token]| -> Option<Vec<u32>> {
            names.iter().map(|name| self.known(&name.text, side, scope)).collect()
        };
        let (Some(above), Some(below)) = (find(0, parents), find(1, children)) else { return false };
        self.connect_all(&above, &below, weak, span);
        true
    }

    /// An ordinary node that is defined already.
    fn known(&self, name: &Name, side: usize, scope: &mut Scope) -> Option<u32> {
        let Recent { node, follows } = &mut scope.recent[side];
        // In most files one side goes through the nodes in their order, and asking the next ones takes less than a look-up.
        let is_it = |n: &u32| self.dag.nodes.get(*n as usize).is_some_and(|n| n.name == *name);
        let near = if *follows && scope.prefix.is_empty() {
            [*node, *node + 1].into_iter().find(is_it)
        } else {
            None
        };
        let found = match near {
            Some(near) => near,
            None => match scope.names.get(name)? {
                Named::Node(found) => *found,
                Named::Splice(_) => return None,
            },
        };
        *follows = found.wrapping_sub(*node) <= 1;
        *node = found;
        let is_ordinary = !self.has_special || self.dag.nodes[*node as usize].kind.is_ordinary();
        is_ordinary.then_some(*node)
    }

    fn connect_all(&mut self, above: &[u32], below: &[u32], weak: bool, span: Span) {
        for parent in above {
            for child in below {
                self.arc(DagArc { parent: *parent, child: *child, weak, pinned: false, span });
            }
        }
    }

    pub(super) fn connect(
        &mut self,
        parents: &[Token],
        children: &[Token],
        weak: bool,
        span: Span,
        scope: &Scope,
    ) {
        let Some(above) = self.ends(parents, "parents", false, scope) else { return };
        let Some(below) = self.ends(children, "children", true, scope) else { return };
        self.connect_all(&above, &below, weak, span);
    }

    /// The nodes that names in PARENT and CHILD stand for.
    fn ends(&mut self, names: &[Token], what: &str, initial: bool, scope: &Scope) -> Option<Vec<u32>> {
        let mut nodes = Vec::new();
        let mut fine = true;
        for name in names {
            match scope.names.get(&name.text) {
                Some(Named::Node(n)) => {
                    let kind = self.dag.nodes[*n as usize].kind;
                    if !kind.is_ordinary() {
                        let message = format!(
                            "the {} node `{}` can be neither parent nor child of another",
                            kind.word(),
                            name.text
                        );
                        self.error("dag-node", name.span, message);
                        fine = false;
                    }
                    nodes.push(*n);
                }
                Some(Named::Splice(s)) => nodes.extend(if initial { &s.initial } else { &s.terminal }),
                None if let Some(n) = self.inner(name, scope) => nodes.push(n),
                None => {
                    self.undefined(name, &format!("PARENT (among the {what})"), scope);
                    fine = false;
                }
            }
        }
        fine.then_some(nodes)
    }

    fn arc(&mut self, arc: DagArc) {
        self.connected[arc.child as usize][0] = true;
        self.connected[arc.parent as usize][1] = true;
        self.dag.arcs.push(arc);
    }

    /// Keeps the first of equal arcs. A strong dependency wins over a weak one.
    pub(super) fn unite_arcs(&mut self) {
        let arcs = &mut self.dag.arcs;
        // The arcs of each parent, one after the other.
        let mut ends = vec![0u32; self.dag.nodes.len() + 1];
        for arc in arcs.iter() {
            ends[arc.parent as usize + 1] += 1;
        }
        for node in 1..ends.len() {
            ends[node] += ends[node - 1];
        }
        let mut by_parent = vec![0u32; arcs.len()];
        for (number, arc) in (0..).zip(arcs.iter()) {
            let place = &mut ends[arc.parent as usize];
            by_parent[*place as usize] = number;
            *place += 1;
        }
        let mut first_to = vec![u32::MAX; self.dag.nodes.len()];
        let mut repeated: Vec<u32> = Vec::new();
        for number in by_parent {
            let arc = arcs[number as usize];
            match arcs.get_mut(first_to[arc.child as usize] as usize) {
                Some(first) if first.parent == arc.parent => {
                    first.weak &= arc.weak;
                    repeated.push(number);
                }
                _ => first_to[arc.child as usize] = number,
            }
        }
        if repeated.is_empty() {
            return;
        }
        repeated.sort_unstable();
        let mut number = 0;
        arcs.retain(|_| {
            number += 1;
            repeated.binary_search(&(number - 1)).is_err()
        });
    }

    /// HTCondor's checker does not look at pins, so what is wrong with them is a warning here, and an error when
    /// the DAG is to be run.
    pub(super) fn pin_problem(&mut self, span: Span, message: String) {
        self.diags.warning("dag-pins", span, "", message);
    }

    pub(super) fn connect_pins(&mut self, from: &Token, to: &Token, span: Span, scope: &Scope) {
        let splice = |name: &Token| match scope.names.get(&name.text) {
            Some(Named::Splice(s)) => Some(s),
            _ => None,
        };
        let (Some(above), Some(below)) = (splice(from), splice(to)) else {
            let missing = [from, to].into_iter().find(|name| splice(name).is_none()).unwrap_or(to);
            return self.pin_problem(missing.span, format!("CONNECT: there is no splice `{}`", missing.text));
        };
        let (out, into) = (&above.pins[0], &below.pins[1]);
        if out.is_empty() || out.len() != into.len() {
            let (one, other) = (out.len(), into.len());
            let message =
                format!("CONNECT: {one} pins out of `{}`, but {other} into `{}`", from.text, to.text);
            return self.pin_problem(span, message);
        }
        if let Some(missing) = out.iter().zip(into).position(|(o, i)| o.is_empty() || i.is_empty()) {
            return self.pin_problem(span, format!("CONNECT: no node is at pin {}", missing + 1));
        }
        if let Some(node) = below.initial.iter().find(|n| !into.iter().flatten().any(|p| p == *n)) {
            let name = &self.dag.nodes[*node as usize].name;
            let message = format!("CONNECT: `{name}`, which waits for nothing else, is at no pin");
            return self.pin_problem(span, message);
        }
        for (parents, children) in out.iter().zip(into) {
            for (parent, child) in parents.iter().flat_map(|p| children.iter().map(move |c| (*p, *c))) {
                self.arc(DagArc { parent, child, weak: false, pinned: true, span });
            }
        }
    }
}
