//! Where a chain works, and how its outputs get to their final places.
//!
//! An attempt writes below a directory of its own. When all tasks of the chain have succeeded, its
//! outputs are renamed to their final places. An attempt that dies leaves nothing where others look.

use crate::supply::kept_name;
use catena_data::{DataError, Depot, Put};
use catena_model::chain::{Attempt, Executable, ProcessChain, Produced, RunContext, RunId, Supply};
use catena_model::{DIRECTORY, Name};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The directory of one attempt and the outputs in it.
pub(crate) struct Staging {
    directory: PathBuf,
    exists: bool,
    number: u32,
    /// Says which attempt at the chain has published last, if it was not the first.
    published: PathBuf,
    /// Where each output is written, by its final path, and what is renamed to publish it.
    local: HashMap<Name, (PathBuf, usize)>,
    /// What is renamed at the end: from, to.
    moves: Vec<(PathBuf, PathBuf)>,
    /// Where inputs are that were brought here, by what the run calls them.
    inputs: HashMap<Name, PathBuf>,
    /// Nobody else sees the places that outputs are named after.
    is_private: bool,
}

impl Staging {
    /// Decides where everything goes, without touching the disk. Where agents have files of their own, nothing is
    /// ever put outside of the attempt's directory.
    pub(crate) fn new(
        context: &RunContext,
        attempt: Attempt,
        chain: &ProcessChain,
        is_private: bool,
    ) -> Self {
        let directory = context.work.join(format!("{}-{}", attempt.chain.seq, attempt.number));
        let mut staging = Self {
            directory,
            exists: false,
            number: attempt.number,
            published: context.work.join(format!("{}.published", attempt.chain.seq)),
            local: HashMap::new(),
            moves: Vec::new(),
            inputs: HashMap::new(),
            is_private,
        };
        for output in chain.executables.iter().flat_map(Executable::outputs) {
            let target = &output.variable.value;
            let (local, from, to) = staging.place(context, attempt, target);
            let known = staging.moves.iter().position(|(f, _)| *f == from);
            let index = known.unwrap_or_else(|| {
                staging.moves.push((from, to));
                staging.moves.len() - 1
            });
            staging.local.insert(target.clone(), (local, index));
        }
        staging
    }

