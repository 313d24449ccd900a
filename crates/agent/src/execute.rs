//! Executes one chain: task by task, with retries, limits, cache, and publication at the end.

use crate::agent::{AgentConfig, Job};
use crate::cache::{Cache, Lookup, TaskKey};
use crate::joblog;
use crate::log::{Log, last_lines};
use crate::process::{self, End, Limit, Limits, Stop, Usage, Wish};
use crate::roster::{ATTEMPT_VARIABLE, Roster, STATE_VARIABLE};
use crate::staging::{Staging, files_below};
use crate::supply::{Stock, tell};
use crate::surroundings::{Sandbox, connect, program_in};
use catena_data::{Artifact, Depot};
use catena_model::chain::{
    AgentEvent, Argument, Attempt, Executable, History, Outcome, Phase, TaskFailure, TaskResult, Unsupplied,
};
use catena_model::{DIRECTORY, Direction, RetryPolicy, TimeoutPolicy, VALUE};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What an agent may find in its environment and tasks must not.
const SECRETS: [&str; 3] = ["CATENA_STORE", "CATENA_BUS", "CATENA_TOKEN"];

/// What a slot needs to execute chains.
pub(crate) struct Executor<'a> {
    pub(crate) config: &'a AgentConfig,
    pub(crate) cache: Option<&'a Cache>,
    /// What it holds, if it has files of its own.
    pub(crate) depot: Option<&'a Depot>,
    pub(crate) roster: &'a Roster,
    pub(crate) report: &'a (dyn Fn(AgentEvent) + Send + Sync),
}

/// Why a chain did not come to its end.
enum Trouble {
    Failed(TaskFailure),
    Cancelled(TaskFailure),
    Interrupted,
    Unsupplied(Unsupplied),
}

pub(crate) fn now_millis() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}

