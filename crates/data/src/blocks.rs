//! Large objects: in blocks, from several sources at once, gone on with where an earlier fetch has stopped.

use crate::error::DataError;
use crate::fetch::{Asked, Fetch, FetchError};
use crate::holdings::{Holdings, Shared};
use crate::outline::{Outline, PIECE};
use crate::put::allocate;
use crate::source::{FaultKind, SourceError};
use catena_model::content::{ContentId, FileRef};
use rustix::fs::SeekFrom;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The most blocks that are asked for at once: enough that asking costs nothing.
const PART: u64 = 32;

/// Gets one large object.
pub(crate) fn fetch(fetch: &Fetch<'_>, file: &FileRef) -> Result<(), FetchError> {
    let Some(_claim) = Claim::take(fetch.holdings, file.id) else { return Ok(()) };
    let mut room = fetch.holdings.reserve(file.size)?;
    let path = fetch.holdings.shared.directory.join("partial").join(file.id.to_string());
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let partial = opened.map_err(DataError::io(&path, file.size))?;
    let got = get(fetch, file, &partial, &path)
        .and_then(|outline| Ok(fetch.holdings.admit(&path, &outline, &mut room)?));
    let useless = match &got {
        Ok(()) => false,
        // Others need the space more than we need to go on.
        Err(FetchError::Data(DataError::DiskFull { .. })) => true,
        Err(_) => partial.metadata().is_ok_and(|m| m.len() == 0),
    };
    if useless {
        let _ = fs::remove_file(&path);
    }
    got
}

/// Fills a file with what it should be, and returns its outline, which proves it.
fn get(fetch: &Fetch<'_>, file: &FileRef, partial: &File, path: &Path) -> Result<Outline, FetchError> {
    let length = partial.metadata().map_err(DataError::at(path))?.len();
    if length > file.size {
        partial.set_len(file.size).map_err(DataError::at(path))?;
    }
    let space = || allocate(partial, file.size).map_err(DataError::io(path, file.size));
    fetch.holdings.with_space(file.size, space)?;
    let Some(outline) = outline(fetch, file) else { return whole(fetch, file, partial, path) };
    let missing = missing(&outline, partial).map_err(DataError::at(path))?;
    let left = missing.iter().map(|r| r.end - r.start).sum();
    let work = Work {
        fetch,
        outline: &outline,
        partial,
        path,
        plan: Mutex::new(Plan { missing, left, active: 0, fatal: None }),
        changed: Condvar::new(),
    };
    thread::scope(|scope| {
        for asked in &fetch.sources {
            for _ in 0..fetch.options.streams.max(1) {
                scope.spawn(|| work.take_parts(asked));
            }
        }
    });
    let plan = work.plan.into_inner().unwrap_or_else(PoisonError::into_inner);
    match plan.fatal {
        Some(error) => Err(error.into()),
        None if plan.left > 0 => Err(fetch.nowhere(file.id)),
        None => Ok(outline),
    }
}

/// Somebody's outline that belongs to the object.
fn outline(fetch: &Fetch<'_>, file: &FileRef) -> Option<Outline> {
    for asked in fetch.sources.iter().filter(|a| !a.is_liar()) {
        match asked.source.outline(&file.id, file.size) {
            Ok(Some(bytes)) => match Outline::read(file.id, file.size, &bytes) {
                Some(outline) => return Some(outline),
                None => {
                    let what = "the outline of its blocks does not belong to it".to_owned();
                    fetch.blame(asked, &file.id, FaultKind::Lied, what);
                }
            },
            Ok(None) | Err(SourceError::WholeOnly) => {}
            Err(SourceError::Missing) => fetch.lacks(asked, &file.id),
            Err(SourceError::Failed(kind, what)) => fetch.blame(asked, &file.id, kind, what),
        }
    }
    None
}

