//! How files come into the holdings from this machine.

use crate::error::DataError;
use crate::holdings::{Holdings, Unfinished};
use crate::index::Stamp;
use crate::manifest::{Entry, Manifest, ManifestError};
use crate::outline::{BLOCK, Outline, threads};
use crate::room::Pin;
use catena_model::content::{Artifact, ContentId, FileRef};
use rustix::fs::{FallocateFlags, OFlags};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What becomes of a file that is put into the holdings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The file is given away: it becomes read-only, and is the object itself where the file system allows it. For
    /// what tasks have written and nobody will change.
    Link,
    /// The file stays as it is. For what belongs to somebody else.
    Copy,
}

impl Holdings {
    /// Puts a file or a directory into the holdings. It is pinned as long as the pin exists.
    pub fn put(&self, path: &Path, how: Put) -> Result<(Artifact, Pin), DataError> {
        let meta = fs::symlink_metadata(path).map_err(DataError::at(path))?;
        if meta.is_dir() {
            return self.put_tree(path, how);
        }
        if meta.is_symlink() {
            let target = fs::read_link(path).map_err(DataError::at(path))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let error = ManifestError::LeadsOut { path: name, target: target.to_string_lossy().into_owned() };
            return Err(DataError::Manifest { place: path.display().to_string(), error });
        }
        self.put_file(path, how).map(|(file, pin)| (Artifact::File(file), pin))
    }

    /// Puts one file into the holdings.
    pub fn put_file(&self, path: &Path, how: Put) -> Result<(FileRef, Pin), DataError> {
        // Nobody who writes to a pipe should be waited for.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let source =
            OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(DataError::at(path))?;
        let meta = source.metadata().map_err(DataError::at(path))?;
        if !meta.is_file() {
            return Err(DataError::Special(path.to_path_buf()));
        }
        let size = meta.size();
        let executable = meta.mode() & 0o111 != 0;
        let mut room = self.reserve(size)?;
        let outline = self.with_space(size, || {
            let new = Unfinished(self.new_path());
            // An object is not executable, so a program cannot be one and the file of somebody else.
            let linked = how == Put::Link && !executable && {
                let writable = meta.mode() & 0o222 != 0;
                if writable {
                    source.set_permissions(Permissions::from_mode(0o444)).map_err(DataError::at(path))?;
                }
                fs::hard_link(path, &new.0).is_ok()
            };
            let outline = if linked {
                Outline::of_file(&source, size).map_err(DataError::at(path))?
            } else {
                let copy = duplicate(&source, &new.0, size, 0o600).map_err(DataError::io(&new.0, size))?;
                Outline::of_file(&copy, size).map_err(DataError::io(&new.0, size))?
            };
            // The link and what was hashed must be the same file, and nobody may have written to it.
            let after = fs::symlink_metadata(path).map_err(DataError::at(path))?;
            if Stamp::of(&after) != Stamp::of(&meta) {
                return Err(DataError::Changed(path.to_path_buf()));
            }
            Ok((outline, new))
        });
        let (outline, new) = outline?;
        let id = outline.id();
        let pin = self.pin_ids(vec![id]);
        self.with_space(size, || self.admit(&new.0, &outline, &mut room))?;
        Ok((FileRef { id, size, executable }, pin))
    }

    /// Puts content that is in memory into the holdings.
    pub fn put_bytes(&self, bytes: &[u8]) -> Result<(FileRef, Pin), DataError> {
        self.put_known(ContentId::of(bytes), bytes)
    }