    fn place(&self, context: &RunContext, attempt: Attempt, target: &Name) -> (PathBuf, PathBuf, PathBuf) {
        let path = Path::new(target.as_str());
        for (base, name) in [(&context.tmp, "tmp"), (&context.out, "out")] {
            if let Ok(relative) = path.strip_prefix(base) {
                let root = self.directory.join(name);
                // `<id>/<name>` has its directory to itself, so all of it is moved: tools like to put
                // further files beside the one they were asked for.
                let mut parts = relative.components();
                let first = parts.next().map(Component::as_os_str);
                let own = first.filter(|f| {
                    parts.next().is_some() && f.to_str().is_some_and(|f| f.parse::<u64>().is_ok())
                });
                let unit = own.map_or(relative, Path::new);
                return (root.join(relative), root.join(unit), base.join(unit));
            }
        }
        if self.is_private {
            let local = self.directory.join("elsewhere").join(below(path));
            return (local.clone(), local, path.to_path_buf());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mark = format!(".{name}.catena-{}-{}-{}", attempt.chain.run, attempt.chain.seq, attempt.number);
        let local = path.with_file_name(mark);
        (local.clone(), local, path.to_path_buf())
    }

    /// Where something with this final path is while the chain runs.
    pub(crate) fn locate<'p>(&'p self, path: &'p str) -> &'p str {
        let local = self.local.get(path).map(|(p, _)| p).or_else(|| self.inputs.get(path));
        local.and_then(|p| p.to_str()).unwrap_or(path)
    }

    /// Puts what was brought here where the tasks of a chain find it.
    pub(crate) fn supply(
        &mut self,
        depot: &Depot,
        context: &RunContext,
        chain: &ProcessChain,
        supplies: &[Supply],
    ) -> Result<(), DataError> {
        if supplies.is_empty() {
            return Ok(());
        }
        let directory = self.directory().map_err(|e| DataError::at(&context.work)(e))?.join("in");
        let values = chain.executables.iter().flat_map(|task| {
            let arguments = task.arguments.iter().map(|a| &a.variable.value);
            arguments.chain(std::iter::once(&task.path))
        });
        let values: Vec<&Name> = values.filter(|v| !self.local.contains_key(*v)).collect();
        let mut whole: Vec<PathBuf> = Vec::new();
        for supply in supplies {
            let name = Path::new(supply.name.as_str());
            let place =
                [(&context.tmp, "tmp"), (&context.out, "out")].into_iter().find_map(|(base, part)| {
                    Some(directory.join(part).join(below(name.strip_prefix(base).ok()?)))
                });
            let place = place.unwrap_or_else(|| directory.join("elsewhere").join(below(name)));
            // It may have come with a directory that it is in.
            if !whole.iter().any(|w| place.starts_with(w)) {
                depot.place(supply, &place)?;
            }
            if supply.parts.is_empty() {
                whole.push(place.clone());
            }
            for value in &values {
                if let Ok(rest) = Path::new(value.as_str()).strip_prefix(name) {
                    let local = if rest.as_os_str().is_empty() { place.clone() } else { place.join(rest) };
                    self.inputs.insert((*value).clone(), local);
                }
            }
        }
        Ok(())
    }

    /// What is put in its place to have an output there: the output, or the directory that it has to itself.
    pub(crate) fn unit(&self, target: &str) -> Option<&Path> {
        self.local.get(target).map(|(_, index)| self.moves[*index].0.as_path())
    }

    /// Puts outputs where others can have them, and keeps them there for the run.
    pub(crate) fn hand_over<'t>(
        &self,
        depot: &Depot,
        run: RunId,
        targets: impl Iterator<Item = &'t Name>,
    ) -> Result<Vec<Produced>, String> {
        let mut chosen: BTreeMap<usize, Vec<&Name>> = BTreeMap::new();
        for target in targets {
            if let Some((_, index)) = self.local.get(target) {
                chosen.entry(*index).or_default().push(target);
            }
        }
        let mut produced = Vec::new();
        for (index, targets) in chosen {
            let (from, to) = &self.moves[index];
            // A directory that holds nothing but the one output in it is not worth a manifest.
            let alone = targets.first().filter(|t| targets.len() == 1 && is_alone(from, self.locate(t)));
            let (path, name) = match alone {
                Some(target) => (Path::new(self.locate(target)), (*target).clone()),
                None => (from.as_path(), Name::new(to.to_string_lossy())),
            };
            let (artifact, _pin) = depot.holdings().put(path, Put::Link).map_err(|e| e.to_string())?;
            depot.holdings().keep(&kept_name(run, &name), &artifact).map_err(|e| e.to_string())?;
            depot.export(&artifact)?;
            produced.push(Produced { name, artifact });
        }
        Ok(produced)
    }

    /// The directory of the attempt, made if there is none yet.
    pub(crate) fn directory(&mut self) -> io::Result<&Path> {
        if !self.exists {
            match fs::create_dir(&self.directory) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => fs::create_dir_all(&self.directory)?,
                // An attempt with this number was cut off before it could be counted.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    fs::remove_dir_all(&self.directory)?;
                    fs::create_dir(&self.directory)?;
                }
                Err(e) => return Err(e),
            }
            self.exists = true;
        }
        Ok(&self.directory)
    }

    /// Makes the directory an output is written to, or the output itself if it is one.
    pub(crate) fn prepare_output(&mut self, target: &Name, data_type: &str) -> io::Result<()> {
        self.directory()?;
        let Some((local, _)) = self.local.get(target) else {
            return Ok(());
        };
        if data_type == DIRECTORY {
            fs::create_dir_all(local)
        } else if let Some(parent) = local.parent() {
            fs::create_dir_all(parent)
        } else {
            Ok(())
        }
    }

    /// Removes the outputs of a task that will be tried again.
    pub(crate) fn clear_outputs<'t>(&self, targets: impl Iterator<Item = &'t Name>) {
        for (local, _) in targets.filter_map(|t| self.local.get(t)) {
            let _ = remove(local);
        }
    }

    /// Makes sure that an attempt that was taken for dead does not replace what a newer one has published.
    fn claim_publication(&self) -> io::Result<()> {
        let last = match fs::read_to_string(&self.published) {
            Ok(text) => text.trim().parse().unwrap_or(u32::MAX),
            Err(e) if e.kind() == io::ErrorKind::NotFound => 1,
            Err(e) => return Err(e),
        };
        if last > self.number {
            return Err(io::Error::other("a newer attempt has published its outputs"));
        }
        if last < self.number {
            let written = self.published.with_extension(format!("published-{}", self.number));
            fs::write(&written, self.number.to_string())?;
            fs::rename(&written, &self.published)?;
        }
        Ok(())
    }

    /// Renames outputs to their final places.
    pub(crate) fn publish<'t>(&self, targets: impl Iterator<Item = &'t Name>) -> io::Result<()> {
        let chosen: BTreeSet<usize> =
            targets.filter_map(|t| self.local.get(t)).map(|(_, index)| *index).collect();
        if !chosen.is_empty() {
            self.claim_publication()?;
        }
        for (from, to) in chosen.into_iter().map(|i| &self.moves[i]) {
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            match fs::rename(from, to) {
                Ok(()) => {}
                // An earlier attempt got this far but was never counted.
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::DirectoryNotEmpty
                            | io::ErrorKind::AlreadyExists
                            | io::ErrorKind::IsADirectory
                            | io::ErrorKind::NotADirectory
                    ) =>
                {
                    remove(to)?;
                    fs::rename(from, to)?;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Removes what is left of the attempt.
    pub(crate) fn clean(&self) {
        if self.exists && fs::remove_dir(&self.directory).is_err() {
            let _ = fs::remove_dir_all(&self.directory);
        }
        for (from, _) in self.moves.iter().filter(|(from, _)| !from.starts_with(&self.directory)) {
            let _ = remove(from);
        }
    }
}

/// Whether an output is a file and the only thing in the directory that it has to itself.
fn is_alone(directory: &Path, output: &str) -> bool {
    let output = Path::new(output);
    let is_file = || fs::symlink_metadata(output).is_ok_and(|m| m.is_file());
    let only = || {
        fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some() && entries.next().is_none())
    };
    output.parent() == Some(directory) && is_file() && only()
}

/// The part of a path that can stand below another one: without a root, and without any way up.
fn below(path: &Path) -> PathBuf {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        Component::ParentDir => Some("up".as_ref()),
        _ => None,
    });
    parts.collect()
}

