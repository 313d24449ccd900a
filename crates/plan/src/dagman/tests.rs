use super::*;
use catena_model::chain::{ProcessChain, TaskFailure, TaskResult};
use catena_model::dagman::{DagFile, DagNode, GetEnv, Submission, SubmitJob, load_dag};
use catena_model::{Name, Resources};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Every node has the jobs that its description says: a number. `missing` is no description.
struct Numbers;

impl Submitter for Numbers {
    fn jobs(&mut self, _: &DagFile, node: &DagNode, macros: &JobMacros) -> Result<Submission, String> {
        let catena_model::dagman::Submit::Named(name) = &node.submit else { return Err("inline".into()) };
        if name == "missing" {
            return Err("there is no such file".into());
        }
        let n = name.parse().unwrap_or(1);
        let parents = Name::from(macros.parents.join(","));
        Ok(Submission { jobs: vec![job(vec![parents]); n], warnings: Vec::new() })
    }

    fn open(&mut self, node: &DagNode) -> Result<DagFile, String> {
        let catena_model::dagman::Submit::Named(name) = &node.submit else { return Err("inline".into()) };
        Ok(read(&name.replace(';', "\n").replace('_', " ")))
    }

    fn failed(&mut self, _: DagView<'_>) {}
}

fn job(arguments: Vec<Name>) -> SubmitJob {
    SubmitJob {
        executable: "/bin/true".into(),
        arguments,
        environment: Vec::new(),
        getenv: GetEnv::No,
        directory: PathBuf::from("/"),
        input: None,
        output: None,
        error: None,
        log: None,
        resources: Resources::default(),
        capabilities: Vec::new(),
        priority: None,
        max_retries: None,
        retry_until: None,
        success_exit_code: 0,
        transfer: None,
        max_runtime: None,
        noop: false,
    }
}

fn read(text: &str) -> DagFile {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.dag");
    std::fs::write(&path, text).unwrap();
    let loaded = load_dag(&path);
    assert!(!loaded.diags.has_errors(), "{:?}", loaded.diags.iter().map(|d| &d.message).collect::<Vec<_>>());
    loaded.dag
}

fn result(code: i32) -> Vec<TaskResult> {
    let failed = || Box::new(TaskFailure { exit_code: Some(code), ..TaskFailure::default() });
    vec![TaskResult { failure: (code != 0).then(failed), ..TaskResult::default() }]
}

/// A DAG and what it has been told.
struct Run {
    plan: DagPlan,
    live: Vec<(u64, ProcessChain)>,
    started: Vec<Name>,
    ended: Vec<KnownChain>,
    codes: HashMap<&'static str, i32>,
    stopped: Vec<u64>,
}

impl Run {
    fn new(text: &str, options: DagOptions, codes: &[(&'static str, i32)]) -> Self {
        let plan = DagPlan::new(read(text), options, Box::new(Numbers), Vec::new());
        let codes = codes.iter().copied().collect();
        Self { plan, live: Vec::new(), started: Vec::new(), ended: Vec::new(), codes, stopped: Vec::new() }
    }

    fn start_all(&mut self) {
        let mut seq = self.plan.chain_count();
        while let Some(chain) = self.plan.next_chain() {
            self.started.push(chain.id.clone());
            self.live.push((seq, chain));
            seq = self.plan.chain_count();
        }
    }

    /// Ends the chain that was started first, or one that nobody wants any more.
    fn step(&mut self) -> bool {
        self.start_all();
        let unwanted = self.plan.take_unwanted();
        for seq in unwanted {
            self.stopped.push(seq);
            let Some(at) = self.live.iter().position(|(s, _)| *s == seq) else { continue };
            let (seq, chain) = self.live.remove(at);
            self.end(seq, chain.id, REMOVED as i32);
        }
        self.start_all();
        if self.live.is_empty() {
            return false;
        }
        let (seq, chain) = self.live.remove(0);
        let code = self.codes.get(chain.id.as_str()).copied().unwrap_or(0);
        self.end(seq, chain.id, code);
        true
    }

    fn end(&mut self, seq: u64, id: Name, code: i32) {
        let results = result(code);
        self.plan.chain_ended(seq, &results);
        self.ended.push(KnownChain { seq, id, results: Some(results) });
    }

    fn finish(mut self) -> Self {
        while self.step() {}
        assert!(self.plan.is_finished(), "{:?}", self.plan);
        self
    }

    fn end_of_dag(&self) -> DagEnd {
        self.plan.view(0).end().unwrap()
    }

    fn statuses(&self) -> BTreeMap<String, NodeStatus> {
        let view = self.plan.view(0);
        view.file().nodes.iter().map(|n| n.name.to_string()).zip(view.statuses()).collect()
    }
}

fn run(text: &str, codes: &[(&'static str, i32)]) -> Run {
    Run::new(text, DagOptions::default(), codes).finish()
}

const WITH_SCRIPTS: &str = "JOB A 1\nSCRIPT PRE A pre $NODE\nSCRIPT POST A post $RETURN $PRE_SCRIPT_RETURN\n";

#[test]
fn a_diamond_runs_level_by_level_and_jobs_know_their_parents() {
    let mut run = Run::new(
        "JOB A 1\nJOB B 1\nJOB C 1\nJOB D 1\nPARENT A CHILD B C\nPARENT B C CHILD D",
        DagOptions::default(),
        &[],
    );
    run.start_all();
    assert_eq!(run.started, ["A"]);
    let run = run.finish();
    assert_eq!(run.started, ["A", "B", "C", "D"]);
    assert_eq!(run.end_of_dag(), DagEnd { code: 0, failed: 0, futile: 0, aborted: false });
}

#[test]
fn the_post_script_decides_whatever_the_job_did() {
    for (codes, started, status) in [
        (&[][..], 3, NodeStatus::Done),
        (&[("A", 1)], 3, NodeStatus::Done),
        (&[("A POST", 1)], 3, NodeStatus::Error),
        (&[("A PRE", 1)], 1, NodeStatus::Error),
    ] {
        let run = run(WITH_SCRIPTS, codes);
        assert_eq!((run.started.len(), run.statuses()["A"]), (started, status), "{codes:?}");
    }
}

#[test]
fn a_post_script_runs_after_a_failed_pre_script_only_where_that_is_asked_for() {
    let options = DagOptions { always_run_post: true, ..DagOptions::default() };
    let mut run = Run::new(WITH_SCRIPTS, options, &[("A PRE", 7)]);
    run.start_all();
    let (seq, chain) = run.live.remove(0);
    run.end(seq, chain.id, 7);
    run.start_all();
    let post = &run.live[0].1.executables[0];
    let arguments: Vec<&str> = post.arguments.iter().map(|a| a.variable.value.as_str()).collect();
    assert_eq!(arguments, ["-1004", "7"]);
    assert_eq!(run.finish().statuses()["A"], NodeStatus::Done);
}

#[test]
fn a_pre_script_that_succeeds_stops_nothing() {
    let run = run("JOB A 1\nSCRIPT PRE A pre\nABORT-DAG-ON A 0\nJOB B 1\nPARENT A CHILD B", &[]);
    assert_eq!(run.started, ["A PRE", "A"], "but the job that succeeds does");
    assert_eq!(run.end_of_dag(), DagEnd { code: 0, failed: 0, futile: 0, aborted: true });
}

#[test]
fn a_skipped_node_succeeds_without_its_job() {
    let run = run(&format!("{WITH_SCRIPTS}PRE_SKIP A 4\n"), &[("A PRE", 4)]);
    assert_eq!((run.started, run.plan.view(0).end().unwrap().code), (vec![Name::new("A PRE")], 0));
}

#[test]
fn a_node_is_tried_again_as_a_whole() {
    let run_it =
        |codes: &[(&'static str, i32)]| run(&format!("{WITH_SCRIPTS}RETRY A 2 UNLESS-EXIT 9\n"), codes);
    let run = run_it(&[("A POST", 1)]);
    assert_eq!(
        run.started,
        ["A PRE", "A", "A POST", "A PRE retry 1", "A retry 1", "A POST retry 1"].map(Name::new)
    );
    assert_eq!(run.end_of_dag().code, 0);
    let run = run_it(&[("A POST", 9)]);
    assert_eq!((run.started.len(), run.end_of_dag().code), (3, 1));
    let run = run_it(&[("A POST", 1), ("A POST retry 1", 1), ("A POST retry 2", 1)]);
    assert_eq!((run.started.len(), run.end_of_dag().code), (9, 1));
}

#[test]
fn everything_that_can_run_runs_and_the_rest_is_futile() {
    let text =
        "JOB A 1\nJOB B 1\nJOB C 1\nJOB D 1\nJOB E 1\nPARENT A CHILD B\nPARENT B D CHILD C\nPARENT D CHILD E";
    let run = run(text, &[("A", 1)]);
    assert_eq!(run.started, ["A", "D", "E"]);
    let futile = run.statuses().values().filter(|s| **s == NodeStatus::Futile).count();
    assert_eq!((futile, run.end_of_dag()), (2, DagEnd { code: 1, failed: 1, futile: 2, aborted: false }));
}

#[test]
fn a_weak_child_needs_its_parent_only_to_end() {
    let text = "JOB A 1\nJOB B 1\nWEAK PARENT A CHILD B";
    let run = run(text, &[("A", 1)]);
    assert_eq!(run.started, ["A", "B"]);
    assert_eq!(run.end_of_dag().code, 1);
    assert!(rescue_text(run.plan.view(0), "x.dag").contains("\nDONE A\nDONE B\n"));
}

#[test]
fn an_abort_stops_what_runs_and_the_final_node_still_comes() {
    let text = "JOB A 1\nJOB B 1\nJOB C 1\nPARENT B CHILD C\nABORT-DAG-ON A 3 RETURN 42\nRETRY A 5\n";
    let run_it = run(text, &[("A", 3)]);
    assert_eq!(run_it.end_of_dag(), DagEnd { code: 42, failed: 2, futile: 1, aborted: true });
    assert_eq!(run_it.statuses()["B"], NodeStatus::Error);
    let alone = run("JOB A 1\nJOB B 1\nPARENT A CHILD B\nABORT-DAG-ON A 3 RETURN 42\n", &[("A", 3)]);
    assert_eq!(alone.end_of_dag().code, 42, "also if nothing else runs");
    let with_final =
        run(&format!("{text}FINAL F 1\nSCRIPT PRE F pre $DAG_STATUS $FAILED_COUNT\n"), &[("A", 3)]);
    assert_eq!(with_final.started, ["A", "B", "F PRE", "F"]);
    assert_eq!(with_final.end_of_dag().code, 0, "the final node decides");
}

#[test]
fn the_final_node_comes_last_and_decides() {
    let text = "FINAL F 1\nJOB A 1\nJOB B 1\nPARENT A CHILD B";
    assert_eq!(run(text, &[("A", 1)]).started, ["A", "F"]);
    assert_eq!(run(text, &[("A", 1)]).end_of_dag().code, 0);
    assert_eq!(run(text, &[("F", 1)]).end_of_dag().code, 1);
}

#[test]
fn limits_hold_and_higher_priorities_come_first() {
    let text = "JOB A 1\nJOB B 1\nJOB C 1\nJOB D 1\nPRIORITY D 5\nCATEGORY A x\nCATEGORY B x\nMAXJOBS x 1\n";
    let mut few = Run::new(text, DagOptions { max_jobs: 2, ..DagOptions::default() }, &[]);
    few.start_all();
    assert_eq!(few.started, ["D", "A"]);
    assert_eq!(few.finish().started, ["D", "A", "C", "B"]);
    let mut all = Run::new(text, DagOptions::default(), &[]);
    all.start_all();
    assert_eq!(all.started, ["D", "A", "C"]);
    assert_eq!(all.finish().started.len(), 4);
}

#[test]
fn jobs_of_a_node_fail_together_unless_failures_are_tolerated() {
    let strict = run("JOB A 3\n", &[("A job 0", 2)]);
    assert_eq!(strict.end_of_dag().code, 1);
    let results = strict.ended.iter().filter_map(|k| k.results.as_ref()?[0].failure.as_ref()?.exit_code);
    assert_eq!(results.collect::<Vec<_>>(), [2, REMOVED as i32, REMOVED as i32]);
    let tolerant = run("JOB A 3\nTOLERANCE A 1\n", &[("A job 0", 2)]);
    assert_eq!(tolerant.end_of_dag().code, 0);
}

#[test]
fn what_cannot_be_submitted_fails_its_node() {
    let mut run =
        run("JOB A missing\nSCRIPT POST A post $RETURN\nJOB B 1\nPARENT A CHILD B", &[("A POST", 1)]);
    assert_eq!((run.started.as_slice(), run.end_of_dag().code), (&[Name::new("A POST")][..], 1));
    let told = run.plan.take_events();
    assert!(told.iter().any(|e| e.what == Happening::NotSubmitted("there is no such file".to_owned())));
}

#[test]
fn a_node_can_be_a_dag_of_its_own() {
    let text = "JOB A 1\nSUBDAG EXTERNAL S JOB_X_1;JOB_Y_1;PARENT_X_CHILD_Y;FINAL_F_1\nPARENT A CHILD S\nRETRY S 1\nPRIORITY S 7";
    let fine = run(text, &[]);
    assert_eq!(fine.started, ["A", "S: X", "S: Y", "S: F"]);
    let again = run(text, &[("S: F", 1)]);
    assert_eq!(again.started[4..], ["S retry 1: X", "S retry 1: Y", "S retry 1: F"].map(Name::new));
    assert_eq!(again.end_of_dag().code, 0);
}

#[test]
fn a_service_runs_beside_the_others_and_is_stopped_at_the_end() {
    let mut run = Run::new("SERVICE S 1\nJOB A 1\nJOB B 1\nPARENT A CHILD B", DagOptions::default(), &[]);
    run.start_all();
    assert_eq!(run.started, ["S", "A"]);
    let service = run.live.remove(0);
    let run = run.finish();
    assert_eq!(run.stopped, [service.0]);
    assert_eq!(run.end_of_dag().code, 0);
}

#[test]
fn nodes_without_work_and_nodes_that_are_done_take_no_time() {
    let run = run("JOB A 1 NOOP\nJOB B 1 DONE\nJOB C 1\nPARENT A B CHILD C", &[]);
    assert_eq!(run.started, ["C"]);
    assert_eq!(run.plan.view(0).end().unwrap().code, 0);
}

/// Nodes with everything that can be said of them, and what their steps return.
fn any_dag() -> impl Strategy<Value = (String, Vec<(&'static str, i32)>)> {
    const NAMES: [&str; 6] = ["A", "B", "C", "D", "E", "G"];
    const STEPS: [&str; 12] = [
        "A",
        "B",
        "C",
        "D",
        "A PRE",
        "B PRE",
        "C POST",
        "D POST",
        "B retry 1",
        "C POST retry 1",
        "E job 1",
        "G: X",
    ];
    let arcs = prop::collection::vec((0..5usize, 1..6usize, any::<bool>()), 0..8);
    let rules = prop::collection::vec(0..9usize, 0..8);
    let codes = prop::collection::vec((prop::sample::select(STEPS.to_vec()), 0..4i32), 0..6);
    (arcs, rules, codes).prop_map(|(arcs, rules, codes)| {
        let mut text =
            "JOB A 1\nJOB B 1\nJOB C 1\nJOB D 1\nJOB E 2\nSUBDAG EXTERNAL G JOB_X_1;JOB_Y_1;PARENT_X_CHILD_Y\n".to_owned();
        for (from, to, weak) in arcs.into_iter().filter(|(from, to, _)| from < to) {
            let weak = if weak { "WEAK " } else { "" };
            text += &format!("{weak}PARENT {} CHILD {}\n", NAMES[from], NAMES[to]);
        }
        const RULES: [&str; 9] = [
            "SCRIPT PRE A x",
            "SCRIPT PRE B x",
            "SCRIPT POST C x",
            "SCRIPT POST D x",
            "RETRY ALL_NODES 2",
            "PRE_SKIP A 2",
            "ABORT-DAG-ON D 3",
            "FINAL F 1",
            "CATEGORY ALL_NODES k\nMAXJOBS k 2",
        ];
        let mut rules = rules;
        rules.sort_unstable();
        rules.dedup();
        for rule in rules {
            text += RULES[rule];
            text.push('\n');
        }
        (text, codes)
    })
}

proptest! {
    /// However far a DAG has come, it goes on from what is known of its chains and ends as it would have.
    #[test]
    fn a_dag_goes_on_where_it_was_interrupted((text, codes) in any_dag(), steps in 0..12usize) {
        let whole = run(&text, &codes);
        let mut first = Run::new(&text, DagOptions::default(), &codes);
        for _ in 0..steps {
            first.step();
        }
        let Run { live, ended, codes, .. } = first;
        let open = live.iter().map(|(seq, chain)| KnownChain { seq: *seq, id: chain.id.clone(), results: None });
        let known: Vec<KnownChain> = ended.iter().cloned().chain(open).collect();
        let plan = DagPlan::new(read(&text), DagOptions::default(), Box::new(Numbers), known);
        let second = Run { plan, live, started: Vec::new(), ended: Vec::new(), codes, stopped: Vec::new() }.finish();
        let before: Vec<&Name> = ended.iter().map(|k| &k.id).collect();
        prop_assert!(second.started.iter().all(|id| !before.contains(&id)), "{:?}", second.started);
        // What was stopped by an abort depends on what was running then.
        if !whole.end_of_dag().aborted && !second.end_of_dag().aborted {
            prop_assert_eq!(whole.statuses(), second.statuses());
            prop_assert_eq!(whole.end_of_dag(), second.end_of_dag());
        }
    }
}
