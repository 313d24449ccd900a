//! What the keys of a submit description mean for a job.

use super::macros::{Live, Scope};
use super::numbers::{Number, evaluate};
use super::read::{Description, Reader, resolved};
use super::requirements::require;
use super::words::{arguments, environment, files, list, pairs};
use super::{GetEnv, Place, Problem, SubmitJob, Transfer};
use crate::{Name, Resources};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Keys that change what HTCondor does and that we do not honour, and the value with which they change nothing.
const NOT_HONOURED: [(&str, &str); 17] = [
    ("periodic_hold", "false"),
    ("periodic_release", "false"),
    ("periodic_remove", "false"),
    ("periodic_vacate", "false"),
    ("on_exit_hold", "false"),
    ("on_exit_remove", "true"),
    ("hold", "false"),
    ("deferral_time", ""),
    ("cron_minute", ""),
    ("cron_hour", ""),
    ("cron_day_of_month", ""),
    ("cron_month", ""),
    ("cron_day_of_week", ""),
    ("rank", "0"),
    ("preferences", "0"),
    ("concurrency_limits", ""),
    ("concurrency_limits_expr", ""),
];

/// The jobs of a description.
pub(super) fn jobs(description: &Description, reader: &mut Reader<'_>) -> Result<Vec<SubmitJob>, Problem> {
    let cluster = reader.context.cluster;
    let live = description.queue.jobs(&reader.directory, cluster);
    let live = live.map_err(|message| description.place.problem(message))?;
    live.iter().map(|live| Keys { description, live, reader }.job()).collect()
}

/// The values of the keys for one job.
struct Keys<'a, 'r> {
    description: &'a Description,
    live: &'a Live,
    reader: &'a mut Reader<'r>,
}

/// A value and where it stands.
struct Value {
    key: &'static str,
    text: String,
    place: Place,
}

impl Value {
    fn wrong(&self, expected: &str) -> Problem {
        self.place.problem(format!("`{}` must be {expected}, not `{}`", self.key, self.text))
    }

    fn integer<N: TryFrom<i64>>(&self, expected: &str) -> Result<N, Problem> {
        let number = match evaluate(&self.text) {
            Some(Number::Whole(number)) => N::try_from(number).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.wrong(expected))
    }