/// The blocks that an earlier fetch has not left. What it has left is hashed, not believed.
fn missing(outline: &Outline, partial: &File) -> io::Result<Vec<Range<u64>>> {
    let mut missing: Vec<Range<u64>> = Vec::new();
    let mut buffer = Vec::new();
    let length = partial.metadata()?.len();
    let mut data = 0;
    for block in 0..outline.blocks() {
        let range = outline.range(block);
        if data < range.end && data <= range.start && range.end <= length {
            // Where nothing was written there is no need to look. Not all file systems can tell.
            data = match rustix::fs::seek(partial, SeekFrom::Data(range.start)) {
                Ok(at) => at,
                Err(rustix::io::Errno::NXIO) => u64::MAX,
                Err(_) => range.start,
            };
        }
        if range.end <= length && data < range.end {
            buffer.resize((range.end - range.start) as usize, 0);
            partial.read_exact_at(&mut buffer, range.start)?;
            if outline.check(block, &buffer) {
                continue;
            }
        }
        match missing.last_mut() {
            Some(last) if last.end == block => last.end += 1,
            _ => missing.push(block..block + 1),
        }
    }
    missing.reverse();
    Ok(missing)
}

/// What the threads of a fetch share.
struct Work<'w> {
    fetch: &'w Fetch<'w>,
    outline: &'w Outline,
    partial: &'w File,
    path: &'w Path,
    plan: Mutex<Plan>,
    changed: Condvar,
}

struct Plan {
    /// Blocks that nobody is getting, last first.
    missing: Vec<Range<u64>>,
    /// How many blocks are not there yet.
    left: u64,
    /// How many threads are getting some.
    active: usize,
    fatal: Option<DataError>,
}

/// Why a part was not got.
enum Trouble {
    Source(SourceError),
    Disk(DataError),
}

impl From<SourceError> for Trouble {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

impl Work<'_> {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gets part after part from a source, until all are there or the source is no good.
    fn take_parts(&self, asked: &Asked<'_>) {
        let mut buffer = vec![0; PIECE];
        let mut failures = 0;
        while let Some(part) = self.next_part(asked) {
            let mut next = part.start;
            let got = self.part(asked, part.clone(), &mut next, &mut buffer);
            let mut plan = self.plan();
            plan.active -= 1;
            plan.left -= next - part.start;
            if next < part.end {
                plan.missing.push(next..part.end);
            }
            let (again, blame) = match got {
                Ok(()) => {
                    failures = 0;
                    (true, None)
                }
                Err(Trouble::Disk(error)) => {
                    plan.fatal.get_or_insert(error);
                    (false, None)
                }
                Err(Trouble::Source(SourceError::Failed(kind, what))) => {
                    failures = if next > part.start { 1 } else { failures + 1 };
                    let again = kind != FaultKind::Lied && failures < self.fetch.options.tries;
                    (again, Some((kind, what)))
                }
                Err(Trouble::Source(SourceError::Missing | SourceError::WholeOnly)) => {
                    self.fetch.lacks(asked, &self.outline.id());
                    (false, None)
                }
            };
            self.changed.notify_all();
            drop(plan);
            if let Some((kind, what)) = blame {
                self.fetch.blame(asked, &self.outline.id(), kind, what);
                if again {
                    thread::sleep(Duration::from_millis(25 << failures.min(6)));
                }
            }
            if !again {
                return;
            }
        }
    }

