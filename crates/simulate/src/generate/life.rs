//! Workflows of the life sciences.

use super::recorder::{Recorder, interpolate, share};
use catena_model::import::Trace;

/// Epigenomics: the reads of each lane are split; each part is cleaned, converted twice and mapped to the genome; what
/// was mapped is merged, indexed and piled up.
pub(super) fn epigenomics(jobs: usize, seed: u64) -> Trace {
    let mut r = Recorder::new(jobs, seed);
    let lanes = ((jobs + 71) / 142).max(1);
    let others = 2 * lanes + 2 + usize::from(lanes > 1);
    let parts = (jobs - others) / 4;
    // What is left over merges some of the first lane's parts beforehand.
    let early = (jobs - others) % 4;
    let measured = |at: [f64; 3]| interpolate(&[(24, at[0]), (100, at[1]), (997, at[2])], jobs);
    let genome_size = measured([1.25e9, 5.3e9, 5.3e9]);
    let genome = r.file("genome.bfa", genome_size);
    let mut merged = Vec::with_capacity(lanes);
    for lane in 0..lanes {
        let parts = share(parts, lanes, lane);
        let mut maps = lane_of_reads(&mut r, lane, parts, genome, &measured);
        if lane == 0 {
            let each = maps.len().div_ceil(early + 1).max(1);
            for n in 0..early {
                let some = maps.split_off(maps.len().saturating_sub(each));
                let map = merge(&mut r, format!("part{n}.map"), some);
                maps.insert(0, map);
            }
        }
        merged.push(merge(&mut r, format!("lane{lane:03}.map"), maps));
    }
    let all = if lanes > 1 { merge(&mut r, "all.map".to_owned(), merged) } else { merged[0] };
    let bytes = r.size(&[all]);
    let index = r.file("all.index.map", bytes * 0.0175);
    r.job("maqindex", bytes * 1e-9, vec![all], vec![index]);
    let reference = r.file("reference.bfa", genome_size);
    let piled = r.file("all.pileup", measured([3.8e6, 3e6, 9.4e6]));
    let seconds = measured([1375.0, 6255.0, 6034.0]) * r.between(0.97, 1.03);
    r.job("pileup", seconds, vec![index, reference], vec![piled]);
    r.named("epigenomics")
}

/// Splits a lane, cleans, converts and maps its parts.
fn lane_of_reads(
    r: &mut Recorder,
    lane: usize,
    parts: usize,
    genome: u32,
    measured: &dyn Fn([f64; 3]) -> f64,
) -> Vec<u32> {
    let (mean, deviation) = (measured([89.4e6, 9.8e6, 10.55e6]), measured([7.6e6, 4.2e6, 8.4e6]));
    let pieces: Vec<u32> = (0..parts)
        .map(|n| {
            let size = r.skewed(mean, deviation);
            r.file(format!("reads{lane:03}_{n:03}.sfq"), size)
        })
        .collect();
    let total = r.size(&pieces);
    let reads = r.file(format!("reads{lane:03}.sfq"), total);
    let seconds = total * r.between(1.3e-7, 1.7e-7);
    r.job("fastqSplit", seconds, vec![reads], pieces.clone());
    let mut maps = Vec::with_capacity(parts);
    for (n, piece) in pieces.into_iter().enumerate() {
        let bytes = r.size(&[piece]);
        let name = |suffix: &str| format!("reads{lane:03}_{n:03}.{suffix}");
        let clean = bytes * r.between(0.47, 0.53);
        let outputs = [r.file(name("nocontam.sfq"), clean), r.file(name("contam.sfq"), bytes - clean)];
        let seconds = bytes * r.between(0.8e-7, 1.6e-7);
        r.job("filterContams", seconds, vec![piece], outputs.to_vec());
        let converted = r.file(name("fq"), clean * 0.8);
        let seconds = clean * r.between(0.5e-7, 0.9e-7);
        r.job("sol2sanger", seconds, vec![outputs[0]], vec![converted]);
        let packed = r.file(name("bfq"), clean * 0.19);
        let seconds = clean * r.between(0.9e-7, 1.4e-7);
        r.job("fastq2bfq", seconds, vec![converted], vec![packed]);
        let map = r.file(name("map"), clean * 0.207);
        let seconds = r.skewed(measured([3228.0, 16_544.0, 15_704.0]), measured([576.0, 3557.0, 4072.0]));
        r.job("map", seconds, vec![genome, packed], vec![map]);
        maps.push(map);
    }
    maps
}

