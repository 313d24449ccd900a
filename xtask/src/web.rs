//! The workbench: its types, its pictures, and its tests in a real browser.

use crate::{Tests, install, root, run, target};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A browser, and letters for it to write with.
const BROWSER: [(&str, &str); 2] =
    [("chromium", "chromium"), ("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "fonts-dejavu-core")];

fn web() -> PathBuf {
    root().join("web")
}

/// Runs a command among the sources of the workbench. `run` would do it in the root of the repository.
fn run_there(program: &str, arguments: &[&str]) -> Result<(), String> {
    let shown = format!("{program} {}", arguments.join(" "));
    println!("$ {shown}");
    let status = Command::new(program).args(arguments).current_dir(web()).status();
    match status.map_err(|e| format!("{shown}: {e}"))? {
        status if status.success() => Ok(()),
        status => Err(format!("{shown}: {status}")),
    }
}

/// Writes down what the server says of its interface, from which the types of the workbench are made.
pub(crate) fn types() -> Result<(), String> {
    let print = ["run", "--quiet", "--", "schema", "--http"];
    let output = Command::new("cargo").args(print).current_dir(root()).output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let file = web().join("openapi.json");
    std::fs::write(&file, output.stdout).map_err(|e| format!("{}: {e}", file.display()))?;
    run_there("npm", &["run", "check"])
}

/// Builds what the tests run and runs them alone.
pub(crate) fn only(words: &[&str]) -> Result<(), String> {
    build()?;
    test(words)?.close()
}

/// Takes the pictures of the book.
pub(crate) fn pictures() -> Result<(), String> {
    build()?;
    tests(&[], Some(&root().join("docs/images")))?.close()
}

/// Builds what the tests start.
fn build() -> Result<(), String> {
    run(Command::new("cargo").args(["build", "--package", "catena-cli"]))?;
    run(Command::new("cargo").args(["build", "--package", "catena-server", "--example", "remembered"]))
}

/// Checks the types and runs the tests in a browser, with what cargo has built.
pub(crate) fn test(words: &[&str]) -> Result<Tests, String> {
    tests(words, None)
}

fn tests(words: &[&str], pictures: Option<&Path>) -> Result<Tests, String> {
    if Command::new("node").arg("--version").output().is_err() {
        println!("skipped: the tests of the workbench need Node, and there is none");
        return Ok(Tests { skipped: 1, ..Tests::default() });
    }
    install(&BROWSER)?;
    if !web().join("node_modules").is_dir() {
        run_there("npm", &["ci", "--no-audit", "--no-fund"])?;
    }
    run_there("npm", &["run", "check"])?;
    let report = web().join("test-results/report.json");
    let _ = std::fs::remove_file(&report);
    let mut command = Command::new("node");
    command.args(["node_modules/@playwright/test/cli.js", "test"]).args(words).current_dir(web());
    command.env("CATENA_BUILT", target().join("debug"));
    if let Some(directory) = pictures {
        command.env("CATENA_PICTURES", directory);
    }
    let status = command.status().map_err(|e| format!("playwright: {e}"))?;
    let text = std::fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
    let report: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let count = |what: &str| report["stats"][what].as_u64().unwrap_or(0);
    Ok(Tests {
        passed: count("expected"),
        failed: count("unexpected") + count("flaky"),
        skipped: count("skipped"),
        is_broken: !status.success(),
    })
}
