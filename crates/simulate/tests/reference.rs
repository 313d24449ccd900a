//! What simulations must come to: on workflows of the same shapes as those of the paper on ADAGE, which everybody can
//! generate, and on those workflows themselves, beside what their authors' code has computed.
//!
//! The latter are third-party data that is not part of this repository; without it these cases are reported as ignored.

use catena_model::import::{read_dax, read_wfformat};
use catena_simulate::generate::Kind;
use catena_simulate::{Chance, Cluster, PolicyName, Workload, seconds, simulate};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};

/// Twice as many nodes again and again.
const NODES: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

fn main() {
    let shared = std::env::var_os("CATENA_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let paper = [Kind::CyberShake, Kind::Epigenomics, Kind::Inspiral, Kind::Montage, Kind::Sipht];
    let mut trials = Vec::new();
    for kind in paper {
        let make = move || Workload::new(&kind.trace(1000, 1), true).unwrap();
        trials.extend(claims(kind.name(), make));
    }
    let dax = shared.join("data/dax");
    match std::fs::read_to_string(dax.join("reference-makespans.csv")) {
        Ok(table) => trials.extend(references(&dax, &table)),
        Err(_) => trials.push(Trial::test("reference_makespans", || Ok(())).with_ignored_flag(true)),
    }
    match std::fs::read_dir(shared.join("data/wfformat")) {
        Ok(entries) => {
            let files = entries.flatten().map(|e| e.path());
            let files = files.filter(|p| p.extension().is_some_and(|e| e == "json"));
            trials.extend(files.map(|p| {
                let name = p.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                Trial::test(format!("{name} with as many nodes as tasks"), move || endless(&p))
            }));
        }
        Err(_) => trials.push(Trial::test("wfformat_instances", || Ok(())).with_ignored_flag(true)),
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// What must hold for a workflow of about a thousand tasks.
fn claims(name: &str, make: impl Fn() -> Workload + Send + Copy + 'static) -> Vec<Trial> {
    vec![
        Trial::test(format!("{name}: online, but as good as with full knowledge"), move || as_good(&make())),
        Trial::test(format!("{name}: data on nodes"), move || local(&make())),
        Trial::test(format!("{name}: durations that nobody knows"), move || uncertain(&make())),
    ]
}

/// Makespan in seconds, and bytes moved.
fn run(workload: &Workload, cluster: &Cluster, policy: PolicyName, seed: u64) -> (f64, f64) {
    let mut strategy = policy.strategy(workload, cluster, seed).unwrap();
    let outcome = simulate(workload, cluster, &mut *strategy, seed).unwrap();
    (seconds(outcome.makespan), outcome.bytes_moved as f64)
}

fn geometric(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0.0), |(sum, n), v| (sum + f64::ln(v), n + 1.0));
    (sum / count).exp()
}

fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(what().into()) }
}

fn as_good(workload: &Workload) -> Result<(), Failed> {
    let mut ratios = Vec::new();
    for nodes in NODES {
        let cluster = Cluster::adage().with_nodes(nodes);
        let of = |policy| run(workload, &cluster, policy, 1).0;
        let (catena, heft) = (of(PolicyName::Catena), of(PolicyName::Heft));
        let simple = of(PolicyName::Fcfs).min(of(PolicyName::MinMin));
        ratios.push(catena / heft);
        require(catena <= 1.08 * heft, || format!("{nodes} nodes: {catena} s, heft {heft} s"))?;
        require(catena <= 1.02 * simple, || format!("{nodes} nodes: {catena} s, the simplest {simple} s"))?;
    }
    let mean = geometric(ratios);
    require(mean <= 1.01, || format!("{mean} × heft"))
}

/// Fewer bytes than others on the whole, at no cost that matters.
fn local(workload: &Workload) -> Result<(), Failed> {
    let (mut times, mut bytes) = (Vec::new(), Vec::new());
    for nodes in NODES {
        let cluster = Cluster::adage_local().with_nodes(nodes);
        let of = |policy| run(workload, &cluster, policy, 1);
        let (catena, heft, adage) = (of(PolicyName::Catena), of(PolicyName::Heft), of(PolicyName::Adage));
        let time = catena.0 / heft.0.min(adage.0);
        require(time <= 1.05, || format!("{nodes} nodes: {time} × the best"))?;
        times.push(time);
        bytes.push(catena.1 / heft.1.min(adage.1));
    }
    let mean = geometric(bytes);
    require(mean <= 1.1, || format!("{mean} × the bytes of the best"))
}

