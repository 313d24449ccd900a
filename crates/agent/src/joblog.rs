//! Events of jobs in the form of HTCondor's logs, for the programs that read those.

use crate::process::End;
use catena_model::chain::JobLog;
use catena_model::moment;
use std::fs::File;
use std::io::{self, Write};

/// A job begins. It was submitted at the same time, as far as anybody here knows.
pub(crate) fn begun(log: &JobLog, now: i64) -> io::Result<()> {
    let submitted = event(log, 0, now, "Job submitted from host: <127.0.0.1:0>");
    let executing = event(log, 1, now, "Job executing on host: <127.0.0.1:0>");
    write(log, &format!("{submitted}    DAG Node: {}\n...\n{executing}...\n", log.node))
}

/// A job has ended.
pub(crate) fn ended(log: &JobLog, end: End, now: i64) -> io::Result<()> {
    let text = match end {
        End::Exited(code) => {
            let terminated = event(log, 5, now, "Job terminated.");
            format!("{terminated}\t(1) Normal termination (return value {code})\n...\n")
        }
        End::Signalled(signal) => {
            let terminated = event(log, 5, now, "Job terminated.");
            format!("{terminated}\t(0) Abnormal termination (signal {signal})\n...\n")
        }
        End::LimitReached(_) | End::Stopped(_) => {
            format!("{}...\n", event(log, 9, now, "Job was aborted."))
        }
    };
    write(log, &text)
}

fn event(log: &JobLog, number: u32, now: i64, what: &str) -> String {
    let (cluster, job) = log.job;
    format!("{number:03} ({cluster:03}.{job:03}.000) {} {what}\n", moment(now))
}

/// In one piece, because others write into the same file.
fn write(log: &JobLog, text: &str) -> io::Result<()> {
    File::options().create(true).append(true).open(&log.file)?.write_all(text.as_bytes())
}