    fn truth(&self) -> Result<bool, Problem> {
        match self.text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "t" | "1" => Ok(true),
            "false" | "no" | "f" | "0" => Ok(false),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// A count, in thousandths.
    fn thousandths(&self) -> Result<u64, Problem> {
        let number = evaluate(&self.text).map(Number::real).filter(|number| *number >= 0.0);
        number.map(|n| (n * 1000.0).round() as u64).ok_or_else(|| self.wrong("a number that is not negative"))
    }

    /// A size in bytes. Without a unit it is in the given one.
    fn bytes(&self, unit: f64) -> Result<u64, Problem> {
        let text = self.text.trim_end_matches(['b', 'B']);
        let text = if text.len() < self.text.len() { text.trim_end_matches('i') } else { text };
        let factor = |c: char| match c.to_ascii_uppercase() {
            'K' => Some(1024.0),
            'M' => Some(1024.0 * 1024.0),
            'G' => Some(1024.0 * 1024.0 * 1024.0),
            'T' => Some(1024.0 * 1024.0 * 1024.0 * 1024.0),
            _ => None,
        };
        let suffix = text.chars().next_back().and_then(|c| Some((c, factor(c)?)));
        let (number, factor) = match suffix {
            Some((c, factor)) => (&text[..text.len() - c.len_utf8()], factor),
            None if text.len() == self.text.len() => (text, unit),
            // Bytes without a K.
            None => (text, 1.0),
        };
        let number = evaluate(number).map(Number::real).filter(|number| *number >= 0.0);
        let wrong = || self.wrong("a size such as 512, 512 MB or 2G");
        number.map(|n| (n * factor).ceil() as u64).ok_or_else(wrong)
    }
}

impl Keys<'_, '_> {
    /// The value of a key or one of its other names, if it has one that is not empty.
    fn get(&self, keys: &[&'static str]) -> Result<Option<Value>, Problem> {
        for key in keys {
            let mut scope = Scope::new(&self.description.macros, self.live, &self.reader.directory);
            let is_live = self.live.iter().any(|(name, _)| name == key);
            let place = self.description.macros.place(key).filter(|_| !is_live);
            let place = place.unwrap_or(self.description.place);
            let value = scope.value(key).map_err(|message| place.problem(message))?;
            let text = value.unwrap_or_default().trim().to_owned();
            if !text.is_empty() {
                return Ok(Some(Value { key, text, place }));
            }
        }
        Ok(None)
    }

    fn truth(&self, key: &'static str, default: bool) -> Result<bool, Problem> {
        self.get(&[key])?.map_or(Ok(default), |value| value.truth())
    }

    fn integer<N: TryFrom<i64>>(&self, keys: &[&'static str], expected: &str) -> Result<Option<N>, Problem> {
        self.get(keys)?.map(|value| value.integer(expected)).transpose()
    }

    fn parsed<T>(
        &self,
        keys: &[&'static str],
        parse: impl Fn(&str) -> Result<Vec<T>, String>,
    ) -> Result<Vec<T>, Problem> {
        let Some(value) = self.get(keys)? else { return Ok(Vec::new()) };
        parse(&value.text).map_err(|message| value.place.problem(format!("`{}`: {message}", value.key)))
    }

    fn job(&mut self) -> Result<SubmitJob, Problem> {
        self.check_universe()?;
        self.warn_of_others()?;
        let directory = match self.get(&["initialdir", "initial_dir", "job_iwd"])? {
            Some(value) => resolved(&self.reader.directory, &value.text),
            None => self.reader.directory.clone(),
        };
        let path = |keys: &[&'static str]| -> Result<Option<PathBuf>, Problem> {
            Ok(self.get(keys)?.map(|value| resolved(&directory, &value.text)))
        };
        let (input, output) = (path(&["input", "stdin"])?, path(&["output", "stdout"])?);
        let (error, log) = (path(&["error", "stderr"])?, path(&["log", "userlog"])?);
        let (resources, capabilities) = self.needs()?;
        Ok(SubmitJob {
            executable: self.executable()?,
            arguments: self.parsed(&["arguments2", "arguments", "args"], arguments)?,
            environment: self.parsed(&["environment2", "environment", "env"], environment)?,
            getenv: self.getenv()?,
            input,
            output,
            error,
            log,
            resources,
            capabilities,
            priority: self.integer(&["priority", "prio"], "a whole number")?,
            max_retries: self.integer(&["max_retries"], "a whole number that is not negative")?,
            retry_until: self.retry_until()?,
            success_exit_code: self.integer(&["success_exit_code"], "a whole number")?.unwrap_or(0),
            transfer: self.transfer(&directory)?,
            max_runtime: self.max_runtime()?,
            noop: self.truth("noop_job", false)?,
            directory,
        })
    }

    /// Only programs of the machine itself are executed.
    fn check_universe(&self) -> Result<(), Problem> {
        let universe = self.get(&["universe"])?.filter(|value| {
            let allowed = ["vanilla", "local", "scheduler", "5", "7", "12"];
            !allowed.iter().any(|name| value.text.eq_ignore_ascii_case(name))
        });
        let image = self.get(&["docker_image", "container_image"])?;
        match universe.or(image) {
            Some(Value { key, text, place }) => {
                Err(place.problem(format!("{key} = {text}: only programs of the machine can be run")))
            }
            None => Ok(()),
        }
    }

    fn warn_of_others(&mut self) -> Result<(), Problem> {
        for (key, harmless) in NOT_HONOURED {
            if let Some(value) = self.get(&[key])?.filter(|v| !v.text.eq_ignore_ascii_case(harmless)) {
                self.reader.warn(value.place, &format!("`{key}` is ignored"));
            }
        }
        Ok(())
    }

    /// The program. A bare name is one of PATH, unless there is such a file beside the description.
    fn executable(&self) -> Result<Name, Problem> {
        let Some(value) = self.get(&["executable"])? else {
            return Err(self.description.place.problem("`executable` is missing"));
        };
        let path = resolved(&self.reader.directory, &value.text);
        let is_bare = !value.text.contains('/') && !path.exists();
        Ok(if is_bare { value.text.into() } else { name_of(&path) })
    }

    fn getenv(&self) -> Result<GetEnv, Problem> {
        let Some(value) = self.get(&["getenv", "get_env"])? else { return Ok(GetEnv::No) };
        Ok(match value.truth() {
            Ok(true) => GetEnv::All,
            Ok(false) => GetEnv::No,
            Err(_) => GetEnv::Some(list(&value.text).into_iter().map(Name::new).collect()),
        })
    }

    fn needs(&mut self) -> Result<(Resources, Vec<Name>), Problem> {
        let mut resources = Resources::default();
        // An expression may say that there is no value.
        let request = |keys: &[&'static str]| -> Result<Option<Value>, Problem> {
            Ok(self.get(keys)?.filter(|value| !value.text.eq_ignore_ascii_case("undefined")))
        };
        if let Some(value) = request(&["request_cpus", "requestcpus"])? {
            resources.cpus = value.thousandths()?;
        }
        if let Some(value) = request(&["request_memory", "requestmemory"])? {
            resources.memory = value.bytes(1024.0 * 1024.0)?;
        }
        if let Some(value) = request(&["request_disk", "requestdisk"])? {
            resources.disk = value.bytes(1024.0)?;
        }
        if let Some(value) = request(&["request_gpus", "requestgpus"])? {
            let gpus = value.thousandths()?;
            if gpus > 0 {
                resources.named.insert(Name::new("gpus"), gpus);
            }
        }
        let mut capabilities = Vec::new();
        if let Some(value) = self.get(&["requirements"])? {
            for term in require(&value.text, &mut resources, &mut capabilities) {
                self.reader.warn(value.place, &format!("`requirements`: the term `{term}` is ignored"));
            }
        }
        capabilities.sort();
        capabilities.dedup();
        Ok((resources, capabilities))
    }

    fn retry_until(&mut self) -> Result<Option<i32>, Problem> {
        let Some(value) = self.get(&["retry_until"])? else { return Ok(None) };
        let code = value.integer("an exit code").ok();
        if code.is_none() {
            self.reader.warn(value.place, "`retry_until` is ignored: only an exit code can be told");
        }
        Ok(code)
    }

    fn max_runtime(&self) -> Result<Option<Duration>, Problem> {
        let seconds = |key| self.integer::<u64>(&[key], "a number of seconds");
        let limits = [seconds("allowed_job_duration")?, seconds("allowed_execute_duration")?];
        Ok(limits.into_iter().flatten().min().map(Duration::from_secs))
    }

    fn transfer(&self, directory: &Path) -> Result<Option<Transfer>, Problem> {
        let is_asked_for =
            self.get(&["should_transfer_files"])?.is_some_and(|v| v.text.eq_ignore_ascii_case("yes"));
        if !is_asked_for {
            return Ok(None);
        }
        let inputs = self.get(&["transfer_input_files", "transferinputfiles", "transfer_input"])?;
        let inputs =
            inputs.map(|value| files(&value.text).iter().map(|f| transferred(directory, f)).collect());
        let outputs = self.get(&["transfer_output_files", "transferoutputfiles", "transfer_output"])?;
        let outputs = outputs.map(|value| files(&value.text).into_iter().map(Name::new).collect());
        Ok(Some(Transfer {
            inputs: inputs.unwrap_or_default(),
            outputs,
            remaps: self.parsed(&["transfer_output_remaps"], pairs)?,
            executable: self.truth("transfer_executable", true)?,
        }))
    }
}

fn name_of(path: &Path) -> Name {
    Name::new(path.to_string_lossy())
}

/// A file that moves to the job. Addresses stay as they are.
fn transferred(directory: &Path, file: &str) -> Name {
    if file.contains("://") {
        return Name::new(file);
    }
    let path = name_of(&resolved(directory, file));
    if file.ends_with('/') && path != "/" { Name::new(format!("{path}/")) } else { path }
}