impl Executor<'_> {
    /// Executes a chain. Also returns what [`Executor::remember`] should know, once nobody waits any more.
    pub(crate) fn chain(
        &self,
        job: &Job,
        stock: &Stock,
        stop: &Stop,
        history: &mut History,
    ) -> (Outcome, Vec<(usize, TaskKey)>) {
        let mut staging = Staging::new(&job.context, job.attempt, &job.chain, self.depot.is_some());
        let mut keys = Vec::new();
        let outcome = self
            .supply(job, stock, &mut staging)
            .and_then(|()| self.tasks(job, stop, &mut staging, &mut keys, history));
        staging.clean();
        let outcome = match outcome {
            Ok(results) => Outcome::Succeeded(results),
            Err(Trouble::Failed(failure)) => Outcome::Failed(Box::new(failure)),
            Err(Trouble::Cancelled(failure)) => Outcome::Cancelled(Box::new(failure)),
            Err(Trouble::Interrupted) => Outcome::Interrupted,
            Err(Trouble::Unsupplied(why)) => Outcome::Unsupplied(Box::new(why)),
        };
        (outcome, keys)
    }

    /// Notes and says what an attempt is at, where that is worth knowing.
    fn enter(&self, job: &Job, phase: Phase, history: &mut History) {
        if self.depot.is_some() {
            let at = now_millis();
            history.push((phase, at));
            (self.report)(AgentEvent::Phase { attempt: job.attempt, phase, at });
        }
    }

    /// Puts what was brought where tasks find it.
    fn supply(&self, job: &Job, stock: &Stock, staging: &mut Staging) -> Result<(), Trouble> {
        let Some(depot) = self.depot else { return Ok(()) };
        let placed = staging.supply(depot, &job.context, &job.chain, &stock.supplies);
        if let Some(cache) = self.cache {
            for supply in &stock.supplies {
                if let Artifact::File(file) = supply.artifact {
                    cache.know(Path::new(staging.locate(&supply.name)), file.id);
                }
            }
        }
        placed.map_err(|e| {
            // It was whole when it came, so it has been damaged since.
            tell(depot, Vec::new(), Vec::new(), (0, 0.0), self.report);
            let message = format!("an input cannot be put in its place: {e}");
            Trouble::Unsupplied(Unsupplied { message, ..Unsupplied::default() })
        })
    }

    /// Puts the results of tasks into the cache.
    pub(crate) fn remember(&self, job: &Job, keys: &[(usize, TaskKey)]) {
        let Some(cache) = self.cache else { return };
        for (index, key) in keys {
            let task = &job.chain.executables[*index];
            // A result that cannot be remembered is still a result.
            let _ = cache.record(&task_name(job, task), key, task);
        }
    }

    fn tasks(
        &self,
        job: &Job,
        stop: &Stop,
        staging: &mut Staging,
        keys: &mut Vec<(usize, TaskKey)>,
        history: &mut History,
    ) -> Result<Vec<TaskResult>, Trouble> {
        self.enter(job, Phase::Running, history);
        let mut done = Vec::with_capacity(job.chain.executables.len());
        let mut trouble = None;
        for (index, task) in job.chain.executables.iter().enumerate() {
            let outcome = match stop.wish() {
                Wish::GoOn => self.task(job, index, task, stop, staging),
                Wish::Interrupt => Err(Trouble::Interrupted),
                Wish::Cancel => Err(Trouble::Cancelled(failure(task, "it was cancelled".to_owned()))),
            };
            match outcome {
                Ok(result) => done.push((task, result)),
                Err(t) => {
                    trouble = Some(t);
                    break;
                }
            }
        }
        if let Some(depot) = self.depot {
            self.enter(job, Phase::StageOut, history);
            for (task, (result, key)) in &mut done {
                let targets = task.outputs().map(|o| &o.variable.value);
                match staging.hand_over(depot, job.attempt.chain.run, targets) {
                    Ok(produced) => {
                        if let (Some(cache), Some(key)) = (self.cache, key.take()) {
                            // A result that cannot be remembered is still a result.
                            let _ = cache.record_held(&task_name(job, task), &key, task, &produced);
                        }
                        result.data = produced;
                    }
                    Err(e) => {
                        let message = format!("its outputs cannot be held for others: {e}");
                        return Err(trouble.unwrap_or_else(|| Trouble::Failed(failure(task, message))));
                    }
                }
            }
            tell(depot, Vec::new(), Vec::new(), (0, 0.0), self.report);
            return settle_tasks(done, trouble, keys);
        }
        // Also what came before a failure is worth keeping: the next attempt finds it in the cache.
        let outputs = done.iter().flat_map(|(task, _)| task.outputs()).map(|o| &o.variable.value);
        if let Err(e) = staging.publish(outputs) {
            let last = job.chain.executables.last();
            let message = format!("its outputs cannot be put in their place: {e}");
            return Err(trouble
                .unwrap_or_else(|| Trouble::Failed(last.map(|t| failure(t, message)).unwrap_or_default())));
        }
        settle_tasks(done, trouble, keys)
    }

    /// Executes a task, or takes its result from the cache. The key is returned if it was executed.
    fn task(
        &self,
        job: &Job,
        index: usize,
        task: &Executable,
        stop: &Stop,
        staging: &mut Staging,
    ) -> Result<(TaskResult, Option<TaskKey>), Trouble> {
        check_inputs(task, &job.context.directory, staging).map_err(|m| Trouble::Failed(failure(task, m)))?;
        let started = now_millis();
        let clock = Instant::now();
        let mut key = None;
        let mut reason = None;
        if let Some(cache) = self.cache.filter(|_| task.cache) {
            let made = cache.key(task, &job.context.directory, staging);
            let made =
                made.map_err(|e| Trouble::Failed(failure(task, format!("an input cannot be read: {e}"))))?;
            if task.outputs().next().is_some() {
                staging.directory().map_err(|e| Trouble::Failed(no_directory(task, &e)))?;
            }
            match cache.lookup(&task_name(job, task), &made, task, staging, self.depot, self.config.explain) {
                Lookup::Hit => {
                    (self.report)(AgentEvent::TaskStarted {
                        attempt: job.attempt,
                        index,
                        cached: true,
                        reason: None,
                    });
                    let outputs =
                        collect_outputs(task, staging).map_err(|m| Trouble::Failed(failure(task, m)))?;
                    let millis = clock.elapsed().as_secs_f64() * 1e3;
                    return Ok((
                        TaskResult {
                            outputs,
                            started,
                            millis,
                            cached: true,
                            attempts: 1,
                            ..TaskResult::default()
                        },
                        None,
                    ));
                }
                Lookup::Miss(why) => reason = why,
            }
            key = Some(made);
        }
        (self.report)(AgentEvent::TaskStarted { attempt: job.attempt, index, cached: false, reason });
        let (usage, attempts) = self.attempts(job, index, task, stop, staging)?;
        let outputs = collect_outputs(task, staging).map_err(|m| Trouble::Failed(failure(task, m)))?;
        let millis = clock.elapsed().as_secs_f64() * 1e3;
        let result = TaskResult {
            outputs,
            started,
            millis,
            cached: false,
            attempts,
            cpu_millis: usage.cpu_millis,
            memory: usage.memory,
            ..TaskResult::default()
        };
        Ok((result, key))
    }

    /// Tries a task as often as its policy allows, within its deadline.
    fn attempts(
        &self,
        job: &Job,
        index: usize,
        task: &Executable,
        stop: &Stop,
        staging: &mut Staging,
    ) -> Result<(Usage, u32), Trouble> {
        let policy = task.retries.unwrap_or_default();
        let deadline = task.deadline.map(|d| Instant::now() + d.limit());
        let mut attempt = 1;
        loop {
            let trouble = match self.once(job, index, task, stop, staging, deadline) {
                Ok(usage) => match missing_output(task, staging) {
                    None => return Ok((usage, attempt)),
                    Some(message) => Trouble::Failed(Self::with_log(failure(task, message), job, index)),
                },
                Err(trouble) => trouble,
            };
            let past_deadline = deadline.is_some_and(|d| Instant::now() >= d);
            let again = match &trouble {
                Trouble::Interrupted | Trouble::Unsupplied(_) => false,
                // Limits that only cancel are retried too, as long as somebody still wants the result.
                Trouble::Failed(f) | Trouble::Cancelled(f) => {
                    let again = policy.allows_another(attempt) && policy.applies_to(f.exit_code);
                    stop.wish() == Wish::GoOn && !past_deadline && again
                }
            };
            if !again {
                return Err(trouble);
            }
            pause(&policy, attempt, deadline, stop);
            staging.clear_outputs(task.outputs().map(|o| &o.variable.value));
            attempt += 1;
        }
    }

    fn once(
        &self,
        job: &Job,
        index: usize,
        task: &Executable,
        stop: &Stop,
        staging: &mut Staging,
        deadline: Option<Instant>,
    ) -> Result<Usage, Trouble> {
        for output in task.outputs() {
            let prepared = staging.prepare_output(&output.variable.value, &output.data_type);
            prepared.map_err(|e| Trouble::Failed(no_directory(task, &e)))?;
        }
        let (mut command, shown) = self.command(job, task, staging).map_err(Trouble::Failed)?;
        let around = task.surroundings.as_deref();
        connect(&mut command, around).map_err(|m| Trouble::Failed(failure(task, m)))?;
        let sandbox = sandbox(task, staging).map_err(Trouble::Failed)?;
        let base = log_base(&job.context.logs, job, index);
        let mut stdout = Log::new(base.with_extension("out"));
        let mut stderr = Log::new(base.with_extension("err"));
        let limits = Limits {
            runtime: task.max_runtime.map(|l| Instant::now() + l.limit()),
            inactivity: task.max_inactivity.map(|l| l.limit()),
            deadline,
        };
        let job_log = around.and_then(|a| a.log.as_ref());
        if let Some(log) = job_log {
            let message = |e: io::Error| format!("its log {} cannot be written: {e}", log.file.display());
            joblog::begun(log, now_millis()).map_err(|e| Trouble::Failed(failure(task, message(e))))?;
        }
        let ended = process::run(&mut command, &mut stdout, &mut stderr, &limits, stop, self.roster);
        let (end, usage) =
            ended.map_err(|e| Trouble::Failed(cannot_start(task, &shown, &job.context.directory, &e)))?;
        let mut failed = failure(task, String::new());
        failed.command = shown;
        failed.tail = stderr.tail().cloned().collect();
        if failed.tail.is_empty() {
            failed.tail = stdout.tail().cloned().collect();
        }
        if let Some(log) = job_log {
            // It could be written a moment ago, and the job has done its work.
            let _ = joblog::ended(log, end, now_millis());
        }
        if let (Some(sandbox), End::Exited(_)) = (sandbox, end) {
            sandbox.empty().map_err(|m| Trouble::Failed(failure(task, m)))?;
        }
        if let Some(file) = around.and_then(|a| a.stderr.as_ref()).filter(|_| failed.tail.is_empty()) {
            failed.tail = last_lines(file);
        }
        let log = [&stderr, &stdout].into_iter().find(|l| !l.is_empty());
        failed.log = log.map(|l| l.path().display().to_string());
        match end {
            End::Exited(code) if code == around.map_or(0, |a| a.success) => return Ok(usage),
            End::Exited(code) => {
                failed.message = format!("it ended with exit code {code}");
                failed.exit_code = Some(code);
                if code == 127 && task.script.is_some() {
                    failed.help = Some(match &task.package {
                        Some(package) => format!(
                            "a program was not found; it is in the package `{package}` (apt-get install {package})"
                        ),
                        None => "a program was not found; is it installed and on the PATH?".to_owned(),
                    });
                }
            }
            End::Signalled(signal) => {
                failed.message = format!("it was killed by signal {signal}{}", signal_name(signal));
                failed.signal = Some(signal);
                if signal == 9 {
                    failed.help = Some("the system may have run out of memory; give the task less to do, or say how much `memory` it needs".to_owned());
                }
            }
            End::LimitReached(limit) => {
                let (policy, what) = match limit {
                    Limit::Runtime => (task.max_runtime, "it ran longer than its limit of"),
                    Limit::Inactivity => (task.max_inactivity, "it wrote nothing for its limit of"),
                    Limit::Deadline => (task.deadline, "it was not done within its deadline of"),
                };
                let policy = policy.unwrap_or(TimeoutPolicy { timeout: 0, error_on_timeout: true });
                failed.message = format!("{what} {:?}", policy.limit());
                return Err(if policy.error_on_timeout {
                    Trouble::Failed(failed)
                } else {
                    Trouble::Cancelled(failed)
                });
            }
            End::Stopped(Wish::Cancel) => {
                "it was cancelled".clone_into(&mut failed.message);
                return Err(Trouble::Cancelled(failed));
            }
            End::Stopped(_) => return Err(Trouble::Interrupted),
        }
        Err(Trouble::Failed(failed))
    }

    fn with_log(mut f: TaskFailure, job: &Job, index: usize) -> TaskFailure {
        let base = log_base(&job.context.logs, job, index);
        let log = ["err", "out"].iter().map(|e| base.with_extension(e)).find(|p| p.exists());
        f.log = log.map(|p| p.display().to_string());
        f
    }

    /// The command to start, and how it is shown to people.
    fn command(
        &self,
        job: &Job,
        task: &Executable,
        staging: &mut Staging,
    ) -> Result<(Command, String), TaskFailure> {
        if task.runtime != "other" {
            let message = format!(
                "this agent cannot start the runtime `{}`; it only starts local processes (`other`)",
                task.runtime
            );
            return Err(failure(task, message));
        }
        let mut command;
        let shown;
        if let Some(script) = &task.script {
            let text = task.script_text(script, |v| staging.locate(v));
            command = Command::new(&self.config.shell.0);
            command.args(&self.config.shell.1).arg(&text);
            shown = text;
            let directory = staging.directory().map_err(|e| no_directory(task, &e))?;
            command.current_dir(directory);
        } else if let Some(around) = task.surroundings.as_deref() {
            let arguments = task.command_line(|v| staging.locate(v));
            shown = task.shown_command(&arguments);
            command = Command::new(program_in(&around.directory, &task.path));
            let directory = match around.transfer {
                Some(_) => staging.directory().map_err(|e| no_directory(task, &e))?,
                None => &around.directory,
            };
            command.args(&arguments).current_dir(directory);
        } else {
            let arguments = task.command_line(|v| staging.locate(v));
            let program = task.path.as_str();
            // A path with a slash is relative to the workflow, like all other paths in it.
            let program = if program.contains('/') {
                job.context.directory.join(staging.locate(program))
            } else {
                PathBuf::from(program)
            };
            shown = task.shown_command(&arguments);
            command = Command::new(program);
            let directory = match self.depot {
                Some(_) => staging.directory().map_err(|e| no_directory(task, &e))?,
                None => &job.context.directory,
            };
            command.args(&arguments).current_dir(directory);
        }
        command.env(STATE_VARIABLE, &job.context.state).env(ATTEMPT_VARIABLE, attempt_mark(job.attempt));
        for secret in SECRETS {
            command.env_remove(secret);
        }
        command.envs(task.env.iter().map(|(k, v)| (k.as_str(), v)));
        Ok((command, shown))
    }
}

