//! What a user sees while a run goes on: bars on a terminal, plain lines elsewhere, or JSON events.

use crate::arguments::ShowArgs;
use crate::time::duration;
use catena_model::Name;
use catena_model::chain::{ChainState, TaskFailure};
use catena_server::{PublishedResult, RunEvent, RunSummary};
use catena_store::RunState;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};

/// How often the display of a terminal changes.
const REDRAW: Duration = Duration::from_millis(80);
/// How often a line is written where there is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);
/// How many running tasks are named.
const NAMED_TASKS: usize = 6;
/// How many failures are shown in full.
const SHOWN_FAILURES: usize = 5;

/// How many lines of a failed command are shown.
const COMMAND_LINES: usize = 8;

/// Shows a run.
pub(crate) struct Display {
    show: ShowArgs,
    bars: Option<Bars>,
    progress: Progress,
    running: HashMap<u64, (Name, Instant)>,
    start: Instant,
    last_plain: Instant,
    failures: usize,
}

#[derive(Default)]
struct Progress {
    done: u64,
    /// Done before this session.
    earlier: u64,
    known: u64,
    growing: bool,
    failed: u64,
    cached: u64,
}

struct Bars {
    all: MultiProgress,
    main: ProgressBar,
    tasks: Vec<ProgressBar>,
    last: Instant,
}

impl Display {
    pub(crate) fn new(show: ShowArgs) -> Self {
        let terminal = std::io::stderr().is_terminal() && !show.json && !show.quiet;
        Self {
            show,
            bars: terminal.then(Bars::new),
            progress: Progress::default(),
            running: HashMap::new(),
            start: Instant::now(),
            last_plain: Instant::now(),
            failures: 0,
        }
    }

    /// Writes a line that stays.
    pub(crate) fn note(&self, text: &str) {
        if self.show.json {
            return;
        }
        match &self.bars {
            Some(bars) => {
                let _ = bars.all.println(text);
            }
            None if self.show.quiet => {}
            None => eprintln!("{text}"),
        }
    }

    pub(crate) fn show(&mut self, event: &RunEvent) {
        if self.show.json {
            if let Ok(line) = serde_json::to_string(event) {
                let _ = writeln!(std::io::stdout(), "{line}");
            }
            return;
        }
        match event {
            RunEvent::Started { run, name, resumed, done } => {
                self.progress.earlier = *done;
                let how =
                    if *resumed { format!("goes on, {done} tasks are done") } else { "starts".to_owned() };
                self.note(&format!("run {run} ({name}) {how}"));
            }
            RunEvent::TaskStarted { chain, task, cached, reason, .. } => {
                self.running.insert(*chain, (task.clone(), Instant::now()));
                if self.show.explain {
                    match (cached, reason) {
                        (true, _) => self.note(&format!("  {task}: taken from the cache")),
                        (false, Some(reason)) => self.note(&format!("  {task}: runs because {reason}")),
                        (false, None) => self.note(&format!("  {task}: runs; it is not cached")),
                    }
                }
            }
            RunEvent::ChainEnded { chain, state, tasks, cached, failure, .. } => {
                self.running.remove(chain);
                self.progress.cached += u64::from(*cached);
                match state {
                    ChainState::Paused => {
                        self.note(&format!("{} failed and will be tried again", tasks.join(" -> ")));
                    }
                    ChainState::Failed | ChainState::Cancelled => self.failed(failure.as_deref()),
                    ChainState::Registered | ChainState::Running | ChainState::Succeeded => {}
                }
            }
            RunEvent::Progress { counts, tasks_done, tasks_known, growing, .. } => {
                self.progress.done = *tasks_done;
                self.progress.known = *tasks_known;
                self.progress.growing = *growing;
                self.progress.failed = counts.failed;
                self.redraw();
            }
            RunEvent::Note { message, .. } => self.note(message),
            RunEvent::Notice { message, .. } => self.note(&format!("error: {message}")),
            RunEvent::Phase { .. } | RunEvent::Ended(_) => {}
        }
    }

    fn failed(&mut self, failure: Option<&TaskFailure>) {
        self.failures += 1;
        let Some(failure) = failure else { return };
        if self.failures <= SHOWN_FAILURES {
            let text = describe(failure);
            match &self.bars {
                Some(bars) => bars.all.suspend(|| eprint!("{text}")),
                None => eprint!("{text}"),
            }
        } else if self.failures == SHOWN_FAILURES + 1 {
            self.note("more tasks fail; see `catena status` and `catena logs --failed`");
        }
    }

    fn redraw(&mut self) {
        let eta = self.eta();
        if let Some(bars) = &mut self.bars {
            if bars.last.elapsed() >= REDRAW {
                bars.draw(&self.progress, &self.running, eta);
            }
        } else if !self.show.quiet && self.last_plain.elapsed() >= PLAIN_INTERVAL {
            self.last_plain = Instant::now();
            let p = &self.progress;
            let more = if p.growing { "+" } else { "" };
            let eta =
                eta.map_or(String::new(), |e| format!(", about {} left", duration(e.as_secs_f64() * 1e3)));
            eprintln!(
                "{}/{}{more} tasks done, {} running, {} failed{eta}",
                p.done,
                p.known,
                self.running.len(),
                p.failed
            );
        }
    }

