//! Random workflows.

use super::recorder::Recorder;
use catena_model::import::Trace;

/// Layers of jobs, each of which reads what one to three random ones of the layer before have written. There are about
/// as many layers as jobs in a layer, but never more than fifty.
pub(super) fn layered(jobs: usize, seed: u64) -> Trace {
    let mut r = Recorder::new(jobs, seed);
    let width = jobs.isqrt().max(jobs / 50);
    for job in 0..jobs {
        let size = r.skewed(20e6, 17e6);
        let output = r.file(format!("data_{job:05}"), size);
        let layer = job / width;
        let inputs = if layer == 0 {
            let size = r.skewed(20e6, 17e6);
            vec![r.file(format!("start_{job:05}"), size)]
        } else {
            let mut inputs = Vec::new();
            for _ in 0..=r.below(3) {
                let from = ((layer - 1) * width + r.below(width)) as u32;
                // Those of the first layer come with a file that they read.
                let file = if layer == 1 { 2 * from } else { from + width as u32 };
                if !inputs.contains(&file) {
                    inputs.push(file);
                }
            }
            inputs
        };
        let seconds = r.skewed(30.0, 25.0);
        r.job("work", seconds, inputs, vec![output]);
    }
    r.finish()
}
