//! How long it is from each action to the end of the workflow: its critical path, as far as durations are known.

use crate::program::{ActionTemplate, Program};
use catena_model::Name;

/// The length of the longest way from the beginning of an action to the end of the workflow, for each action of each
/// body.
#[derive(Clone, Debug, Default)]
pub struct Paths(Vec<Vec<f64>>);

impl Paths {
    /// From an action of a body.
    pub(crate) fn from(&self, body: u32, action: u32) -> Option<f64> {
        self.0.get(body as usize)?.get(action as usize).copied()
    }
}

impl Program {
    /// All ways to the end, if a task of a service takes as long as is said. The iterations of a loop run side by side,
    /// so a loop takes as long as one of them.
    pub fn paths(&self, time: &dyn Fn(&Name) -> f64) -> Paths {
        let mut paths = Paths(self.bodies.iter().map(|b| vec![0.0; b.actions.len()]).collect());
        self.body_paths(0, 0.0, time, &mut paths);
        paths
    }

    /// The ways from the actions of a body after which so much follows. Returns the longest of them, less what follows.
    fn body_paths(&self, body: usize, after: f64, time: &dyn Fn(&Name) -> f64, paths: &mut Paths) -> f64 {
        let dag = self.dag(body);
        let mut longest: f64 = 0.0;
        for action in dag.topological_order().into_iter().rev() {
            let children = dag.children(action).iter().map(|c| paths.0[body][*c as usize]);
            let follows = children.fold(after, f64::max);
            let own = match &self.bodies[body].actions[action as usize] {
                ActionTemplate::Execute(t) => time(&self.services[t.service].service.id),
                ActionTemplate::First(_) => 0.0,
                ActionTemplate::For(t) => self.body_paths(t.body, follows, time, paths),
            };
            paths.0[body][action as usize] = own + follows;
            longest = longest.max(own + follows - after);
        }
        longest
    }
}