    /// The time left, if tasks go on as they did.
    fn eta(&self) -> Option<Duration> {
        let p = &self.progress;
        // What came from the cache says nothing about what has to run.
        let executed = p.done.saturating_sub(p.cached + p.earlier);
        if executed == 0 || p.growing {
            return None;
        }
        let each = self.start.elapsed().as_secs_f64() / executed as f64;
        Some(Duration::from_secs_f64(each * p.known.saturating_sub(p.done) as f64))
    }

    /// Removes what does not stay.
    pub(crate) fn close(&mut self) {
        if let Some(bars) = self.bars.take() {
            for bar in &bars.tasks {
                bar.finish_and_clear();
            }
            bars.main.finish_and_clear();
        }
    }

    /// Shows how the run ended and what came of it.
    pub(crate) fn end(&mut self, summary: &RunSummary, results: &[PublishedResult]) {
        self.close();
        if self.show.json {
            let line = serde_json::json!({"event": "results", "run": summary.run, "results": results});
            let _ = writeln!(std::io::stdout(), "{line}");
            return;
        }
        let mut text = String::new();
        let cached = if summary.tasks_cached > 0 {
            format!(" ({} from the cache)", summary.tasks_cached)
        } else {
            String::new()
        };
        let skipped = if summary.tasks_skipped > 0 {
            format!(", {} skipped", summary.tasks_skipped)
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "run {} ({}) {}: {} tasks{cached}{skipped} in {}",
            summary.run,
            summary.name,
            summary.state,
            summary.tasks_done,
            duration(summary.millis)
        );
        if let Some(error) = &summary.error {
            let _ = writeln!(text, "  {error}");
        }
        match summary.state {
            RunState::Interrupted => text.push_str("  run the same command again to go on\n"),
            RunState::Failed | RunState::PartiallySucceeded
                if !summary.failures.is_empty() && summary.exit_code.is_none() =>
            {
                let _ = writeln!(
                    text,
                    "  `catena retry {}` runs what failed again; `catena report` shows all of it",
                    summary.run
                );
            }
            _ => {}
        }
        eprint!("{text}");
        for r in results {
            let values = if r.values.len() > 4 {
                format!("{} … ({} files)", r.values[..3].join(" "), r.values.len())
            } else {
                r.values.join(" ")
            };
            super::command::print(&format!("{}: {values}\n", r.name));
        }
    }
}

/// A failure in full: what, the command, the last lines, where the log is, what to do.
pub(crate) fn describe(f: &TaskFailure) -> String {
    let mut out = format!("task {} failed: {}\n", f.task, f.message);
    if !f.command.is_empty() {
        let lines: Vec<&str> = f.command.trim_end().lines().collect();
        for (i, line) in lines.iter().take(COMMAND_LINES).enumerate() {
            let line: String = line.chars().take(500).collect();
            let _ = writeln!(out, "  {} {line}", if i == 0 { "command:" } else { "        " });
        }
        if lines.len() > COMMAND_LINES {
            let _ = writeln!(out, "           … ({} lines)", lines.len());
        }
    }
    for line in &f.tail {
        let _ = writeln!(out, "  | {line}");
    }
    if let Some(log) = &f.log {
        let _ = writeln!(out, "  log: {log}");
    }
    if let Some(help) = &f.help {
        let _ = writeln!(out, "  help: {help}");
    }
    out
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let main = all.add(ProgressBar::new(1));
        let style = ProgressStyle::with_template("{bar:32.cyan/dim} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        main.set_style(style.progress_chars("━━─"));
        Self { all, main, tasks: Vec::new(), last: Instant::now() }
    }

    fn draw(&mut self, p: &Progress, running: &HashMap<u64, (Name, Instant)>, eta: Option<Duration>) {
        self.last = Instant::now();
        self.main.set_length(p.known.max(1));
        self.main.set_position(p.done);
        let mut text = format!("{}/{}{} tasks", p.done, p.known, if p.growing { "+" } else { "" });
        let _ = write!(text, "  {} running", running.len());
        if p.cached > 0 {
            let _ = write!(text, "  {} cached", p.cached);
        }
        if p.failed > 0 {
            let _ = write!(text, "  {} failed", p.failed);
        }
        if let Some(eta) = eta.filter(|e| e.as_secs() > 0) {
            let _ = write!(text, "  about {} left", duration(eta.as_secs_f64() * 1e3));
        }
        self.main.set_message(text);
        let mut tasks: Vec<_> = running.values().collect();
        tasks.sort_by_key(|(_, since)| *since);
        tasks.truncate(NAMED_TASKS);
        while self.tasks.len() < tasks.len() {
            let bar = self.all.add(ProgressBar::new_spinner());
            bar.set_style(
                ProgressStyle::with_template("  {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            self.tasks.push(bar);
        }
        while self.tasks.len() > tasks.len() {
            if let Some(bar) = self.tasks.pop() {
                bar.finish_and_clear();
                self.all.remove(&bar);
            }
        }
        for (bar, (name, since)) in self.tasks.iter().zip(tasks) {
            bar.set_message(format!("{name}  {}", duration(since.elapsed().as_secs_f64() * 1e3)));
        }
    }
}
