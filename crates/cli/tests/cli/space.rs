//! `catena reproduce space`: small, but all of it.

use crate::project::Project;
use serde_json::Value;
use std::collections::BTreeMap;

#[test]
fn the_evaluation_of_the_space_is_repeated() {
    let project = Project::new();
    let command =
        ["reproduce", "space", "--quick", "--nodes", "8,64", "--workflows", "2", "--out", "o", "--json"];
    let said: Value = serde_json::from_str(&project.catena(command).expect(0).stdout).unwrap();
    let rows = said["results"].as_array().unwrap();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for row in rows {
        let text = |name: &str| row[name].as_str().unwrap();
        *counts.entry((text("experiment"), text("scheduler"))).or_default() += 1;
        let calm = text("experiment") != "trouble" || text("variant") == "as usual";
        if calm {
            assert_eq!(
                (&row["lost"], &row["twice"], &row["wasted"]),
                (&0.into(), &0.into(), &0.into()),
                "{row}"
            );
        }
        if text("scheduler") == "central" {
            assert_eq!(row["control"], 0, "{row}");
        }
    }
    let expected = [
        (("load", "central"), 3),
        (("load", "space"), 3),
        (("nodes", "central"), 2 * 2),
        (("nodes", "space"), 2 * 2),
        (("settings", "central"), 9),
        (("settings", "space"), 9),
        (("trouble", "space"), 4),
        (("workflows", "central"), 2),
        (("workflows", "space"), 2),
    ];
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
    let bound = |what: &str| {
        let bounds = said["bounds"].as_array().unwrap().iter();
        let own: Vec<&Value> = bounds.filter(|b| b["what"].as_str().unwrap().contains(what)).collect();
        (own.len(), own.iter().all(|b| b["kept"] == true))
    };
    assert_eq!(bound("log2²(n) (nodes: 64"), (2, true), "with both rules");
    assert_eq!(bound("differently the second time"), (3, true));
    assert_eq!(bound("done on the larger side").0, 1);
    assert_eq!(said["machine"].as_array().unwrap().len(), 3);
    for (figure, curves) in [("3", "levels, central"), ("4", "upkeep"), ("5", "busiest"), ("bound", "bound")]
    {
        let picture = project.read(&format!("o/space-{figure}-nodes.svg"));
        assert!(picture.contains(curves) && !picture.contains("NaN"), "{figure}: {picture}");
    }
    assert!(project.read("o/space-trouble.svg").contains("cut 30/70"));
    let table = project.read("o/space-load.csv");
    assert!(table.starts_with("experiment,variant,scheduler,rules,nodes,workflows,tasks,seed,"), "{table}");
    let columns = |line: &str| line.split(',').count();
    assert!(table.lines().all(|line| columns(line) == columns(table.lines().next().unwrap())), "{table}");
}

#[test]
fn the_same_seeds_give_the_same_files_and_text() {
    let project = Project::new();
    let command = |out, seed| {
        let said = project.catena([
            "reproduce",
            "space",
            "--quick",
            "--experiment",
            "workflows",
            "--workflows",
            "2",
            "--seed",
            seed,
            "--out",
            out,
        ]);
        let said = said.expect(0).stdout;
        let (text, _) = said.split_once("tables and pictures").unwrap();
        (text.to_owned(), project.read(&format!("{out}/space-workflows.csv")))
    };
    let first = command("a", "1");
    assert_eq!(first, command("b", "1"));
    assert_ne!(first, command("c", "2"));
    let head: Vec<&str> = first.0.lines().take(2).collect();
    assert_eq!(head[0], "Figures 3 to 5, more workflows; mean of all seeds (least–most)");
    let words = "nodes workflows rules workflow, s central, s % makespan messages per task / log2² bound per node p99 busiest × upkeep /node/s wait p50, s p95";
    assert_eq!(head[1].split_whitespace().collect::<Vec<_>>().join(" "), words);
    assert!(first.0.ends_with("4 of 4 bounds kept\n"), "{}", first.0);
}