    /// Puts content in memory that has been hashed.
    pub(crate) fn put_known(&self, id: ContentId, bytes: &[u8]) -> Result<(FileRef, Pin), DataError> {
        let size = bytes.len() as u64;
        let file = FileRef { id, size, executable: false };
        let pin = self.pin_ids(vec![id]);
        if self.has(&id) {
            return Ok((file, pin));
        }
        let mut room = self.reserve(size)?;
        self.with_space(size, || {
            let new = Unfinished(self.new_path());
            let written = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&new.0)
                .and_then(|mut f| f.write_all(bytes).map(|()| f));
            let written = written.map_err(DataError::io(&new.0, size))?;
            let outline = if size <= BLOCK {
                Outline::of_small(id, size)
            } else {
                Outline::of_file(&written, size).map_err(DataError::io(&new.0, size))?
            };
            self.admit(&new.0, &outline, &mut room)
        })?;
        Ok((file, pin))
    }

    /// Puts what somebody sends into the holdings, whatever it is. For content whose id nobody knows yet.
    pub fn put_stream(&self, from: &mut dyn Read, expected: u64) -> Result<(FileRef, Pin), DataError> {
        let new = Unfinished(self.new_path());
        let room = self.reserve(expected)?;
        let fail = || DataError::io(&new.0, expected);
        let mut file =
            OpenOptions::new().read(true).write(true).create_new(true).open(&new.0).map_err(fail())?;
        let size = io::copy(from, &mut file).map_err(fail())?;
        drop(room);
        let mut room = self.reserve(size)?;
        let outline = Outline::of_file(&file, size).map_err(fail())?;
        let pin = self.pin_ids(vec![outline.id()]);
        self.admit(&new.0, &outline, &mut room)?;
        Ok((FileRef { id: outline.id(), size, executable: false }, pin))
    }

    /// Puts a directory with everything below it into the holdings.
    pub fn put_tree(&self, directory: &Path, how: Put) -> Result<(Artifact, Pin), DataError> {
        let bad = |error| DataError::Manifest { place: directory.display().to_string(), error };
        let mut entries = BTreeMap::new();
        walk(directory, "", &mut entries)?;
        // Refused before anything is changed or read.
        let entries = Manifest::new(entries).map_err(bad)?.into_entries();
        let files: Vec<&String> =
            entries.iter().filter(|(_, e)| matches!(e, Entry::File(_))).map(|(path, _)| path).collect();
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<(usize, FileRef, Pin)>, DataError> {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(path) = files.get(index) else { return Ok(done) };
                let (file, pin) = self.put_file(&directory.join(path), how)?;
                done.push((index, file, pin));
            }
        };
        let helpers = if files.len() < 64 { 0 } else { threads() - 1 };
        let done = thread::scope(|scope| {
            let others: Vec<_> = (0..helpers).map(|_| scope.spawn(work)).collect();
            let mut done = vec![work()];
            let lost = || Err(DataError::at(directory)(io::Error::other("a thread has panicked")));
            done.extend(others.into_iter().map(|t| t.join().unwrap_or_else(|_| lost())));
            done
        });
        let mut pin = self.pin_ids(Vec::new());
        let mut hashed = BTreeMap::new();
        for part in done {
            for (index, file, pinned) in part? {
                pin.add(pinned);
                hashed.insert(files[index].clone(), Entry::File(file));
            }
        }
        let mut entries = entries;
        entries.append(&mut hashed);
        let (artifact, bytes) = Manifest::new(entries).map_err(bad)?.artifact();
        pin.add(self.put_known(artifact.id(), &bytes)?.1);
        Ok((artifact, pin))
    }
}

/// Everything below a directory. Files have no ids yet.
pub(crate) fn walk(
    directory: &Path,
    above: &str,
    entries: &mut BTreeMap<String, Entry>,
) -> Result<(), DataError> {
    let mut empty = true;
    for entry in fs::read_dir(directory).map_err(DataError::at(directory))? {
        let entry = entry.map_err(DataError::at(directory))?;
        let path = entry.path();
        empty = false;
        let name = entry.file_name().into_string().map_err(|_| DataError::Name(path.clone()))?;
        let name = if above.is_empty() { name } else { format!("{above}/{name}") };
        let kind = entry.file_type().map_err(DataError::at(&path))?;
        if kind.is_dir() {
            walk(&path, &name, entries)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).map_err(DataError::at(&path))?;
            let target = target.into_os_string().into_string().map_err(|_| DataError::Name(path))?;
            entries.insert(name, Entry::Link(target));
        } else if kind.is_file() {
            let file = FileRef { id: ContentId::from([0; 32]), size: 0, executable: false };
            entries.insert(name, Entry::File(file));
        } else {
            return Err(DataError::Special(path));
        }
    }
    if empty && !above.is_empty() {
        entries.insert(above.to_owned(), Entry::Empty);
    }
    Ok(())
}

/// Makes another file with the same content: sharing its blocks where the file system can, else by copying.
pub(crate) fn duplicate(from: &File, to: &Path, size: u64, mode: u32) -> io::Result<File> {
    let mut copy = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(to)?;
    let filled = if rustix::fs::ioctl_ficlone(&copy, from).is_ok() {
        Ok(())
    } else {
        // Said at once if there is no space, not after most of it was copied.
        allocate(&copy, size).and_then(|()| {
            let copied = io::copy(&mut from.take(size), &mut copy)?;
            if copied == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        })
    };
    filled.and_then(|()| copy.set_permissions(Permissions::from_mode(mode))).inspect_err(|_| {
        let _ = fs::remove_file(to);
    })?;
    Ok(copy)
}

/// Takes the space that a file will need. File systems that cannot are believed to have it.
pub(crate) fn allocate(file: &File, size: u64) -> io::Result<()> {
    if size == 0 {
        return Ok(());
    }
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, size) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) | Ok(()) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