fn merge(r: &mut Recorder, name: String, maps: Vec<u32>) -> u32 {
    let bytes = r.size(&maps);
    let map = r.file(name, bytes * 0.97);
    let seconds = bytes * r.between(4e-7, 7e-7);
    r.job("mapMerge", seconds, maps, vec![map]);
    map
}

/// Sipht: for each genome of a bacterium, terminators and motifs are sought and its sequences compared with those of all
/// others; candidates are predicted, compared again, and annotated with what binds to them.
pub(super) fn sipht(jobs: usize, seed: u64) -> Trace {
    let mut r = Recorder::new(jobs, seed);
    let genomes = ((jobs + 15) / 30).clamp(1, jobs / 13);
    let patsers = jobs - 12 * genomes;
    let partners: Vec<u32> = (0..890)
        .map(|n| {
            let size = r.between(150e3, 425e3);
            r.file(format!("partners{n:03}.txt"), size)
        })
        .collect();
    let tools = [("blast", 787e3), ("xdformat", 380e3), ("time", 12e3)].map(|(n, s)| r.file(n, s));
    let known = [("known.txt", 1.03e6), ("access.txt", 84e3), ("flanking.txt", 1.42e6), ("igrs.txt", 172e3)];
    let [known, access, flanking, igrs] = known.map(|(n, s)| r.file(n, s));
    let [fold, descriptor, terms] =
        [("fold", 592e3), ("descriptor.txt", 18e3), ("expterm.dat", 46e3)].map(|(n, s)| r.file(n, s));
    let alphabet = r.file("alphabet", 16.0);
    for g in 0..genomes {
        let name = |suffix: &str| format!("genome{g:04}{suffix}");
        let size = r.between(5e6, 8e6);
        let sequence = r.file(name(".fna"), size);
        let [table, features, genes] =
            [(".ptt", 350e3), (".gbk", 14e6), (".ffn", 3.9e6)].map(|(s, size)| r.file(name(s), size));
        let mut found = Vec::new();
        for n in 0..share(patsers, genomes, g) {
            let size = r.between(46e3, 137e3);
            let matrix = r.file(name(&format!("_matrix{n:02}")), 171e3);
            let out = r.file(name(&format!("_patser{n:02}")), size);
            let seconds = r.between(0.74, 1.8);
            r.job("Patser", seconds, vec![sequence, matrix, alphabet], vec![out]);
            found.push(out);
        }
        let all = r.size(&found);
        let bound = r.file(name("_patser"), all);
        let seconds = r.around(0.07, 0.02);
        r.job("Patser_concate", seconds, found, vec![bound]);
        let mut step = |program, mean, deviation, inputs: Vec<u32>, outputs: &[(&str, f64)]| {
            let outputs: Vec<u32> = outputs
                .iter()
                .map(|(suffix, size)| {
                    let size = r.around(*size, size / 6.0);
                    r.file(name(suffix), size)
                })
                .collect();
            let seconds = r.around(mean, deviation);
            r.job(program, seconds, inputs, outputs.clone());
            outputs
        };
        let folds = [("_term", 18e6), ("_term_in", 4.2e6), ("_term_out", 5.2e6), ("_term_index", 6e6)];
        let folds = step("Findterm", 1325.0, 390.0, vec![sequence, fold], &folds);
        let motifs = step("RNAMotif", 34.0, 7.3, vec![sequence, descriptor], &[("_motifs", 1.06e6)]);
        let ends = step("Transterm", 60.0, 11.5, vec![sequence, terms, table], &[("_transterm", 439e3)]);
        let compared = [("_blast", 5.3e6), ("_blast.out", 512.0)];
        let compared = step("Blast", 2170.0, 600.0, [&tools[..], &partners].concat(), &compared);
        let inputs =
            [&folds[..], &motifs, &ends, &compared, &[access, features, sequence, table, known]].concat();
        let outputs = [("_seq", 84e3), ("_srna", 340e3), ("_blast_out", 3e6), ("_blast_parsed", 2.7e6)];
        let candidates = step("SRNA", 375.0, 98.0, inputs, &outputs);
        let seq = candidates[0];
        let parsed = step("FFN_Parse", 1.6, 0.22, vec![genes, table, seq], &[("_parsed.ffn", 800e3)])[0];
        let tooled = |more: &[u32]| [&tools[..], more, &[seq]].concat();
        let mut annotated = vec![bound, access, candidates[1]];
        annotated.extend(step("Blast_candidate", 5.2, 0.83, tooled(&[igrs]), &[("_candidate", 10e3)]));
        annotated.extend(step("Blast_QRNA", 1385.0, 100.0, tooled(&partners), &[("_qrna", 4.3e6)]));
        annotated.extend(step("Blast_paralogues", 5.3, 1.2, tooled(&[]), &[("_paralogues", 700e3)]));
        let synteny = tooled(&[flanking, parsed]);
        annotated.extend(step("Blast_synteny", 33.0, 0.0, synteny, &[("_synteny", 1.14e6)]));
        step("SRNA_annotate", 1.67, 0.4, annotated, &[("_annotated", 1.28e6)]);
    }
    r.named("sipht")
}

