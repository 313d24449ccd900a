//! The examples that come with Catena run as they are.

use crate::project::Project;
use std::path::Path;

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).display().to_string()
}

#[test]
fn the_first_example_draws_the_mandelbrot_set() {
    let p = Project::new();
    p.catena(["run", &example("first"), "-i", "rows={range: 12}", "-i", "height=12", "-i", "width=18", "-q"])
        .expect(0);
    let picture = p.read("results/mandelbrot.svg");
    assert!(picture.starts_with("<svg") && picture.contains("#000") && picture.matches("<rect").count() > 20);
}

#[test]
fn the_mosaic_ends_in_a_picture() {
    let p = Project::new();
    p.catena(["run", &example("mosaic"), "-i", "size=120", "-i", "stars=300"]).expect(0);
    let picture = std::fs::read(p.path("results/mosaic.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 5000, "{} bytes", picture.len());
}

#[test]
fn the_variants_are_found_again() {
    let p = Project::new();
    p.catena(["run", &example("variants"), "-i", "length=12000", "-i", "pairs=1800"]).expect(0);
    let summary = p.read("results/summary.txt");
    let numbers: Vec<u64> =
        summary.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    assert!(numbers[2] * 10 >= numbers[0] * 8, "{summary}");
}

#[test]
fn the_composition_uses_every_construct() {
    let p = Project::new();
    p.catena(["run", &example("composition")]).expect(0);
    assert_eq!(p.read("results/length.txt"), "numbers: 3 4 12 84 have the length 85.000000, which is long\n");
    p.catena(["run", &example("composition"), "-i", "numbers=[1,2,2]", "--out", "short"]).expect(0);
    assert!(p.read("short/length.txt").starts_with("numbers: 1 2 2 have the length 3.0000"));
}

#[test]
fn a_workflow_becomes_a_composition_that_does_the_same() {
    let p = Project::new();
    let [rows, height, width] = ["rows=[1,2,3,4,5,6]", "height=6", "width=9"];
    p.catena(["run", &example("first"), "--out", "plain", "-i", rows, "-i", height, "-i", width]).expect(0);
    p.catena(["convert", "--to", "composition", &example("first"), "-o", "composed.yaml"]).expect(0);
    p.catena(["check", "composed.yaml"]).expect(0);
    p.catena(["run", "composed.yaml", "--out", "composed", "-i", rows, "-i", height, "-i", width]).expect(0);
    assert_eq!(p.read("plain/mandelbrot.svg"), p.read("composed/mandelbrot.svg"));
}

#[test]
fn a_missing_tool_is_named_with_its_package() {
    let p = Project::new();
    let mut command = p.command(["run", &example("mosaic"), "-i", "size=60"]);
    // A machine on which nothing but the shell and its usual company is installed.
    let bin = p.path("bin");
    std::fs::create_dir(&bin).unwrap();
    for tool in ["bash", "awk", "cat", "mkdir", "ln", "tr", "grep", "tee", "basename"] {
        let found =
            ["/usr/bin", "/bin"].iter().map(|d| Path::new(d).join(tool)).find(|f| f.exists()).unwrap();
        std::os::unix::fs::symlink(found, bin.join(tool)).unwrap();
    }
    command.env("PATH", &bin);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("package `montage`"), "{stderr}");
}
