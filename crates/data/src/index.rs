//! Which objects were found whole, and how their files looked then.

use catena_model::content::ContentId;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How a file looks without reading it. Whoever writes to a file changes this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    modified: i128,
}

impl Stamp {
    pub(crate) fn of(meta: &fs::Metadata) -> Self {
        let modified = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
        Self { inode: meta.ino(), size: meta.size(), modified }
    }
}

/// The file that stamps are appended to. It is only a memory: what it does not say is found out by hashing.
pub(crate) struct Index {
    file: File,
}

/// Identifies the time between two starts of the machine. What was written before may be lost.
fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map_or_else(|_| "unknown".to_owned(), |id| id.trim().to_owned())
}

impl Index {
    /// What the index says, if it was written since the machine has started.
    pub(crate) fn read(path: &Path) -> HashMap<ContentId, Stamp> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let boot = boot();
        if boot == "unknown" || lines.next() != Some(&boot) {
            return HashMap::new();
        }
        lines.filter_map(parse).collect()
    }

    /// Writes a new index with what is known.
    pub(crate) fn create<'a>(
        path: &Path,
        known: impl Iterator<Item = (&'a ContentId, Stamp)>,
    ) -> io::Result<Self> {
        let mut text = boot() + "\n";
        for (id, stamp) in known {
            text += &line(id, stamp);
        }
        let new = path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&new, path)?;
        Ok(Self { file })
    }

    pub(crate) fn add(&mut self, id: &ContentId, stamp: Stamp) -> io::Result<()> {
        self.file.write_all(line(id, stamp).as_bytes())
    }
}

fn line(id: &ContentId, stamp: Stamp) -> String {
    format!("{id} {} {} {}\n", stamp.inode, stamp.size, stamp.modified)
}

fn parse(line: &str) -> Option<(ContentId, Stamp)> {
    let mut words = line.split(' ');
    let id = words.next()?.parse().ok()?;
    let inode = words.next()?.parse().ok()?;
    let size = words.next()?.parse().ok()?;
    let modified = words.next()?.parse().ok()?;
    words.next().is_none().then_some((id, Stamp { inode, size, modified }))
}
