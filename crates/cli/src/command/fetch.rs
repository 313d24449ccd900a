//! `catena fetch`: brings the results of a run on a server here.

use super::cluster::number;
use super::{Outcome, print};
use crate::arguments::{Arguments, FetchArgs};
use crate::remote::{Server, encode};
use catena_model::Bytes;
use catena_server::RunView;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) fn fetch(args: &FetchArgs, arguments: &Arguments) -> Outcome {
    let server = Server::expect(arguments)?;
    let run = number(&server, args.run)?;
    let fetched = fetch_results(&server, run, &args.out)?;
    if fetched.is_empty() {
        print(&format!("run {run} has no files as results\n"));
    }
    for (path, bytes) in fetched {
        print(&format!("{} ({})\n", path.display(), Bytes(bytes)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Brings the results of a run into a directory: a single file under its own name, several in a directory with the
/// result's name. Returns where they are, and how long.
pub(crate) fn fetch_results(server: &Server, run: i64, out: &Path) -> Result<Vec<(PathBuf, u64)>, String> {
    let view: RunView = server.get(&format!("/runs/{run}"))?;
    let results: Vec<(String, Vec<String>)> =
        view.results.map(serde_json::from_value).transpose().map_err(|e| e.to_string())?.unwrap_or_default();
    let mut fetched = Vec::new();
    for (name, values) in results {
        for (number, value) in values.iter().enumerate() {
            let source = Path::new(value);
            // Other values are no files.
            let Some(file) = source.file_name().filter(|_| source.is_absolute()) else { continue };
            let directory = if values.len() == 1 { out.to_path_buf() } else { out.join(&name) };
            let fail = |e: std::io::Error| format!("{}: {e}", directory.display());
            fs::create_dir_all(&directory).map_err(fail)?;
            let mut content = server.stream(&format!("/runs/{run}/results/{}/{number}", encode(&name)))?;
            // It appears when it is whole.
            let draft = directory.join(format!(".{}.{}", file.to_string_lossy(), std::process::id()));
            let written = File::create(&draft).and_then(|mut f| std::io::copy(&mut content, &mut f));
            let target = directory.join(file);
            let moved = written.and_then(|bytes| fs::rename(&draft, &target).map(|()| bytes));
            if moved.is_err() {
                let _ = fs::remove_file(&draft);
            }
            fetched.push((target, moved.map_err(fail)?));
        }
    }
    Ok(fetched)
}
