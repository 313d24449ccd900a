//! Starts one process, takes in what it writes, and makes sure that nothing of it is left.

use crate::log::Log;
use crate::roster::{ATTEMPT_VARIABLE, Roster, STATE_VARIABLE};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// How long a process may take to end itself when asked to.
const GRACE: Duration = Duration::from_secs(3);

/// A way to stop what a slot is doing from another thread.
pub(crate) struct Stop {
    wish: AtomicU8,
    wake: Option<OwnedFd>,
}

/// Why something should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    GoOn,
    /// The agent ends; the chain can go on later.
    Interrupt,
    /// The user wants no more of it.
    Cancel,
}

impl Stop {
    pub(crate) fn new() -> Self {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
        Self { wish: AtomicU8::new(0), wake }
    }

    pub(crate) fn ask(&self, wish: Wish) {
        let code = match wish {
            Wish::GoOn => 0,
            Wish::Interrupt => 1,
            Wish::Cancel => 2,
        };
        self.wish.fetch_max(code, Ordering::SeqCst);
        if let Some(wake) = &self.wake {
            let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
        }
    }

    pub(crate) fn wish(&self) -> Wish {
        match self.wish.load(Ordering::SeqCst) {
            0 => Wish::GoOn,
            1 => Wish::Interrupt,
            _ => Wish::Cancel,
        }
    }

    /// Waits for a time, or until somebody asks to stop. Returns whether to go on.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while self.wish() == Wish::GoOn {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            match &self.wake {
                Some(wake) => {
                    let mut fds = [PollFd::new(wake, PollFlags::IN)];
                    let _ = poll(&mut fds, Some(&timespec(left)));
                }
                None => std::thread::sleep(left.min(Duration::from_millis(50))),
            }
        }
        false
    }
}

fn timespec(d: Duration) -> Timespec {
    Timespec { tv_sec: d.as_secs() as i64, tv_nsec: i64::from(d.subsec_nanos()) }
}

/// When to stop a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) runtime: Option<Instant>,
    pub(crate) inactivity: Option<Duration>,
    pub(crate) deadline: Option<Instant>,
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Runtime,
    Inactivity,
    Deadline,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Signalled(i32),
    LimitReached(Limit),
    Stopped(Wish),
}

/// What a process used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_millis: f64,
    pub(crate) memory: u64,
}

/// Runs a command to its end. Its process group is gone when this returns.
pub(crate) fn run(
    command: &mut Command,
    stdout: &mut Log,
    stderr: &mut Log,
    limits: &Limits,
    stop: &Stop,
    roster: &Roster,
) -> io::Result<(End, Usage)> {
    command.process_group(0);
    let place = roster.reserve();
    let child = command.spawn().inspect_err(|_| roster.leave(place))?;
    let pid = Pid::from_child(&child);
    roster.enter(place, pid);
    let result = supervise(child, pid, stdout, stderr, limits, stop);
    roster.leave(place);
    stdout.close();
    stderr.close();
    result
}

fn supervise(
    mut child: Child,
    pid: Pid,
    stdout: &mut Log,
    stderr: &mut Log,
    limits: &Limits,
    stop: &Stop,
) -> io::Result<(End, Usage)> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let mut out = child.stdout.take().map(Stream::new);
    let mut err = child.stderr.take().map(Stream::new);
    let mut last_activity = Instant::now();
    let mut reason: Option<End> = None;
    let mut kill_at: Option<Instant> = None;
    loop {
        let now = Instant::now();
        if reason.is_none() {
            reason = overdue(limits, last_activity, now).map(End::LimitReached);
            if reason.is_none() && stop.wish() != Wish::GoOn {
                reason = Some(End::Stopped(stop.wish()));
            }
            if reason.is_some() {
                let _ = kill_process_group(pid, Signal::TERM);
                kill_at = Some(now + GRACE);
            }
        } else if kill_at.is_some_and(|t| now >= t) {
            let _ = kill_process_group(pid, Signal::KILL);
            kill_at = None;
        }
        let wait = next_wake(limits, last_activity, reason.is_some(), kill_at, now);
        let ended = wait_for_activity(
            &pidfd,
            out.as_ref(),
            err.as_ref(),
            stop.wake.as_ref().filter(|_| reason.is_none()),
            wait,
        )?;
        let mut active = false;
        for (stream, log) in [(&mut out, &mut *stdout), (&mut err, &mut *stderr)] {
            if let Some(s) = stream {
                match s.take_in(log) {
                    Taken::Something => active = true,
                    Taken::Nothing => {}
                    Taken::End => *stream = None,
                }
            }
        }
        if active {
            last_activity = Instant::now();
        }
        if ended {
            break;
        }
    }
    // What the process left behind in its group goes with it.
    let _ = kill_process_group(pid, Signal::KILL);
    for (stream, log) in [(&mut out, stdout), (&mut err, stderr)] {
        if let Some(s) = stream {
            while s.take_in(log) == Taken::Something {}
        }
    }
    let (end, usage) = reap(pid)?;
    Ok((reason.unwrap_or(end), usage))
}

