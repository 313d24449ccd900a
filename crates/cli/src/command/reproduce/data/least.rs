//! What a placement would have had to move: what tasks read and their agents did not have yet.

use super::trial::Executed;
use catena_model::import::Trace;
use std::collections::HashSet;

/// How many bytes would have come to agents, if each task was executed once and where it was in the end.
pub(super) fn least_moved(trace: &Trace, executed: &[Executed]) -> u64 {
    let mut order: Vec<&Executed> = executed.iter().collect();
    order.sort_by(|a, b| a.start.total_cmp(&b.start));
    let mut held: HashSet<(&str, u32)> = HashSet::new();
    let mut moved = 0;
    for task in order {
        let job = &trace.jobs[task.job];
        for file in &job.inputs {
            if held.insert((&task.agent, *file)) {
                moved += trace.files[*file as usize].size;
            }
        }
        held.extend(job.outputs.iter().map(|file| (task.agent.as_str(), *file)));
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_model::import::{TraceFile, TraceJob};

    #[test]
    fn what_an_agent_has_read_or_written_does_not_come_again() {
        let job = |inputs: &[u32], outputs: &[u32]| TraceJob {
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
            ..TraceJob::default()
        };
        let files = [1, 10, 100].map(|size| TraceFile { size, ..TraceFile::default() }).to_vec();
        let jobs = vec![job(&[0], &[1]), job(&[0, 1], &[2]), job(&[1, 2], &[])];
        let trace = Trace { files, jobs, ..Trace::default() };
        let on = |agents: [&str; 3]| {
            let executed = agents.iter().enumerate().map(|(job, agent)| Executed {
                job,
                agent: (*agent).to_owned(),
                start: job as f64,
                end: job as f64 + 1.0,
            });
            least_moved(&trace, &executed.collect::<Vec<_>>())
        };
        assert_eq!((on(["a", "a", "a"]), on(["a", "b", "b"]), on(["a", "b", "c"])), (1, 12, 122));
    }
}
