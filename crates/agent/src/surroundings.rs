//! Tasks that say themselves where they run: with files as their streams, in a directory of theirs, or in one of
//! their own that files move to and from.

use catena_model::Name;
use catena_model::chain::{Surroundings, Transfer};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// Connects a command with the files that it reads from and writes to. What it does not name comes through pipes and
/// is kept in logs.
pub(crate) fn connect(command: &mut Command, surroundings: Option<&Surroundings>) -> Result<(), String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Some(Surroundings { stdin, stdout, stderr, .. }) = surroundings else { return Ok(()) };
    let fail = |path: &Path, e: io::Error| format!("{} cannot be opened: {e}", path.display());
    if let Some(path) = stdin {
        command.stdin(File::open(path).map_err(|e| fail(path, e))?);
    }
    let output = stdout.as_ref().map(|p| File::create(p).map_err(|e| fail(p, e))).transpose()?;
    if let Some(path) = stderr {
        // Two descriptors of one file would overwrite each other.
        let shared = output.as_ref().filter(|_| stdout.as_ref() == Some(path));
        let file = shared.map_or_else(|| File::create(path), File::try_clone);
        command.stderr(file.map_err(|e| fail(path, e))?);
    }
    if let Some(output) = output {
        command.stdout(output);
    }
    Ok(())
}

/// The directory of a task that has one of its own, and what was in it when the task started.
pub(crate) struct Sandbox<'t> {
    directory: PathBuf,
    home: &'t Path,
    transfer: &'t Transfer,
    before: HashMap<PathBuf, Mark>,
}

/// Tells whether a file has changed: its size and time.
type Mark = (u64, Option<SystemTime>);

impl<'t> Sandbox<'t> {
    /// Fills a directory with the inputs of a task.
    pub(crate) fn fill(directory: &Path, home: &'t Path, transfer: &'t Transfer) -> Result<Self, String> {
        for input in &transfer.inputs {
            if input.contains("://") {
                return Err(format!("its input {input} cannot be fetched: only files can be transferred"));
            }
            let from = Path::new(input.as_str());
            let to = match from.file_name() {
                Some(name) if !input.ends_with('/') => directory.join(name),
                _ => directory.to_path_buf(),
            };
            copy(from, &to).map_err(|e| format!("its input {input} cannot be transferred: {e}"))?;
        }
        let before = entries(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        Ok(Self { directory: directory.to_path_buf(), home, transfer, before })
    }

    /// Brings the outputs of a task back to where it was started from.
    pub(crate) fn empty(&self) -> Result<(), String> {
        let (home, transfer) = (self.home, self.transfer);
        let outputs: Vec<PathBuf> = match &transfer.outputs {
            Some(named) => named.iter().map(|name| self.directory.join(name.as_str())).collect(),
            None => {
                let now = entries(&self.directory).map_err(|e| e.to_string())?;
                let is_new = |(path, mark): &(PathBuf, Mark)| self.before.get(path) != Some(mark);
                now.into_iter().filter(is_new).map(|(path, _)| path).filter(|p| p.is_file()).collect()
            }
        };
        for output in outputs {
            let relative = output.strip_prefix(&self.directory).unwrap_or(&output).to_string_lossy();
            let target = match transfer.remaps.iter().find(|(there, _)| **there == *relative) {
                Some((_, here)) => home.join(here.as_str()),
                None => home.join(output.file_name().unwrap_or_default()),
            };
            let parent = target.parent().map_or(Ok(()), fs::create_dir_all);
            parent.and_then(|()| copy(&output, &target)).map_err(|e| {
                format!("its output {relative} cannot be brought to {}: {e}", target.display())
            })?;
        }
        Ok(())
    }
}

/// What is in a directory now.
fn entries(directory: &Path) -> io::Result<HashMap<PathBuf, Mark>> {
    let entry = |e: io::Result<fs::DirEntry>| {
        let e = e?;
        let meta = e.metadata()?;
        Ok((e.path(), (meta.len(), meta.modified().ok())))
    };
    fs::read_dir(directory)?.map(entry).collect()
}

/// Copies a file, or a directory with everything in it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !fs::metadata(from)?.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Where a program is: a name without a slash that is no file here is looked for on the PATH.
pub(crate) fn program_in(directory: &Path, program: &Name) -> PathBuf {
    let here = directory.join(program.as_str());
    if program.contains('/') || here.is_file() { here } else { PathBuf::from(program.as_str()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_or_changed_comes_back_and_the_rest_does_not() {
        let place = tempfile::tempdir().unwrap();
        let (home, work) = (place.path().join("home"), place.path().join("work"));
        fs::create_dir_all(home.join("data/deep")).unwrap();
        fs::create_dir(&work).unwrap();
        fs::write(home.join("in.txt"), "1").unwrap();
        fs::write(home.join("data/deep/x"), "2").unwrap();
        let inputs = vec![
            Name::new(home.join("in.txt").to_string_lossy()),
            Name::new(format!("{}/", home.join("data").display())),
        ];
        let remaps = vec![("new.txt".into(), "renamed/new.txt".into())];
        let transfer = Transfer { inputs, outputs: None, remaps, executable: true };
        let sandbox = Sandbox::fill(&work, &home, &transfer).unwrap();
        assert_eq!(fs::read_to_string(work.join("deep/x")).unwrap(), "2");
        fs::write(work.join("new.txt"), "3").unwrap();
        sandbox.empty().unwrap();
        assert_eq!(fs::read_to_string(home.join("renamed/new.txt")).unwrap(), "3");
        assert!(!home.join("deep").exists());
        let named = Transfer { outputs: Some(vec!["missing".into()]), ..Transfer::default() };
        let sandbox = Sandbox::fill(&work, &home, &named).unwrap();
        assert!(sandbox.empty().unwrap_err().contains("its output missing"));
    }
}