    /// Blocks to get next. Less is taken when less is left, so that all sources are done at about the same time.
    fn next_part(&self, asked: &Asked<'_>) -> Option<Range<u64>> {
        let mut plan = self.plan();
        loop {
            if plan.fatal.is_some() || asked.is_liar() {
                return None;
            }
            if let Some(range) = plan.missing.pop() {
                let threads = (self.fetch.sources.len() * self.fetch.options.streams.max(1)) as u64;
                let count = (plan.left / (2 * threads)).clamp(1, PART).min(range.end - range.start);
                let part = range.start..range.start + count;
                if part.end < range.end {
                    plan.missing.push(part.end..range.end);
                }
                plan.active += 1;
                return Some(part);
            }
            if plan.active == 0 {
                return None;
            }
            // Somebody else may fail and leave something for us.
            plan = self.changed.wait(plan).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gets some blocks. `next` is the first that was not got.
    fn part(
        &self,
        asked: &Asked<'_>,
        part: Range<u64>,
        next: &mut u64,
        buffer: &mut [u8],
    ) -> Result<(), Trouble> {
        let bytes = self.outline.range(part.start).start..self.outline.range(part.end - 1).end;
        let mut reader = asked.source.open(&self.outline.id(), bytes, self.outline.size())?;
        for block in part {
            let range = self.outline.range(block);
            let mut check = self.outline.begin(block);
            let mut at = range.start;
            // Each piece is written while it is still in the cache of the processor, and the block counts when all of
            // it has turned out right. Until then it is as if nothing were there.
            while at < range.end {
                let most = buffer.len().min((range.end - at) as usize);
                let piece = match reader.read(&mut buffer[..most]) {
                    Ok(0) => {
                        return Err(SourceError::from(io::Error::from(io::ErrorKind::UnexpectedEof)).into());
                    }
                    Ok(n) => &buffer[..n],
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => return Err(SourceError::from(e).into()),
                };
                check.add(piece);
                let write = || {
                    let written = self.partial.write_all_at(piece, at);
                    written.map_err(DataError::io(self.path, self.outline.size()))
                };
                self.fetch.holdings.with_space(self.outline.size(), write).map_err(Trouble::Disk)?;
                at += piece.len() as u64;
            }
            if !check.holds() {
                let what = format!("block {block} (bytes {} to {}) has another hash", range.start, range.end);
                return Err(SourceError::Failed(FaultKind::Lied, what).into());
            }
            asked.gave(range.end - range.start);
            *next = block + 1;
        }
        // Read to its end, so that the connection can be used again.
        let _ = reader.read(&mut [0; 1]);
        Ok(())
    }
}

/// Gets an object from sources that know nothing of blocks: one after the other, hashed at the end.
fn whole(fetch: &Fetch<'_>, file: &FileRef, partial: &File, path: &Path) -> Result<Outline, FetchError> {
    for asked in fetch.sources.iter().filter(|a| !a.is_liar()) {
        let mut failures = 0;
        // What is there may be of somebody else, so nobody is blamed for it.
        let mut start = partial.metadata().map_err(DataError::at(path))?.len();
        let mut at = start;
        while failures < fetch.options.tries && !asked.is_liar() {
            match append(asked, file, partial, path, &mut at) {
                Ok(()) => {
                    let outline = Outline::of_file(partial, file.size).map_err(DataError::at(path))?;
                    if outline.id() == file.id {
                        return Ok(outline);
                    }
                    if start == 0 {
                        let what = "the content has another hash".to_owned();
                        fetch.blame(asked, &file.id, FaultKind::Lied, what);
                    }
                    partial.set_len(0).map_err(DataError::at(path))?;
                    (start, at) = (0, 0);
                }
                Err(Trouble::Disk(error)) => return Err(error.into()),
                Err(Trouble::Source(SourceError::WholeOnly)) if at > 0 => {
                    partial.set_len(0).map_err(DataError::at(path))?;
                    (start, at) = (0, 0);
                }
                Err(Trouble::Source(SourceError::Failed(kind, what))) => {
                    fetch.blame(asked, &file.id, kind, what);
                    failures += 1;
                }
                Err(Trouble::Source(_)) => break,
            }
        }
    }
    Err(fetch.nowhere(file.id))
}

/// Reads the rest of an object. `at` is where to go on.
fn append(
    asked: &Asked<'_>,
    file: &FileRef,
    partial: &File,
    path: &Path,
    at: &mut u64,
) -> Result<(), Trouble> {
    if *at == file.size {
        return Ok(());
    }
    let mut reader = asked.source.open(&file.id, *at..file.size, file.size)?;
    let mut buffer = vec![0; 256 << 10];
    while *at < file.size {
        let most = buffer.len().min((file.size - *at) as usize);
        match reader.read(&mut buffer[..most]) {
            Ok(0) => {
                let what = format!("it ended after {at} of {} bytes", file.size);
                return Err(SourceError::Failed(FaultKind::CutOff, what).into());
            }
            Ok(n) => {
                let written = partial.write_all_at(&buffer[..n], *at);
                written.map_err(DataError::io(path, file.size)).map_err(Trouble::Disk)?;
                *at += n as u64;
                asked.gave(n as u64);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(SourceError::from(e).into()),
        }
    }
    Ok(())
}

/// The right to fetch an object. Others who want it too wait.
struct Claim {
    shared: Arc<Shared>,
    id: ContentId,
}

impl Claim {
    /// Waits until nobody else fetches the object. `None` if it is there then.
    fn take(holdings: &Holdings, id: ContentId) -> Option<Self> {
        let mut state = holdings.state();
        loop {
            if state.objects.contains_key(&id) {
                return None;
            }
            if state.arriving.insert(id) {
                return Some(Self { shared: Arc::clone(&holdings.shared), id });
            }
            state = holdings.shared.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shared.state().arriving.remove(&self.id);
        self.shared.arrived.notify_all();
    }
}
