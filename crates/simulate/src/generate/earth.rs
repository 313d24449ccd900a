//! Workflows of the earth sciences.

use super::recorder::{Recorder, interpolate, share};
use catena_model::import::Trace;

/// CyberShake: from tensors of how the ground moves, parts are extracted for each rupture; of these, each variation of
/// the rupture gives a seismogram, and each seismogram its peaks. Both are put into archives.
pub(super) fn cybershake(jobs: usize, seed: u64) -> Trace {
    let mut r = Recorder::new(jobs, seed);
    // Each rupture has at least one variation; two jobs for each variation are left over.
    let ruptures = interpolate(&[(30, 2.0), (100, 8.0), (1000, 4.0)], jobs).round() as usize;
    let ruptures = ruptures.max(jobs / 250).min((jobs - 2) / 3);
    let ruptures = ruptures - (jobs - ruptures) % 2;
    let variations = (jobs - 2 - ruptures) / 2;
    let mut seismograms = Vec::with_capacity(variations);
    let mut peaks = Vec::with_capacity(variations);
    for rupture in 0..ruptures {
        let size = r.between(19.6e9, 20.4e9);
        let tensors = ["fx", "fy"].map(|axis| r.file(format!("rupture{rupture}_{axis}.sgt"), size));
        let variation = r.between(2e6, 4e6);
        let variation = r.file(format!("rupture{rupture}_variation"), variation);
        let size = r.between(150e6, 350e6);
        let parts = ["subfx", "subfy"].map(|axis| r.file(format!("rupture{rupture}_{axis}.sgt"), size));
        let seconds = r.between(80.0, 200.0);
        r.job("ExtractSGT", seconds, vec![tensors[0], tensors[1], variation], parts.to_vec());
        for n in 0..share(variations, ruptures, rupture) {
            let size = r.between(2e6, 4e6);
            let variation = r.file(format!("rupture{rupture}_variation{n:04}"), size);
            let seismogram = r.file(format!("seismogram{rupture}_{n:04}.grm"), 24_000.0);
            let peak = r.file(format!("peaks{rupture}_{n:04}.bsa"), 216.0);
            let seconds = r.between(21.8, 65.1);
            r.job("SeismogramSynthesis", seconds, vec![parts[0], parts[1], variation], vec![seismogram]);
            let seconds = r.between(0.54, 1.63);
            r.job("PeakValCalcOkaya", seconds, vec![seismogram], vec![peak]);
            seismograms.push(seismogram);
            peaks.push(peak);
        }
    }
    let count = variations as f64;
    let archive = r.file("seismograms.zip", 4200.0 * count);
    let seconds = r.between(0.017, 0.02) * count;
    r.job("ZipSeis", seconds, seismograms, vec![archive]);
    let archive = r.file("peaks.zip", 21.0 * count);
    let seconds = r.between(0.007, 0.008) * count;
    r.job("ZipPSA", seconds, peaks, vec![archive]);
    r.named("cybershake")
}
