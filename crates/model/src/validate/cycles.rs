//! Finds actions that wait for each other.

use super::used_vars;
use crate::workflow::Action;
use std::collections::HashMap;

/// Which action waits for which. A for-each action has two nodes: its beginning, for which the actions
/// inside wait, and its end, which waits for them.
pub(super) struct WaitGraph<'w> {
    nodes: Vec<&'w Action>,
    waits_for: Vec<Vec<usize>>,
}

impl<'w> WaitGraph<'w> {
    pub(super) fn new(actions: &'w [Action]) -> Self {
        let mut graph = Self { nodes: Vec::new(), waits_for: Vec::new() };
        let mut begins = Vec::new();
        let mut ends: HashMap<&'w str, usize> = HashMap::new();
        let mut producers: HashMap<&'w str, usize> = HashMap::new();
        graph.add(actions, None, &mut begins, &mut ends, &mut producers);
        for (action, begin) in begins {
            let dependencies = action.depends_on().iter().filter_map(|d| ends.get(d.id.as_str()));
            let inputs = used_vars(action).filter_map(|(id, _)| producers.get(id.as_str()));
            graph.waits_for[begin].extend(dependencies.chain(inputs));
        }
        graph
    }

    fn add(
        &mut self,
        actions: &'w [Action],
        parent: Option<(usize, usize)>,
        begins: &mut Vec<(&'w Action, usize)>,
        ends: &mut HashMap<&'w str, usize>,
        producers: &mut HashMap<&'w str, usize>,
    ) {
        for action in actions {
            let begin = self.node(action);
            let mut end = begin;
            if let Action::For(a) = action {
                end = self.node(action);
                self.waits_for[end].push(begin);
                producers.extend(a.enumerators().map(|e| (e.id.as_str(), begin)));
                self.add(&a.actions, Some((begin, end)), begins, ends, producers);
            }
            if let Some((parent_begin, parent_end)) = parent {
                self.waits_for[begin].push(parent_begin);
                self.waits_for[parent_end].push(end);
            }
            begins.push((action, begin));
            ends.entry(action.id()).or_insert(end);
            for (id, _) in action.output_vars() {
                producers.entry(id).or_insert(end);
            }
        }
    }

    fn node(&mut self, action: &'w Action) -> usize {
        self.nodes.push(action);
        self.waits_for.push(Vec::new());
        self.nodes.len() - 1
    }

    /// Tarjan's strongly connected components with more than one action, or one that waits for itself.
    pub(super) fn cycles(&self) -> Vec<Vec<&'w Action>> {
        const UNSEEN: u32 = u32::MAX;
        let n = self.nodes.len();
        let mut index = vec![UNSEEN; n];
        let mut low = vec![0u32; n];
        let mut on_stack = vec![false; n];
        let mut stack = Vec::new();
        let mut next = 0;
        let mut out = Vec::new();
        let mut work: Vec<(usize, usize)> = Vec::new();
        for root in 0..n {
            if index[root] != UNSEEN {
                continue;
            }
            work.push((root, 0));
            while let Some(&(v, edge)) = work.last() {
                if edge == 0 {
                    index[v] = next;
                    low[v] = next;
                    next += 1;
                    stack.push(v);
                    on_stack[v] = true;
                }
                if let Some(&w) = self.waits_for[v].get(edge) {
                    work.last_mut().expect("not empty").1 += 1;
                    if index[w] == UNSEEN {
                        work.push((w, 0));
                    } else if on_stack[w] {
                        low[v] = low[v].min(index[w]);
                    }
                    continue;
                }
                work.pop();
                if let Some(&(parent, _)) = work.last() {
                    low[parent] = low[parent].min(low[v]);
                }
                if low[v] == index[v] {
                    let mut component = Vec::new();
                    loop {
                        let w = stack.pop().expect("v is on the stack");
                        on_stack[w] = false;
                        component.push(w);
                        if w == v {
                            break;
                        }
                    }
                    if component.len() > 1 || self.waits_for[v].contains(&v) {
                        component.sort_unstable();
                        let mut actions: Vec<&Action> = component.iter().map(|i| self.nodes[*i]).collect();
                        actions.dedup_by_key(|a| a.span());
                        out.push(actions);
                    }
                }
            }
        }
        out
    }
}