fn overdue(limits: &Limits, last_activity: Instant, now: Instant) -> Option<Limit> {
    if limits.deadline.is_some_and(|t| now >= t) {
        Some(Limit::Deadline)
    } else if limits.runtime.is_some_and(|t| now >= t) {
        Some(Limit::Runtime)
    } else if limits.inactivity.is_some_and(|d| now.duration_since(last_activity) >= d) {
        Some(Limit::Inactivity)
    } else {
        None
    }
}

fn next_wake(
    limits: &Limits,
    last_activity: Instant,
    ending: bool,
    kill_at: Option<Instant>,
    now: Instant,
) -> Option<Duration> {
    let times = if ending {
        [kill_at, None, None]
    } else {
        [limits.deadline, limits.runtime, limits.inactivity.map(|d| last_activity + d)]
    };
    times.into_iter().flatten().min().map(|t| t.saturating_duration_since(now))
}

/// Waits until the process ends, writes something, or should be looked at. Returns whether it ended.
fn wait_for_activity(
    pidfd: &OwnedFd,
    out: Option<&Stream>,
    err: Option<&Stream>,
    wake: Option<&OwnedFd>,
    wait: Option<Duration>,
) -> io::Result<bool> {
    let mut fds = Vec::with_capacity(4);
    fds.push(PollFd::new(pidfd, PollFlags::IN));
    fds.extend(out.map(|s| PollFd::from_borrowed_fd(s.pipe.as_fd(), PollFlags::IN)));
    fds.extend(err.map(|s| PollFd::from_borrowed_fd(s.pipe.as_fd(), PollFlags::IN)));
    fds.extend(wake.map(|w| PollFd::new(w, PollFlags::IN)));
    let wait = wait.map(timespec);
    match poll(&mut fds, wait.as_ref()) {
        Ok(_) => Ok(!fds[0].revents().is_empty()),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// One output of a process.
struct Stream {
    pipe: OwnedFd,
}

#[derive(PartialEq, Eq)]
enum Taken {
    Something,
    Nothing,
    End,
}

impl Stream {
    fn new(pipe: impl Into<OwnedFd>) -> Self {
        let pipe = pipe.into();
        let flags = rustix::fs::fcntl_getfl(&pipe).unwrap_or(rustix::fs::OFlags::empty());
        let _ = rustix::fs::fcntl_setfl(&pipe, flags | rustix::fs::OFlags::NONBLOCK);
        Self { pipe }
    }

    /// Takes in what is there, but not forever: a process may write faster than we read.
    fn take_in(&mut self, log: &mut Log) -> Taken {
        let mut buffer = [0; 16 << 10];
        let mut taken = Taken::Nothing;
        for _ in 0..16 {
            match rustix::io::read(&self.pipe, &mut buffer) {
                Ok(0) => {
                    return if taken == Taken::Nothing { Taken::End } else { taken };
                }
                Ok(n) => {
                    log.write(&buffer[..n]);
                    taken = Taken::Something;
                    if n < 4096 {
                        return taken;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return taken,
                Err(_) => return Taken::End,
            }
        }
        taken
    }
}

/// Collects the exit status together with what the process used.
#[expect(
    unsafe_code,
    reason = "wait4 is the only call that tells the usage of one child, and has no safe wrapper"
)]
fn reap(pid: Pid) -> io::Result<(End, Usage)> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is valid, and both pointers are to live locals.
    let (result, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let result = loop {
            let result = libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage);
            if result >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break result;
            }
        };
        (result, usage)
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let millis = |t: libc::timeval| t.tv_sec as f64 * 1e3 + t.tv_usec as f64 / 1e3;
    let usage = Usage {
        cpu_millis: millis(usage.ru_utime) + millis(usage.ru_stime),
        memory: usage.ru_maxrss as u64 * 1024,
    };
    let end = if libc::WIFSIGNALED(status) {
        End::Signalled(libc::WTERMSIG(status))
    } else {
        End::Exited(libc::WEXITSTATUS(status))
    };
    Ok((end, usage))
}

/// Orphans of our tasks become our children, so that we can see and end them.
pub(crate) fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends and collects processes that left their task's group and outlived its attempt. `is_running` tells
/// which attempts still have a right to them.
pub(crate) fn end_orphans(state: &str, is_running: impl Fn(&str) -> bool) {
    let pid = rustix::process::getpid().as_raw_nonzero();
    let mut children = String::new();
    // Adopted children belong to the first thread; those that slots have started do not.
    let list = std::fs::File::open(format!("/proc/self/task/{pid}/children"));
    if list.and_then(|mut f| f.read_to_string(&mut children)).is_err() || children.is_empty() {
        return;
    }
    for child in children.split_whitespace().filter_map(|c| c.parse().ok()).filter_map(Pid::from_raw) {
        let environment =
            std::fs::read(format!("/proc/{}/environ", child.as_raw_nonzero())).unwrap_or_default();
        if environment.is_empty() {
            // It has ended by itself and only waits to be collected.
            let _ = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::NOHANG);
            continue;
        }
        let value = |name: &str| {
            let mut entries = environment.split(|b| *b == 0).filter_map(|e| std::str::from_utf8(e).ok());
            entries.find_map(|e| e.strip_prefix(name)?.strip_prefix('='))
        };
        if value(STATE_VARIABLE) == Some(state) && !value(ATTEMPT_VARIABLE).is_some_and(&is_running) {
            let _ = rustix::process::kill_process(child, Signal::KILL);
            let _ = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
        }
    }
}
