//! What tasks write, kept in files of limited size, with the last lines at hand.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A log file grows to this size; then only the end of the output is kept besides it.
const MAX_LOG_BYTES: u64 = 16 << 20;
/// How much of the end is kept once the file is full.
const TAIL_BYTES: usize = 256 << 10;
/// How many of the last lines are shown when a task fails.
const TAIL_LINES: usize = 20;
/// Lines longer than this are cut in the tail.
const MAX_LINE: usize = 2000;

/// One stream of a task.
pub(crate) struct Log {
    path: PathBuf,
    file: Option<File>,
    written: u64,
    omitted: u64,
    /// The end of the output after the file was full.
    end: VecDeque<u8>,
    /// The last complete lines and the one being written.
    lines: VecDeque<String>,
    partial: Vec<u8>,
    failed: bool,
}

impl Log {
    /// A log that makes its file with the first byte.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            written: 0,
            omitted: 0,
            end: VecDeque::new(),
            lines: VecDeque::new(),
            partial: Vec::new(),
            failed: false,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// Takes in what a task wrote.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.remember_lines(bytes);
        let room = MAX_LOG_BYTES.saturating_sub(self.written).min(bytes.len() as u64) as usize;
        if room > 0 {
            self.append(&bytes[..room]);
            self.written += room as u64;
        }
        let rest = &bytes[room..];
        if !rest.is_empty() {
            let keep = &rest[rest.len().saturating_sub(TAIL_BYTES)..];
            let excess = (self.end.len() + keep.len()).saturating_sub(TAIL_BYTES);
            self.omitted += (excess + rest.len() - keep.len()) as u64;
            self.end.drain(..excess.min(self.end.len()));
            self.end.extend(keep);
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        if self.failed {
            return;
        }
        if self.file.is_none() {
            let open = || {
                if let Some(directory) = self.path.parent() {
                    std::fs::create_dir_all(directory)?;
                }
                File::options().create(true).append(true).open(&self.path)
            };
            match open() {
                Ok(file) => self.file = Some(file),
                // A task must not fail because its log cannot be kept; its last lines still can.
                Err(_) => self.failed = true,
            }
        }
        if let Some(file) = &mut self.file
            && file.write_all(bytes).is_err()
        {
            self.failed = true;
        }
    }

    fn remember_lines(&mut self, bytes: &[u8]) {
        // Only the end of a large piece can be among the last lines.
        let bytes = &bytes[bytes.len().saturating_sub(TAIL_LINES * MAX_LINE)..];
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            if self.partial.len() < MAX_LINE {
                let room = MAX_LINE - self.partial.len();
                self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
            }
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.partial).trim_end().to_owned();
        self.partial.clear();
        if self.lines.len() == TAIL_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// Writes what is left when the task has ended.
    pub(crate) fn close(&mut self) {
        if !self.partial.is_empty() {
            self.end_line();
        }
        if !self.end.is_empty() {
            let end: Vec<u8> = std::mem::take(&mut self.end).into();
            let note = format!("\n[catena: {} bytes are left out here]\n", self.omitted);
            self.append(note.as_bytes());
            self.append(&end);
        }
        self.file = None;
    }

    /// The last lines.
    pub(crate) fn tail(&self) -> impl Iterator<Item = &String> {
        self.lines.iter()
    }
}

/// The last lines of a file that a task has written itself.
pub(crate) fn last_lines(path: &Path) -> Vec<String> {
    let read = || {
        let mut file = File::open(path)?;
        let start = file.metadata()?.len().saturating_sub(TAIL_BYTES as u64);
        file.seek(SeekFrom::Start(start))?;
        let mut end = Vec::new();
        file.take(TAIL_BYTES as u64).read_to_end(&mut end)?;
        Ok::<_, std::io::Error>(end)
    };
    let end = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&end);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    last.iter().map(|l| l.chars().take(MAX_LINE).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_task_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::new(dir.path().join("a/b.log"));
        log.close();
        assert!(!dir.path().join("a").exists());
    }

    #[test]
    fn a_log_keeps_its_beginning_and_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::new(dir.path().join("x.log"));
        log.write(b"first line\n");
        for _ in 0..40 {
            log.write(&vec![b'x'; 1 << 20]);
        }
        log.write(b"\nlast line\n");
        log.close();
        let text = std::fs::read(dir.path().join("x.log")).unwrap();
        assert!(text.starts_with(b"first line\n") && text.ends_with(b"\nlast line\n"));
        assert!(text.len() < (MAX_LOG_BYTES as usize) + TAIL_BYTES + 200);
        assert_eq!(log.tail().last().unwrap(), "last line");
    }
}
