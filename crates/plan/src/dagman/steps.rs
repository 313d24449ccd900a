//! The chains that nodes are executed with: scripts and jobs.

use super::node::Try;
use catena_model::chain::{Argument, ArgumentVariable, Executable, JobLog, ProcessChain, Surroundings};
use catena_model::dagman::{DagNode, Script, SubmitJob};
use catena_model::{Direction, ExitRule, Name, Resources, RetryPolicy, TimeoutPolicy};
use smol_str::format_smolstr;
use std::collections::BTreeMap;

/// What jobs and scripts may ask for about the DAG and their node.
#[derive(Clone, Debug, Default)]
pub struct JobMacros {
    /// The number of this submission.
    pub cluster: u64,
    /// How often the node was tried again.
    pub retry: u32,
    /// 0 if all is well, 2 if a node has failed, 3 if the DAG is aborted.
    pub dag_status: u32,
    /// How many nodes there are, have jobs, have succeeded, have failed, and cannot run any more.
    pub counts: [u32; 5],
    /// The names of the node's parents.
    pub parents: Vec<Name>,
}

/// When a script runs.
pub(super) enum When<'a> {
    Pre,
    /// With what the jobs did.
    Post(&'a Try),
}

impl JobMacros {
    /// Replaces macros, which must be whole arguments.
    fn expand(&self, argument: &str, node: &DagNode, when: &When<'_>) -> Option<String> {
        let [nodes, queued, done, failed, futile] = self.counts;
        let known = match argument.strip_prefix('$')? {
            "NODE" | "JOB" => node.name.to_string(),
            "RETRY" => self.retry.to_string(),
            "MAX_RETRIES" => node.rules().retry.map_or(0, |(max, _)| max).to_string(),
            "NODE_COUNT" => nodes.to_string(),
            "QUEUED_COUNT" => queued.to_string(),
            "DONE_COUNT" => done.to_string(),
            "FAILED_COUNT" => failed.to_string(),
            "FUTILE_COUNT" => futile.to_string(),
            "DAGID" => "0".to_owned(),
            "DAG_STATUS" => self.dag_status.to_string(),
            name => {
                let When::Post(this) = when else { return None };
                after_jobs(name, this)?
            }
        };
        Some(known)
    }
}

/// What only POST scripts may ask for.
fn after_jobs(name: &str, this: &Try) -> Option<String> {
    Some(match name {
        "CLUSTERID" => this.cluster.to_string(),
        "JOBID" => format!("{}.0", this.cluster),
        "JOB_COUNT" => this.jobs.to_string(),
        "JOB_ABORT_COUNT" => this.removed.to_string(),
        "SUCCESS" => if this.value() == 0 && !this.job_failed { "True" } else { "False" }.to_owned(),
        "RETURN" => this.value().to_string(),
        "PRE_SCRIPT_RETURN" => this.pre.map_or_else(|| "-1".to_owned(), |c| c.to_string()),
        "EXIT_CODES" | "EXIT_CODE_LIST" => {
            let mut codes = this.codes.clone();
            codes.sort_unstable();
            if name == "EXIT_CODES" {
                codes.dedup();
            }
            codes.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
        }
        "EXIT_CODE_COUNTS" => {
            let mut counts = BTreeMap::new();
            for code in &this.codes {
                *counts.entry(code).or_insert(0) += 1;
            }
            counts.iter().map(|(code, n)| format!("{code}:{n}")).collect::<Vec<_>>().join(",")
        }
        _ => return None,
    })
}

/// The chain of a script. It needs no processor: scripts run beside the jobs.
pub(super) fn script_chain(
    id: Name,
    node: &DagNode,
    script: &Script,
    when: &When<'_>,
    macros: &JobMacros,
    env: &[(Name, String)],
) -> ProcessChain {
    let mut words = script.command.split_whitespace();
    let program = Name::new(words.next().unwrap_or_default());
    let arguments =
        words.map(|word| macros.expand(word, node, when).map_or_else(|| Name::new(word), Name::from));
    let wants = |stream: &str| {
        let (file, which) = script.debug.as_ref()?;
        let wanted = which.eq_ignore_ascii_case(stream) || which.eq_ignore_ascii_case("ALL");
        wanted.then(|| node.directory.join(file.as_str()))
    };
    let surroundings = Surroundings {
        directory: node.directory.to_path_buf(),
        stdout: wants("STDOUT"),
        stderr: wants("STDERR"),
        ..Surroundings::default()
    };
    let mut chain = chain(id, program, arguments.collect(), surroundings, env.to_vec());
    chain.resources = Resources::zero();
    chain.priority = node.priority;
    chain.retries = script.defer.map(|(code, seconds)| RetryPolicy {
        max_attempts: -1,
        delay: seconds * 1000,
        exit: Some(ExitRule::Only(code as i32)),
        ..RetryPolicy::default()
    });
    chain
}

/// The chain of a job, which is the given one of a submission.
pub(super) fn job_chain(id: Name, node: &DagNode, number: (u64, u32), job: &SubmitJob) -> ProcessChain {
    let surroundings = Surroundings {
        directory: job.directory.clone(),
        stdin: job.input.clone(),
        stdout: job.output.clone(),
        stderr: job.error.clone(),
        success: job.success_exit_code,
        transfer: job.transfer.clone(),
        log: job.log.clone().map(|file| JobLog { file, job: number, node: node.name.clone() }),
    };
    let mut chain =
        chain(id, job.executable.clone(), job.arguments.clone(), surroundings, job.environment.clone());
    chain.required_capabilities.clone_from(&job.capabilities);
    chain.resources = job.resources.clone();
    chain.priority = job.priority.unwrap_or(node.priority);
    chain.executables[0].max_runtime = job
        .max_runtime
        .map(|limit| TimeoutPolicy { timeout: limit.as_millis() as u64, error_on_timeout: true });
    chain.retries = job.max_retries.map(|retries| RetryPolicy {
        max_attempts: i32::try_from(retries).unwrap_or(i32::MAX).saturating_add(1),
        exit: job.retry_until.map(ExitRule::Except),
        ..RetryPolicy::default()
    });
    chain
}

fn chain(
    id: Name,
    program: Name,
    arguments: Vec<Name>,
    surroundings: Surroundings,
    env: Vec<(Name, String)>,
) -> ProcessChain {
    let argument = |(n, value): (usize, Name)| {
        let id = format_smolstr!("{n}");
        Argument {
            id: id.clone(),
            label: None,
            variable: ArgumentVariable { id, value },
            direction: Direction::Input,
            data_type: Name::new_static("string"),
        }
    };
    let task = Executable {
        arguments: arguments.into_iter().enumerate().map(argument).collect(),
        env,
        // What a job does besides its streams is not known, so its result cannot be kept for later.
        cache: false,
        surroundings: Some(Box::new(surroundings)),
        ..Executable::new(id.clone(), program)
    };
    ProcessChain { failure_is_result: true, ..ProcessChain::new(id, vec![task]) }
}