/// A task that is done, what came of it, and the key to remember it by if it was executed.
type Done<'t> = (&'t Executable, (TaskResult, Option<TaskKey>));

/// The results of tasks that are done, or why others are not.
fn settle_tasks(
    done: Vec<Done<'_>>,
    trouble: Option<Trouble>,
    keys: &mut Vec<(usize, TaskKey)>,
) -> Result<Vec<TaskResult>, Trouble> {
    let mut results = Vec::with_capacity(done.len());
    for (index, (_, (result, key))) in done.into_iter().enumerate() {
        keys.extend(key.map(|key| (index, key)));
        results.push(result);
    }
    trouble.map_or(Ok(results), Err)
}

/// Identifies an attempt among all that an agent runs.
pub(crate) fn attempt_mark(attempt: Attempt) -> String {
    format!("{}/{}", attempt.chain, attempt.number)
}

/// Identifies a task from run to run: what the cache compares with.
fn task_name(job: &Job, task: &Executable) -> String {
    format!("{}#{}", job.context.workflow, task.id)
}

fn log_base(logs: &Path, job: &Job, index: usize) -> PathBuf {
    logs.join(format!("{}-{}-{index}.log", job.attempt.chain.seq, job.attempt.number))
}

fn pause(policy: &RetryPolicy, attempt: u32, deadline: Option<Instant>, stop: &Stop) {
    let mut time = policy.pause_after(attempt);
    if let Some(deadline) = deadline {
        time = time.min(deadline.saturating_duration_since(Instant::now()));
    }
    if !time.is_zero() {
        stop.pause(time);
    }
}