/// The directory that an output with a chosen name has to itself: `…/data/<id>/<name>`. It belongs to the
/// output with all that is in it.
pub(crate) fn own_directory(path: &Path) -> Option<&Path> {
    let parent = path.parent()?;
    let is_number = parent.file_name()?.to_str()?.parse::<u64>().is_ok();
    let above = parent.parent()?.file_name()?.to_str()?;
    (is_number && matches!(above, "data" | "tmp" | "out")).then_some(parent)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

/// All files below a directory, in the order of their paths.
pub(crate) fn files_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else {
                out.push(entry.path());
            }
        }
    }
    out.sort();
    Ok(out)
}

/// Makes `to` the same as `from` without copying where the file system allows it.
pub(crate) fn link(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            link(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::hard_link(from, to) {
        // Outputs that share a directory bring each other along.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(_) => fs::copy(from, to).map(|_| ()),
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_model::Direction;
    use catena_model::chain::{Argument, ArgumentVariable, ChainKey, RunId};

    fn chain(output: &Path) -> ProcessChain {
        let argument = Argument {
            id: "out".into(),
            label: None,
            variable: ArgumentVariable { id: "v".into(), value: Name::new(output.to_string_lossy()) },
            direction: Direction::Output,
            data_type: "string".into(),
        };
        let task =
            Executable { arguments: vec![argument], ..Executable::new("t".into(), "/bin/true".into()) };
        ProcessChain::new("c".into(), vec![task])
    }

    #[test]
    fn an_attempt_that_was_taken_for_dead_replaces_nothing() {
        let dir = std::env::temp_dir().join(format!("catena-staging-{}", std::process::id()));
        let context = RunContext {
            run: RunId(1),
            workflow: String::new(),
            directory: dir.clone(),
            tmp: dir.join("data"),
            out: dir.join("out"),
            work: dir.join("work"),
            logs: dir.join("logs"),
            state: dir.clone(),
        };
        let target = context.tmp.join("7/result");
        let chain = chain(&target);
        let name = Name::new(target.to_string_lossy());
        let attempt = |number| {
            let attempt = Attempt { chain: ChainKey { run: RunId(1), seq: 3 }, number };
            let mut staging = Staging::new(&context, attempt, &chain, false);
            staging.prepare_output(&name, "string").unwrap();
            fs::write(staging.locate(&name), number.to_string()).unwrap();
            staging
        };
        let (first, second) = (attempt(1), attempt(2));
        second.publish([&name].into_iter()).unwrap();
        assert!(first.publish([&name].into_iter()).is_err(), "it comes too late");
        assert_eq!(fs::read_to_string(&target).unwrap(), "2");
        attempt(3).publish([&name].into_iter()).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "3", "a newer one may");
        fs::remove_dir_all(&dir).unwrap();
    }
}