fn uncertain(workload: &Workload) -> Result<(), Failed> {
    let chance = Chance { spread: 0.3, stragglers: 0.05, factor: 5.0, ..Chance::default() };
    let mut ratios = Vec::new();
    for nodes in NODES {
        let cluster = Cluster { chance, ..Cluster::adage() }.with_nodes(nodes);
        let of = |policy| geometric((1..=3).map(|seed| run(workload, &cluster, policy, seed).0));
        ratios.push(of(PolicyName::Catena) / of(PolicyName::Adage));
    }
    let mean = geometric(ratios);
    require(mean <= 0.9, || format!("{mean} × adage"))
}

/// Beside what others have computed.
fn references(dax: &Path, table: &str) -> Vec<Trial> {
    let mut files: Vec<String> =
        table.lines().skip(1).filter_map(|l| l.split(',').next()).map(str::to_owned).collect();
    files.dedup();
    let mut trials = Vec::new();
    for file in files {
        let rows: Vec<Vec<Option<f64>>> = table
            .lines()
            .filter(|l| l.starts_with(&file))
            .map(|l| l.split(',').map(|v| v.parse().ok()).collect())
            .collect();
        let path = dax.join(&file);
        let make = move || {
            let text = std::fs::read_to_string(&path).unwrap();
            Workload::new(&read_dax(&text).unwrap(), true).unwrap()
        };
        let of_claims = make.clone();
        trials.push(Trial::test(format!("{file}: beside the authors' code"), move || beside(&make(), &rows)));
        trials.push(Trial::test(format!("{file}: online, but as good as with full knowledge"), move || {
            let workload = of_claims();
            as_good(&workload)?;
            local(&workload)?;
            uncertain(&workload)
        }));
    }
    trials
}

fn beside(workload: &Workload, rows: &[Vec<Option<f64>>]) -> Result<(), Failed> {
    let mut off = Vec::new();
    let mut gains = Vec::new();
    for row in rows {
        let nodes = row[1].unwrap_or(1.0) as u32;
        let cluster = Cluster::adage().with_nodes(nodes);
        let close = |policy, expected: Option<f64>, by: f64| -> Result<f64, Failed> {
            let Some(expected) = expected else { return Ok(1.0) };
            let seeds = if policy == PolicyName::Adage { 5 } else { 1 };
            let mean =
                (1..=seeds).map(|seed| run(workload, &cluster, policy, seed).0).sum::<f64>() / seeds as f64;
            let ratio = mean / expected;
            require((ratio - 1.0).abs() <= by, || {
                format!("{nodes} nodes, {policy}: {mean} s, not {expected} s")
            })?;
            Ok(ratio)
        };
        off.push((close(PolicyName::Adage, row[2], 0.15)? - 1.0).abs());
        close(PolicyName::Fcfs, row[5], 0.015)?;
        close(PolicyName::MinMin, row[6], 0.005)?;
        close(PolicyName::Heft, row[8], 0.001)?;
        let bound = seconds(cluster.lower_bound(workload));
        let expected = row[7].unwrap_or(bound);
        require((bound / expected - 1.0).abs() < 1e-4, || {
            format!("{nodes} nodes: bound {bound}, not {expected}")
        })?;
        let local = run(workload, &Cluster::adage_local().with_nodes(nodes), PolicyName::Heft, 1).0;
        let expected = row[9].unwrap_or(local);
        require((local / expected - 1.0).abs() < 0.003, || {
            format!("{nodes} nodes: {local} s, not {expected} s")
        })?;
        if let Some(adage) = row[2] {
            let catena = run(workload, &cluster, PolicyName::Catena, 1).0;
            require(catena <= adage * 1.000_1, || format!("{nodes} nodes: {catena} s, adage {adage} s"))?;
            if (16..=512).contains(&nodes) {
                gains.push(catena / adage);
            }
        }
    }
    let (mean, gain) = (off.iter().sum::<f64>() / off.len() as f64, geometric(gains));
    require(mean <= 0.05, || format!("adage is off by {mean} on average"))?;
    require(gain <= 0.92, || format!("{gain} × the authors' adage"))
}

/// With as many nodes as tasks, the longest path decides.
fn endless(path: &Path) -> Result<(), Failed> {
    let trace = read_wfformat(&std::fs::read_to_string(path)?)?;
    let workload = Workload::new(&trace, true).map_err(|e| e.to_string())?;
    let cluster = Cluster::adage().with_nodes(workload.len() as u32);
    for policy in [PolicyName::Catena, PolicyName::Fcfs, PolicyName::Heft] {
        let mut strategy = policy.strategy(&workload, &cluster, 1)?;
        let makespan = simulate(&workload, &cluster, &mut *strategy, 1)?.makespan;
        let bound = cluster.lower_bound(&workload);
        require(makespan == bound, || format!("{policy}: {makespan} ns, the longest path takes {bound} ns"))?;
    }
    Ok(())
}
