//! Random workflows.

use super::recorder::Recorder;
use catena_model::import::Trace;

/// Layers of jobs, each of which reads what about `parents` random ones of the layer before have written; with `skips`
/// some of these are of earlier layers. Without a `width`, there are about as many layers as jobs in a layer, but never
/// more than fifty.
pub fn layered_trace(jobs: usize, width: Option<usize>, parents: usize, skips: bool, seed: u64) -> Trace {
    let mut r = Recorder::new(jobs, seed);
    let width = width.unwrap_or(jobs.isqrt().max(jobs / 50)).max(1);
    let mut outputs = Vec::with_capacity(jobs);
    for job in 0..jobs {
        let layer = job / width;
        let inputs = if layer == 0 {
            let size = r.skewed(20e6, 17e6);
            vec![r.file(format!("start_{job:05}"), size)]
        } else {
            let count = 1 + r.below(2 * parents.max(1) - 1);
            let mut inputs = Vec::with_capacity(count);
            for _ in 0..count {
                let back = if skips && r.below(8) == 0 { 1 + r.below(layer) } else { 1 };
                let file = outputs[(layer - back) * width + r.below(width)];
                if !inputs.contains(&file) {
                    inputs.push(file);
                }
            }
            inputs
        };
        let size = r.skewed(20e6, 17e6);
        let output = r.file(format!("data_{job:05}"), size);
        outputs.push(output);
        let seconds = r.skewed(30.0, 25.0);
        r.job("work", seconds, inputs, vec![output]);
    }
    r.named("layered")
}
