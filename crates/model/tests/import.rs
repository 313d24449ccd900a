//! Workflows of other systems: what is in a file is in the trace, what is wrong has its place, and what is written can be
//! read again.

use catena_model::import::{
    Trace, TraceFile, TraceJob, read_dax, read_pegasus, read_wfformat, write_dax, write_wfformat,
};
use proptest::prelude::*;
use serde_json::Value;

type Reader = fn(&str) -> Result<Trace, String>;

const MOSAIC: &str = include_str!("fixtures/import/mosaic-2.1.dax");
const DIAMOND_XML: &str = include_str!("fixtures/import/diamond-3.6.dax");
const DIAMOND_YAML: &str = include_str!("fixtures/import/diamond-5.0.yml");
const FORK_1_5: &str = include_str!("fixtures/import/fork-1.5.json");
const FORK_1_4: &str = include_str!("fixtures/import/fork-1.4.json");
const FORK_1_3: &str = include_str!("fixtures/import/fork-1.3.json");

const ALL: [(&str, Reader); 6] = [
    (MOSAIC, read_dax),
    (DIAMOND_XML, read_dax),
    (DIAMOND_YAML, read_pegasus),
    (FORK_1_5, read_wfformat),
    (FORK_1_4, read_wfformat),
    (FORK_1_3, read_wfformat),
];

/// Id, program, runtime, processors, memory.
fn jobs(trace: &Trace) -> Vec<(&str, &str, f64, f64, u64)> {
    trace.jobs.iter().map(|j| (j.id.as_str(), j.program.as_str(), j.runtime, j.cores, j.memory)).collect()
}

/// Each job's inputs and outputs by name.
fn uses(trace: &Trace) -> Vec<(Vec<&str>, Vec<&str>)> {
    let names =
        |files: &[u32]| files.iter().map(|f| trace.files[*f as usize].name.as_str()).collect::<Vec<_>>();
    trace.jobs.iter().map(|j| (names(&j.inputs), names(&j.outputs))).collect()
}

fn sizes(trace: &Trace) -> Vec<(&str, u64)> {
    trace.files.iter().map(|f| (f.name.as_str(), f.size)).collect()
}