/// A directory with the inputs of a task that wants one of its own.
fn sandbox<'t>(task: &'t Executable, staging: &mut Staging) -> Result<Option<Sandbox<'t>>, TaskFailure> {
    let Some(around) = task.surroundings.as_deref() else { return Ok(None) };
    let Some(transfer) = &around.transfer else { return Ok(None) };
    let directory = staging.directory().map_err(|e| no_directory(task, &e))?;
    Sandbox::fill(directory, &around.directory, transfer).map(Some).map_err(|message| failure(task, message))
}

/// Inputs that are declared as files or directories must be there before the task starts.
fn check_inputs(task: &Executable, directory: &Path, staging: &Staging) -> Result<(), String> {
    for a in task.arguments.iter().filter(|a| a.direction == Direction::Input) {
        let wants_file = a.data_type == "file";
        if !wants_file && a.data_type != DIRECTORY {
            continue;
        }
        let path = directory.join(staging.locate(&a.variable.value));
        match std::fs::metadata(&path) {
            Err(e) => {
                return Err(format!("its input `{}` cannot be read: {}: {e}", a.id, path.display()));
            }
            Ok(meta) if wants_file && meta.is_dir() => {
                return Err(format!(
                    "its input `{}` must be a file, but {} is a directory",
                    a.id,
                    path.display()
                ));
            }
            Ok(meta) if !wants_file && !meta.is_dir() => {
                return Err(format!(
                    "its input `{}` must be a directory, but {} is a file",
                    a.id,
                    path.display()
                ));
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

/// Says which output a task that succeeded has not written.
fn missing_output(task: &Executable, staging: &Staging) -> Option<String> {
    task.outputs().find_map(|output| {
        let local = Path::new(staging.locate(&output.variable.value));
        match std::fs::symlink_metadata(local) {
            Err(_) => Some(format!(
                "it succeeded, but has not written its output `{}` to {}",
                output.id,
                local.display()
            )),
            Ok(meta) if meta.is_dir() && output.data_type == "file" => {
                Some(format!("its output `{}` must be a file, but it made a directory", output.id))
            }
            Ok(_) => None,
        }
    })
}

/// Values are numbers and words; whatever is larger is a file.
const MAX_VALUE: u64 = 64 << 10;

/// The values of a task's outputs: final paths, for directories the files in them, for values what is in the file.
fn collect_outputs(task: &Executable, staging: &Staging) -> Result<Vec<Vec<String>>, String> {
    task.outputs()
        .map(|output| {
            let target = output.variable.value.as_str();
            let local = Path::new(staging.locate(target));
            if output.data_type == VALUE {
                return read_value(output, local).map(|v| vec![v]);
            }
            if output.data_type != DIRECTORY {
                return Ok(vec![target.to_owned()]);
            }
            let files = files_below(local).map_err(|e| unreadable(output, local, &e))?;
            let in_place = |f: &PathBuf| {
                Path::new(target).join(f.strip_prefix(local).unwrap_or(f)).to_string_lossy().into_owned()
            };
            Ok(files.iter().map(in_place).collect())
        })
        .collect()
}

/// What a task has written as a value, without the space around it.
fn read_value(output: &Argument, path: &Path) -> Result<String, String> {
    let bytes = std::fs::metadata(path).map(|m| m.len());
    if bytes.as_ref().is_ok_and(|n| *n > MAX_VALUE) {
        return Err(format!(
            "its output `{}` is a value, but has more than {} KiB",
            output.id,
            MAX_VALUE >> 10
        ));
    }
    let text = bytes.and_then(|_| std::fs::read_to_string(path));
    let text = text.map_err(|e| format!("its output `{}` cannot be read as a value: {e}", output.id))?;
    Ok(text.trim().to_owned())
}

fn unreadable(output: &Argument, path: &Path, e: &io::Error) -> String {
    format!("its output directory `{}` cannot be read: {}: {e}", output.id, path.display())
}

fn failure(task: &Executable, message: String) -> TaskFailure {
    TaskFailure { task: task.id.clone(), message, ..TaskFailure::default() }
}

fn no_directory(task: &Executable, e: &io::Error) -> TaskFailure {
    let mut f = failure(task, format!("its working directory cannot be made: {e}"));
    if e.kind() == io::ErrorKind::StorageFull {
        f.help =
            Some("free some space and run the same command again; it goes on where it stopped".to_owned());
    }
    f
}

fn cannot_start(task: &Executable, shown: &str, directory: &Path, e: &io::Error) -> TaskFailure {
    let mut f = failure(task, format!("the program `{}` cannot be started: {e}", task.path));
    shown.clone_into(&mut f.command);
    f.help = match e.kind() {
        io::ErrorKind::NotFound if !directory.is_dir() => {
            Some(format!("the directory {} does not exist", directory.display()))
        }
        io::ErrorKind::NotFound => Some(match &task.package {
            Some(package) => format!("it is in the package `{package}` (apt-get install {package})"),
            None if task.path.contains('/') => {
                "there is no such file; relative paths start at the directory of the workflow".to_owned()
            }
            None => "it is not on the PATH; install it, or give its full path in the service".to_owned(),
        }),
        io::ErrorKind::PermissionDenied => Some("make the file executable (chmod +x)".to_owned()),
        io::ErrorKind::ArgumentListTooLong => {
            Some("the command line is too long; pass a directory or a file with the list instead".to_owned())
        }
        _ => None,
    };
    f
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}
