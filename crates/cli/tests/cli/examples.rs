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