fn dax(trace: &Trace) -> String {
    let mut out = Vec::new();
    write_dax(trace, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn wfformat(trace: &Trace) -> String {
    let mut out = Vec::new();
    write_wfformat(trace, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn dax_2_has_runtimes_as_attributes_and_records_as_they_are() {
    let trace = read_dax(MOSAIC).unwrap();
    assert_eq!(trace.name, "mosaic");
    assert_eq!(
        jobs(&trace),
        [
            ("ID00000", "project", 12.25, 1.0, 0),
            ("ID00001", "project", 0.0, 1.0, 0),
            ("ID00002", "add", 3.0, 1.0, 0),
            ("ID00003", "report", 0.0, 1.0, 0),
        ]
    );
    let files = [
        ("raw1.fits", 4_000_000),
        ("flat1.fits", 8_000_000),
        ("raw2.fits", 4_000_002),
        ("flat2.fits", 8_000_003),
        ("mosaic.fits", 0),
    ];
    assert_eq!(sizes(&trace), files, "what the first reader says counts");
    assert_eq!(uses(&trace)[2], (vec!["flat1.fits", "flat2.fits"], vec!["mosaic.fits"]));
    assert_eq!(trace.arcs, [(0, 2), (1, 2), (2, 3)]);
    assert!((trace.critical_path() - 15.25).abs() < 1e-12);
}

#[test]
fn dax_3_has_profiles_and_workflows_within_workflows() {
    let trace = read_dax(DIAMOND_XML).unwrap();
    assert_eq!(
        jobs(&trace),
        [
            ("prepare", "prepare", 60.0, 4.0, 2_048_000_000),
            ("left", "left.dax", 0.0, 1.0, 0),
            ("right", "right.dag", 0.0, 1.0, 0),
            ("analyse", "analyse", 0.0, 2.0, 0),
        ]
    );
    assert_eq!(uses(&trace)[3], (vec!["f.b1"], vec!["f.log", "state"]), "what is changed is written");
    assert_eq!(sizes(&trace)[..2], [("f.a", 1024), ("f.b1", 2048)]);
    assert_eq!(trace.arcs, [(0, 1), (0, 2), (1, 3), (2, 3)]);
}

#[test]
fn pegasus_5_has_profiles_and_sizes_in_its_catalogues_too() {
    let trace = read_pegasus(DIAMOND_YAML).unwrap();
    assert_eq!(
        jobs(&trace),
        [
            ("ID0000001", "prepare", 60.0, 4.0, 2_048_000_000),
            ("ID0000002", "left.yml", 0.0, 1.0, 0),
            ("ID0000003", "right.dag", 0.0, 1.0, 0),
            ("ID0000004", "analyse", 30.0, 2.0, 0),
        ]
    );
    assert_eq!(sizes(&trace), [("f.a", 1024), ("f.b1", 2048), ("f.b2", 512), ("left.yml", 0), ("state", 7)]);
    assert_eq!(trace.arcs, [(0, 1), (0, 2), (1, 3), (2, 3)]);
}

#[test]
fn wfformat_1_5_has_a_specification_and_an_execution() {
    let trace = read_wfformat(FORK_1_5).unwrap();
    assert_eq!(
        jobs(&trace),
        [
            ("split_1", "split", 7.0, 1.0, 0),
            ("count_1", "wc", 1.797_693_134_862_315_7, 1.0, 0),
            ("count_2", "wc", 0.300_000_000_000_000_04, 2.5, 123_456_789),
        ]
    );
    let files = [("b.txt", 0), ("a.txt", 4_503_599_627_370), ("dir/all.txt", 12), ("nobody-reads-this", 3)];
    assert_eq!(sizes(&trace), files);
    assert_eq!(uses(&trace)[0], (vec!["dir/all.txt"], vec!["a.txt", "b.txt"]));
    assert_eq!(trace.arcs, [(0, 1), (0, 2)]);
}

#[test]
fn older_wfformats_have_everything_in_their_tasks() {
    let new = read_wfformat(FORK_1_4).unwrap();
    assert_eq!(jobs(&new), [("00001", "split_00001", 7.5, 1.0, 1000), ("00002", "count_00002", 1.0, 2.0, 0)]);
    assert_eq!((sizes(&new), &new.arcs[..]), (vec![("all.txt", 12), ("a.txt", 6)], &[(0, 1)][..]));
    let old = read_wfformat(FORK_1_3).unwrap();
    assert_eq!(jobs(&old), [("split", "split", 7.5, 1.0, 1000), ("count", "count", 1.0, 2.0, 0)]);
    assert_eq!(sizes(&old), [("all.txt", 12_000), ("a.txt", 6000)], "they count in kilobytes");
    assert_eq!((uses(&old), &old.arcs), (uses(&new), &new.arcs));
}

#[test]
fn what_is_wrong_has_its_place_and_says_what_to_do() {
    let cases: [(Reader, &str, &str); 31] = [
        (read_dax, "<adag>\n<job id='a'/>\n <child ref='c'/></adag>", "3:2: there is no job `c`: define it"),
        (
            read_dax,
            "<adag><job id='job1'/><child ref='job2'/></adag>",
            "1:23: there is no job `job2`: did you mean `job1`?",
        ),
        (read_dax, "<adag><job id='a'/><child><parent ref='a'/></child></adag>", "1:20: `ref` is missing"),
        (read_dax, "<adag>\n<job/></adag>", "2:1: a job has no `id`: give"),
        (read_dax, "<adag><job id=''/></adag>", "1:7: the id of a job is empty"),
        (read_dax, "<adag><job id='a'/>\n<job id='a'/></adag>", "2:1: there is another job `a`: give"),
        (read_dax, "<adag><job id='a' runtime='x'/></adag>", "1:7: `x` is no runtime in seconds: give"),
        (read_dax, "<adag><job id='a' runtime='NaN'/></adag>", "1:7: `NaN` is no runtime: give"),
        (read_dax, "<adag><job id='a' runtime='1e999'/></adag>", "1:7: `inf` is no runtime: give"),
        (
            read_dax,
            "<adag><job id='a'><uses file='f' link='input' size='1e40'/></job></adag>",
            "1:19: `1e40` is no size",
        ),
        (
            read_dax,
            "<adag><job id='a'><uses file='f' link='upward'/></job></adag>",
            "1:19: `link` is `upward`: it can be",
        ),
        (read_dax, "<adag><job id='a'><uses link='input'/></job></adag>", "1:19: a file has no name"),
        (
            read_dax,
            "<adag><job id='a'><profile key='cores'>-1</profile></job></adag>",
            "1:19: `-1` is no number of proc",
        ),
        (
            read_dax,
            "<adag><job id='a'/><job id='b'/><child ref='a'><parent ref='b'/></child><child ref='b'><parent ref='a'/></child></adag>",
            "these wait for each other in a circle: ",
        ),
        (
            read_dax,
            "<adag><job id='a'/><child ref='a'><parent ref='a'/></child></adag>",
            "1:7: these wait for each other in a circle: a → a: leave",
        ),
        (read_dax, "<adag/>", "1:1: there are no jobs"),
        (read_dax, "<html/>", "1:1: expected an `adag`, found `html`"),
        (read_dax, "<adag>\n<job", "this is no XML"),
        (read_dax, "", "this is no XML"),
        (read_pegasus, "pegasus: '5.0'\njobs: []", "1:1: there are no jobs"),
        (read_pegasus, "", "1:1: there are no jobs"),
        (read_pegasus, "jobs: 7", "1:7: `jobs` must be a list, but is a number"),
        (read_pegasus, "jobs:\n- { id: a }\n- { id: a }", "3:9: there is another job `a`"),
        (
            read_pegasus,
            "jobs:\n- { id: a }\njobDependencies:\n- { id: a, children: [b] }",
            "4:23: there is no job `b`",
        ),
        (
            read_pegasus,
            "jobs:\n- { id: a, uses: [{ lfn: f, type: input, size: big }] }",
            "2:48: `big` is no size in bytes",
        ),
        (
            read_pegasus,
            "jobs:\n- { id: a, uses: [{ lfn: f, type: sideways }] }",
            "2:35: the `type` of a use can be",
        ),
        (read_pegasus, "a: [", "2:1: this is no YAML"),
        (read_wfformat, "{\"workflow\": {\"tasks\": []}}", "1:24: there are no jobs"),
        (read_wfformat, "{\"workflow\": {}}", "1:14: there are no jobs"),
        (
            read_wfformat,
            "{\"workflow\": {\"tasks\": [{\"name\": \"a\",\n\"parents\": [\"b\"]}]}}",
            "2:13: there is no job `b`",
        ),
        (
            read_wfformat,
            "{\"workflow\": {\"tasks\": [{\"name\": \"a\", \"runtime\": \"x\"}]}}",
            "1:52: this is no WfFormat: invalid type: string \"x\", expected a number",
        ),
    ];
    for (read, text, expected) in cases {
        let message = read(text).unwrap_err();
        assert!(message.contains(expected), "{text}\nexpected {expected}\nfound    {message}");
        assert_has_place(&message);
    }
}

#[test]
fn what_is_wrong_in_wfformat_has_its_place() {
    let cases = [
        (
            FORK_1_5.replace("\"id\": \"count_2\", \"parents\"", "\"id\": \"count_1\", \"parents\""),
            "13:36: there is another job `count_1`",
        ),
        (
            FORK_1_5.replace(
                "\"parents\": [\"split_1\"], \"children\": [] }",
                "\"parents\": [\"nope\"], \"children\": [] }",
            ),
            "13:59: there is no job `nope`",
        ),
        (FORK_1_5.replace("0.30000000000000004", "1e300"), "26:48: `1e300` is no runtime"),
        (FORK_1_5.replace("0.30000000000000004", "1e999"), "number out of range"),
        (FORK_1_5.replace("\"sizeInBytes\": 12 ", "\"sizeInBytes\": 1e18 "), "18:9: `1e18` is no size"),
        (FORK_1_5.replace("\"coreCount\": 2.5", "\"coreCount\": -2"), "is no number of processors"),
        (
            FORK_1_5.replace(
                "\"parents\": [], \"children\": [\"count_1\", \"count_2\"]",
                "\"parents\": [\"count_1\"], \"children\": [\"count_1\"]",
            ),
            "these wait for each other in a circle",
        ),
        (
            FORK_1_4.replace("\"link\": \"output\"", "\"link\": 7"),
            "this is no WfFormat: invalid type: integer `7`, expected a string",
        ),
        (
            FORK_1_4.replace("\"link\": \"output\"", "\"link\": \"up\""),
            "9:78: the `link` of a file must be `input` or `output`",
        ),
        (format!("{{\"workflow\": {}", "[".repeat(100_000)), "this is no"),
    ];
    for (text, expected) in cases {
        let message = read_wfformat(&text).unwrap_err();
        assert!(message.contains(expected), "expected {expected}\nfound    {message}");
        assert_has_place(&message);
    }
}

/// Whether a message begins with a line and a column.
fn assert_has_place(message: &str) {
    let mut parts = message.splitn(3, ':');
    let is_number = |part: Option<&str>| part.is_some_and(|p| p.parse::<u32>().is_ok_and(|n| n > 0));
    assert!(is_number(parts.next()) && is_number(parts.next()), "{message}");
}

#[test]
fn a_file_that_ends_too_soon_is_refused_wherever_it_ends() {
    for (text, read) in ALL {
        let is_yaml = text == DIAMOND_YAML;
        for end in (0..text.trim_end().len()).filter(|e| text.is_char_boundary(*e)) {
            match read(&text[..end]) {
                Ok(_) => assert!(is_yaml, "a part of a list is a list in YAML only"),
                Err(message) => assert_has_place(&message),
            }
        }
    }
}

#[test]
fn deep_nesting_is_refused_or_read_but_never_too_deep() {
    let deep = 20_000;
    let _ =
        read_dax(&format!("<adag><job id='a'>{}{}</job></adag>", "<x>".repeat(deep), "</x>".repeat(deep)));
    let message = read_pegasus(&format!("jobs: {}", "[".repeat(deep))).unwrap_err();
    assert_has_place(&message);
    let nested = format!("{{\"workflow\": {}{}}}", "[".repeat(deep), "]".repeat(deep));
    assert_has_place(&read_wfformat(&nested).unwrap_err());
    let entities = "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;'><!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;'><!ENTITY e '&d;&d;&d;&d;&d;&d;&d;&d;'><!ENTITY f '&e;&e;&e;&e;&e;&e;&e;&e;'>]><adag><job id='a'>&f;&f;&f;&f;&f;&f;&f;&f;</job></adag>";
    assert!(read_dax(entities).is_err());
}

/// What the schema of WfFormat 1.5 asks for.
fn assert_valid(text: &str) {
    let document: Value = serde_json::from_str(text).unwrap();
    let is_text = |v: &Value| v.as_str().is_some_and(|t| !t.is_empty());
    let has = |v: &Value, more: &str| {
        is_text(v)
            && v.as_str().unwrap_or_default().chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let all = |v: &Value, check: &dyn Fn(&Value) -> bool| v.as_array().is_some_and(|a| a.iter().all(check));
    assert!(is_text(&document["name"]));
    assert_eq!(document["schemaVersion"], "1.5");
    let specification = &document["workflow"]["specification"];
    assert!(!specification["tasks"].as_array().unwrap().is_empty());
    for task in specification["tasks"].as_array().unwrap() {
        assert!(is_text(&task["name"]) && has(&task["id"], "-_.#"), "{task}");
        for key in ["parents", "children"] {
            assert!(all(&task[key], &|v| has(v, "-_.#")), "{task}");
        }
        for key in ["inputFiles", "outputFiles"] {
            assert!(all(&task[key], &|v| has(v, "-_./:#")), "{task}");
        }
    }
    for file in specification["files"].as_array().unwrap() {
        assert!(has(&file["id"], "-_./:#") && file["sizeInBytes"].is_u64(), "{file}");
    }
    let execution = &document["workflow"]["execution"];
    assert!(execution["makespanInSeconds"].is_number() && is_text(&execution["executedAt"]));
    for task in execution["tasks"].as_array().unwrap() {
        assert!(is_text(&task["id"]) && task["runtimeInSeconds"].is_number(), "{task}");
        assert!(is_text(&task["command"]["program"]), "{task}");
        assert!(task["coreCount"].is_null() || task["coreCount"].as_f64().unwrap() >= 1.0, "{task}");
    }
}

/// The same with files in the order in which jobs name them, which is the order of a DAX.
fn in_order_of_use(mut trace: Trace) -> Trace {
    let mut places = vec![u32::MAX; trace.files.len()];
    let mut files = Vec::new();
    for job in &mut trace.jobs {
        for file in job.inputs.iter_mut().chain(&mut job.outputs) {
            let place = &mut places[*file as usize];
            if *place == u32::MAX {
                *place = files.len() as u32;
                files.push(trace.files[*file as usize].clone());
            }
            *file = *place;
        }
    }
    Trace { files, ..trace }
}

/// Dependencies in another order are the same dependencies.
fn sorted(mut trace: Trace) -> Trace {
    trace.arcs.sort_unstable();
    trace
}

#[test]
fn what_is_imported_can_be_written_and_read_again() {
    for (text, read) in ALL {
        let trace = read(text).unwrap();
        let json = wfformat(&trace);
        assert_valid(&json);
        assert_eq!(sorted(read_wfformat(&json).unwrap()), sorted(trace.clone()));
        assert_eq!(sorted(read_dax(&dax(&trace)).unwrap()), sorted(in_order_of_use(trace)));
    }
}

#[test]
fn names_that_wfformat_does_not_know_are_spelled_out() {
    let text = "<adag><job id='a b' name='p'><uses name='x[1]#' link='output'/></job><job id='ö'/><child ref='ö'><parent ref='a b'/></child></adag>";
    let json = wfformat(&read_dax(text).unwrap());
    assert_valid(&json);
    let trace = read_wfformat(&json).unwrap();
    assert_eq!((trace.jobs[0].id.as_str(), trace.jobs[1].id.as_str()), ("a#20b", "#F6"));
    assert_eq!((trace.files[0].name.as_str(), &trace.arcs[..]), ("x#5B1#5D#23", &[(0, 1)][..]));
}

prop_compose! {
    fn job()(
        program in "[ -~äß]{1,12}", runtime in 0.0..1e9_f64, cores in 1_u32..2000, memory in 0_u64..1_000_000_000_000_000,
        inputs in prop::collection::hash_set(0_u32..12, 0..4), outputs in prop::collection::hash_set(12_u32..24, 0..4),
    ) -> TraceJob {
        TraceJob {
            program: program.into(), runtime, cores: f64::from(cores) / 8.0 + 1.0, memory,
            inputs: inputs.into_iter().collect(), outputs: outputs.into_iter().collect(), ..TraceJob::default()
        }
    }
}

prop_compose! {
    fn trace()(
        name in "[a-zA-Z<>&\"' ]{1,10}",
        jobs in prop::collection::vec(job(), 1..12),
        sizes in prop::collection::vec(0_u64..1_000_000_000_000_000, 24),
        arcs in prop::collection::btree_set((0_u32..12, 0_u32..12), 0..30),
    ) -> Trace {
        let count = jobs.len() as u32;
        let jobs = (0..).zip(jobs).map(|(n, job)| TraceJob { id: format!("job-{n}.x").into(), ..job });
        let files = (0..).zip(sizes).map(|(n, size)| TraceFile { name: format!("dir/file:{n}#").into(), size });
        let arcs = arcs.into_iter().filter(|(from, to)| from < to && *to < count);
        Trace { name, jobs: jobs.collect(), files: files.collect(), arcs: arcs.collect() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_trace_can_be_written_as_wfformat_and_read_again(trace in trace()) {
        let json = wfformat(&trace);
        assert_valid(&json);
        prop_assert_eq!(sorted(read_wfformat(&json).unwrap()), trace);
    }

    #[test]
    fn any_trace_can_be_written_as_dax_and_read_again(trace in trace()) {
        let read = read_dax(&dax(&trace)).unwrap();
        prop_assert_eq!(sorted(read), in_order_of_use(trace));
    }

    #[test]
    fn nothing_that_is_changed_in_a_file_makes_a_reader_panic(
        which in 0_usize..6, at in 0_usize..4000, len in 0_usize..20, with in "[-0-9a-z\"'<>{}\\[\\]:,&/= .]{0,8}",
    ) {
        let (text, read) = ALL[which];
        let start = at % text.len();
        let end = (start + len).min(text.len());
        prop_assume!(text.is_char_boundary(start) && text.is_char_boundary(end));
        if let Err(message) = read(&format!("{}{with}{}", &text[..start], &text[end..])) {
            assert_has_place(&message);
        }
    }
}
