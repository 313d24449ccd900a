//! The experiments on hosts of their own, in small.

use catena_testbed::Net;
use serde_json::Value;
use std::process::Command;

#[test]
fn a_workflow_is_executed_on_hosts_and_in_virtual_time() {
    if let Err(why) = Net::is_possible() {
        eprintln!("skipped: {why}");
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let size = ["--workflow", "montage:11", "--runtimes", "0.02", "--sizes", "0.02", "--agents", "2"];
    let what = ["--experiment", "locality", "--policy", "catena,longest-idle", "--repeat", "1", "--json"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(["reproduce", "data", "--out"]).arg(out.path()).args(size).args(what);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["tasks"], 11);
    let variants = outcome["experiments"][0]["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 2);
    for variant in variants {
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{variant:#}"));
        let trial = &variant["trials"][0];
        assert!(number(&trial["makespan"]) > 0.5, "{variant:#}");
        // Two raw images at least have to come from where the workflow was submitted.
        assert!(number(&trial["bytes_needed"]) > 1.6e5, "{variant:#}");
        assert!(number(&trial["bytes_moved"]) > 1.6e5, "{variant:#}");
        assert!(number(&variant["simulated"]["makespan"]) > 0.5, "{variant:#}");
        assert!(number(&variant["ratios"]["longest-idle"]["makespan"]) > 0.0, "{variant:#}");
    }
    let table = std::fs::read_to_string(out.path().join("data.csv")).unwrap();
    assert_eq!(table.lines().count(), 3, "{table}");
    for picture in ["data-locality.svg", "data-locality-catena.svg", "data-locality-longest-idle.svg"] {
        assert!(out.path().join(picture).is_file(), "{picture}");
    }
}
