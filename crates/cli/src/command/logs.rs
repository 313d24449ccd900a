//! `catena logs`

use super::cluster::number;
use super::inspect::{find_run, open, wait};
use super::{Outcome, print};
use crate::arguments::{Arguments, LogsArgs};
use crate::remote::Server;
use catena_model::Name;
use catena_model::chain::{ChainState, ProcessChain};
use catena_server::{ChainView, log_file};
use catena_store::{ChainFilter, Run, SqliteStore, Store};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(200);
const PAGE: usize = 1000;

/// The logs of one task.
struct TaskLog {
    name: Name,
    attempt: u32,
    /// Standard output and standard error.
    files: [PathBuf; 2],
}

pub(crate) fn logs(args: &LogsArgs, arguments: &Arguments) -> Outcome {
    if let Some(server) = Server::find(arguments) {
        return remote_logs(args, &server);
    }
    let (state, store) = open(arguments)?;
    let run = find_run(&store, args.run)?;
    let directory = state.run_directory(run.id).join("logs");
    let mut shown: HashMap<PathBuf, u64> = HashMap::new();
    let mut any = false;
    loop {
        let over = !args.follow || !state.is_owned_by_another();
        for log in task_logs(&store, &run, &directory, args)? {
            for (file, stream) in log.files.iter().zip(["stdout", "stderr"]) {
                any |= show_file(file, &log, stream, args, &mut shown);
            }
        }
        if over {
            break;
        }
        std::thread::sleep(POLL);
    }
    if !any && !args.follow {
        eprintln!(
            "no task {} has written anything",
            if args.tasks.is_empty() { "of this run".to_owned() } else { args.tasks.join(", ") }
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn task_logs(
    store: &SqliteStore,
    run: &Run,
    directory: &Path,
    args: &LogsArgs,
) -> Result<Vec<TaskLog>, String> {
    let mut out = Vec::new();
    let mut from = 0;
    loop {
        let filter = ChainFilter { from, limit: PAGE, payload: true, ..ChainFilter::default() };
        let page = wait(store.chains(run.id, &filter))?.map_err(|e| e.to_string())?;
        let Some(last) = page.last() else { return Ok(out) };
        from = last.key.seq + 1;
        for record in page {
            if record.attempt == 0 || (args.failed && record.state != ChainState::Failed) {
                continue;
            }
            let Ok(chain) = serde_json::from_slice::<ProcessChain>(&record.payload) else {
                continue;
            };
            for (i, task) in chain.executables.iter().enumerate() {
                if !args.tasks.is_empty() && !args.tasks.iter().any(|pattern| matches(pattern, &task.id)) {
                    continue;
                }
                let files = [false, true].map(|e| log_file(directory, record.key.seq, record.attempt, i, e));
                out.push(TaskLog { name: task.id.clone(), attempt: record.attempt, files });
            }
        }
    }
}

/// Whether a task's name matches: exactly, without its loop numbers, or with `*` for anything.
fn matches(pattern: &str, name: &str) -> bool {
    if let Some((before, after)) = pattern.split_once('*') {
        return name.starts_with(before) && name.len() >= before.len() + after.len() && name.ends_with(after);
    }
    name == pattern || name.split('$').next() == Some(pattern)
}

/// Shows logs that a server has. With `--follow`, one task after the other until it ends.
fn remote_logs(args: &LogsArgs, server: &Server) -> Outcome {
    let run = number(server, args.run)?;
    let mut any = false;
    let mut from = 0;
    loop {
        let page: Vec<ChainView> = server.get(&format!("/runs/{run}/chains?limit={PAGE}&from={from}"))?;
        let Some(last) = page.last() else { break };
        from = last.chain + 1;
        for chain in page {
            if chain.attempt == 0 || (args.failed && chain.state != ChainState::Failed) {
                continue;
            }
            for (i, task) in chain.tasks.iter().enumerate() {
                if !args.tasks.is_empty() && !args.tasks.iter().any(|pattern| matches(pattern, task)) {
                    continue;
                }
                for (stream, name) in [("out", "stdout"), ("err", "stderr")] {
                    let follow = if args.follow { "&follow=true" } else { "" };
                    let query = format!("task={i}&attempt={}&stream={stream}{follow}", chain.attempt);
                    let log = server.stream(&format!("/runs/{run}/chains/{}/log?{query}", chain.chain))?;
                    any |= show_stream(log, task, chain.attempt, name, args);
                }
            }
        }
    }
    if !any {
        eprintln!("no task of this run has written anything");
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a log as it comes. Returns whether there was anything.
fn show_stream(mut log: impl Read, task: &Name, attempt: u32, stream: &str, args: &LogsArgs) -> bool {
    let mut any = false;
    let mut chunk = vec![0; 64 << 10];
    let mut kept = Vec::new();
    while let Ok(n) = log.read(&mut chunk)
        && n > 0
    {
        if !any {
            print(&heading(task, attempt, stream));
        }
        any = true;
        if args.tail.is_some() && !args.follow {
            kept.extend_from_slice(&chunk[..n]);
        } else {
            print(&String::from_utf8_lossy(&chunk[..n]));
        }
    }
    if let (Some(n), false) = (args.tail, kept.is_empty()) {
        print(&tail(&String::from_utf8_lossy(&kept), n));
    }
    any
}

fn heading(task: &str, attempt: u32, stream: &str) -> String {
    let attempt = if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
    format!("==> {task}{attempt} {stream} <==\n")
}

fn tail(text: &str, n: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n") + "\n"
}

/// Prints what is new in a log. Returns whether there was anything.
fn show_file(
    path: &Path,
    log: &TaskLog,
    stream: &str,
    args: &LogsArgs,
    shown: &mut HashMap<PathBuf, u64>,
) -> bool {
    let Ok(mut file) = File::open(path) else {
        return false;
    };
    let before = shown.get(path).copied();
    let _ = file.seek(SeekFrom::Start(before.unwrap_or(0)));
    let mut bytes = Vec::new();
    if file.read_to_end(&mut bytes).is_err() || bytes.is_empty() {
        return before.is_some();
    }
    shown.insert(path.to_path_buf(), before.unwrap_or(0) + bytes.len() as u64);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if before.is_none() {
        if let Some(n) = args.tail {
            text = tail(&text, n);
        }
        print(&heading(&log.name, log.attempt, stream));
    }
    print(&text);
    true
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn tasks_are_named_with_or_without_their_loop_numbers() {
        assert!(matches("count", "count$3") && matches("count$3", "count$3"));
        assert!(matches("co*3", "count$3") && !matches("count$2", "count$3"));
        assert!(!matches("ab*b", "ab"));
    }
}
