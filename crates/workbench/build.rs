//! Builds the web application and lists its files.

use std::fmt::Write;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the application is made from. A change of any of it builds it anew.
const SOURCES: [&str; 6] =
    ["src", "public", "index.html", "package.json", "package-lock.json", "vite.config.ts"];

fn main() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", web.join(source).display());
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let site = out.join("site");
    let missing = build(&web, &site).err();
    if let Some(reason) = &missing {
        println!("cargo::warning=catena is built without its workbench: {reason}");
        // What is not there has always changed: the next build tries again.
        println!("cargo::rerun-if-changed={}", out.join("missing").display());
        let _ = fs::remove_dir_all(&site);
        fs::create_dir_all(&site).expect("the build directory is writable");
        fs::write(site.join("index.html"), instead(reason)).expect("the build directory is writable");
    }
    fs::write(out.join("assets.rs"), list(&site, missing.as_deref()))
        .expect("the build directory is writable");
}

/// Builds the application with Node, or says why that is not possible.
fn build(web: &Path, site: &Path) -> Result<(), String> {
    let version = Command::new("node").arg("--version").output();
    let version = version.map_err(|_| "it needs Node 20.19 or newer, and there is none".to_owned())?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    if !is_new_enough(&version) {
        return Err(format!("it needs Node 20.19, or 22.12 or newer, and this is {version}"));
    }
    // Builds of several profiles may go on at the same time, and install packages in the same place.
    let lock = File::open(web.join("package-lock.json")).map_err(|e| format!("package-lock.json: {e}"))?;
    lock.lock().map_err(|e| format!("package-lock.json: {e}"))?;
    let age = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    let installed = age(&web.join("node_modules/.package-lock.json"));
    if installed.is_none() || installed < age(&web.join("package-lock.json")) {
        run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(web))?;
    }
    drop(lock);
    let mut vite = Command::new("node");
    vite.arg("node_modules/vite/bin/vite.js").args(["build", "--emptyOutDir", "--outDir"]).arg(site);
    run(vite.current_dir(web))
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split('.').map(|n| n.parse::<u32>().unwrap_or(0));
    match (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) {
        (20, minor) => minor >= 19,
        (22, minor) => minor >= 12,
        (major, _) => major > 22,
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{shown}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said =
        String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr });
    let last: Vec<&str> = said.lines().filter(|l| !l.trim().is_empty()).rev().take(5).collect();
    Err(format!("{shown}: {}", last.into_iter().rev().collect::<Vec<_>>().join(" | ")))
}

/// The page of a binary that has no workbench.
fn instead(reason: &str) -> String {
    let reason = reason.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Catena</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>:root {{ color-scheme: light dark }} \
         body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem }}</style></head>\
         <body><h1>Catena</h1><p>This server was built without its workbench: {reason}.</p>\
         <p>To get it, install <a href=\"https://nodejs.org\">Node</a> and build Catena again: <code>cargo build --release</code>.</p>\
         <p>Everything else works: <a href=\"/docs\">the HTTP interface</a>, and the command line.</p></body></html>\n"
    )
}

/// All files as a table in Rust, sorted by name.
fn list(site: &Path, missing: Option<&str>) -> String {
    let mut files = Vec::new();
    collect(site, site, &mut files);
    files.sort();
    let mut out = String::from("static ASSETS: &[(&str, Asset)] = &[\n");
    for (name, path) in &files {
        let bytes = fs::read(path).expect("it was written just now");
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let plain = name.strip_suffix(".gz");
        let _ = writeln!(
            out,
            "    ({:?}, Asset {{ kind: {:?}, tag: \"{:016x}\", bytes: include_bytes!({path:?}), is_gzip: {}, is_named_by_content: {} }}),",
            plain.unwrap_or(name),
            kind(plain.unwrap_or(name)),
            hasher.finish(),
            plain.is_some(),
            name.starts_with("assets/"),
        );
    }
    let _ = writeln!(out, "];\n\nconst MISSING: Option<&str> = {missing:?};");
    out
}

/// The files below a directory that are served, by their names there.
fn collect(site: &Path, directory: &Path, files: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(directory).expect("it was written just now").flatten() {
        let path = entry.path();
        let name = path.strip_prefix(site).expect("it is below").to_string_lossy().into_owned();
        // What begins with a dot is for tools.
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            collect(site, &path, files);
        } else if !path.with_file_name(format!("{}.gz", entry.file_name().to_string_lossy())).exists() {
            files.push((name, path));
        }
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        "json" => "application/json",
        "wasm" => "application/wasm",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}