/// Functional magnetic resonance imaging: images of a brain are aligned with a first one, resliced and smoothed. A handle
/// of jobs one after the other, a fork each of whose jobs also waits for a job of its own, a join, another fork and the
/// last join. No record of it is public; runtimes and sizes are of the order that its authors tell.
pub(super) fn airsn(jobs: usize, seed: u64) -> Trace {
    let mut r = Recorder::new(jobs, seed);
    // A fringe and two jobs of the forks for each volume, and two joins.
    let handle = (jobs / 20).clamp(1, 21);
    let volumes = (jobs - 2 - handle) / 3;
    let handle = jobs - 2 - 3 * volumes;
    let volume = |r: &mut Recorder, name: String| {
        let size = r.around(400e3, 10e3);
        [r.file(format!("{name}.img"), size), r.file(format!("{name}.hdr"), 348.0)]
    };
    let mut model = volume(&mut r, "anatomy".to_owned());
    for n in 0..handle {
        let next = volume(&mut r, format!("model{n:02}"));
        let seconds = r.skewed(40.0, 20.0);
        r.job("prepare", seconds, model.to_vec(), next.to_vec());
        model = next;
    }
    let mut aligned = Vec::with_capacity(2 * volumes);
    for n in 0..volumes {
        let raw = volume(&mut r, format!("raw{n:05}"));
        let turned = volume(&mut r, format!("turned{n:05}"));
        let seconds = r.around(4.0, 0.8);
        r.job("reorient", seconds, raw.to_vec(), turned.to_vec());
        let out = volume(&mut r, format!("aligned{n:05}"));
        let seconds = r.skewed(30.0, 8.0);
        r.job("align", seconds, [model, turned].concat(), out.to_vec());
        aligned.push(out);
    }
    let mean = volume(&mut r, "mean".to_owned());
    let seconds = 5.0 + 0.05 * volumes as f64;
    r.job("mean", seconds, aligned.concat(), mean.to_vec());
    let mut smoothed = Vec::with_capacity(2 * volumes);
    for (n, volume_aligned) in aligned.iter().enumerate() {
        let out = volume(&mut r, format!("smoothed{n:05}"));
        let seconds = r.skewed(15.0, 4.0);
        r.job("reslice", seconds, vec![volume_aligned[0], volume_aligned[1], mean[0], mean[1]], out.to_vec());
        smoothed.extend(out);
    }
    let result = volume(&mut r, "activity".to_owned());
    let seconds = 10.0 + 0.1 * volumes as f64;
    r.job("analyse", seconds, smoothed, result.to_vec());
    r.named("airsn")
}
