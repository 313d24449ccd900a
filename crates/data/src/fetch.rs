//! Gets an artifact from wherever it is: many sources at once, each checked, none trusted.
//!
//! Small objects come in bundles, several thousand in one answer; large ones in blocks, from several sources at the
//! same time. A source that gives something wrong is named, told, and not asked again; what it gave is not used.

use crate::blocks;
use crate::bundle;
use crate::error::DataError;
use crate::holdings::Holdings;
use crate::outline::BLOCK;
use crate::room::Pin;
use crate::source::{Fault, FaultKind, Source, SourceError};
use catena_model::content::{Artifact, ContentId, FileRef};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How hard is tried.
#[derive(Clone, Copy, Debug)]
pub struct FetchOptions {
    /// How many connections are made to each source for a large object.
    pub streams: usize,
    /// How often in a row a source may fail before it is given up.
    pub tries: u32,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self { streams: 2, tries: 3 }
    }
}

/// What was fetched.
pub struct Fetched {
    /// Keeps it from being removed.
    pub pin: Pin,
    /// How many bytes each source gave that were right, by its name.
    pub bytes: BTreeMap<String, u64>,
    /// What sources did wrong on the way.
    pub faults: Vec<Fault>,
    /// Who was asked for what, and did not have it.
    pub absent: BTreeSet<Absent>,
}

/// A source, by its name, and something that it does not have.
pub type Absent = (String, ContentId);

/// Why something could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// This machine cannot take it.
    #[error(transparent)]
    Data(#[from] DataError),
    /// No source has given it.
    #[error("{id} could not be had from any of {sources} sources{}", told(faults))]
    Nowhere {
        /// What is missing.
        id: ContentId,
        /// How many were asked.
        sources: usize,
        /// What they did wrong. Those that just do not have it are not among them.
        faults: Vec<Fault>,
        /// Who was asked for what, and did not have it.
        absent: BTreeSet<Absent>,
    },
}

/// How many requests for one file each are made at a time where there are no bundles.
const SINGLY: usize = 8;

fn lost() -> DataError {
    DataError::at(Path::new("fetch"))(io::Error::other("a thread has panicked"))
}

fn told(faults: &[Fault]) -> String {
    let mut text = String::new();
    for fault in faults.iter().take(5) {
        text += &format!("; {fault}");
    }
    text
}

/// A fetch under way: what its threads share.
pub(crate) struct Fetch<'f> {
    pub(crate) holdings: &'f Holdings,
    pub(crate) sources: Vec<Asked<'f>>,
    pub(crate) options: FetchOptions,
    faults: Mutex<Vec<Fault>>,
    absent: Mutex<BTreeSet<Absent>>,
}

/// A source and how it did.
pub(crate) struct Asked<'f> {
    pub(crate) source: &'f dyn Source,
    bytes: AtomicU64,
    /// It gave something wrong, and is not asked again.
    liar: AtomicBool,
}

impl Asked<'_> {
    pub(crate) fn gave(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn is_liar(&self) -> bool {
        self.liar.load(Ordering::Relaxed)
    }
}

/// Gets what is missing of an artifact into the holdings. It is pinned when it is there.
pub fn fetch(
    holdings: &Holdings,
    artifact: &Artifact,
    sources: &[Arc<dyn Source>],
    options: FetchOptions,
) -> Result<Fetched, FetchError> {
    fetch_parts(holdings, artifact, |_| true, sources, options)
}

/// Gets what is missing of an artifact; of a directory only the files whose paths in it are wanted.
pub fn fetch_parts(
    holdings: &Holdings,
    artifact: &Artifact,
    wanted: impl Fn(&str) -> bool,
    sources: &[Arc<dyn Source>],
    options: FetchOptions,
) -> Result<Fetched, FetchError> {
    let sources = sources.iter().map(|s| Asked {
        source: s.as_ref(),
        bytes: AtomicU64::new(0),
        liar: AtomicBool::new(false),
    });
    let (faults, absent) = (Mutex::default(), Mutex::default());
    let fetch = Fetch { holdings, sources: sources.collect(), options, faults, absent };
    let mut pin = holdings.pin_ids(vec![artifact.id()]);
    match artifact {
        Artifact::File(file) => fetch.files(&[*file])?,
        Artifact::Directory(directory) => {
            fetch.files(&[FileRef { id: directory.id, size: directory.size, executable: false }])?;
            let manifest = holdings.manifest(&directory.id)?;
            let (actual, _) = manifest.artifact();
            if actual != *artifact {
                let what = format!("its manifest says {actual:?}");
                return Err(DataError::Misdescribed(directory.id, what).into());
            }
            let files = manifest.files().filter(|(path, _)| wanted(path));
            let files: Vec<FileRef> = files.map(|(_, file)| *file).collect();
            pin.add(holdings.pin_ids(files.iter().map(|f| f.id).collect()));
            fetch.files(&files)?;
        }
    }
    let bytes = fetch.sources.iter().map(|s| (s.source.name().to_owned(), s.bytes.load(Ordering::Relaxed)));
    let bytes = bytes.filter(|(_, bytes)| *bytes > 0).collect();
    Ok(Fetched { pin, bytes, faults: fetch.take_faults(), absent: fetch.take_absent() })
}

impl Fetch<'_> {
    fn take_absent(&self) -> BTreeSet<Absent> {
        std::mem::take(&mut *self.absent.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that a source does not have something.
    pub(crate) fn lacks(&self, asked: &Asked<'_>, id: &ContentId) {
        let absent = (asked.source.name().to_owned(), *id);
        self.absent.lock().unwrap_or_else(PoisonError::into_inner).insert(absent);
    }

    fn take_faults(&self) -> Vec<Fault> {
        std::mem::take(&mut *self.faults.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes what a source did wrong. If it lied, it is told so and not asked again.
    pub(crate) fn blame(&self, asked: &Asked<'_>, id: &ContentId, kind: FaultKind, what: String) {
        let fault = Fault { source: asked.source.name().to_owned(), id: *id, kind, what };
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
        if kind == FaultKind::Lied && !asked.liar.swap(true, Ordering::Relaxed) {
            asked.source.doubt(id);
        }
    }

    pub(crate) fn nowhere(&self, id: ContentId) -> FetchError {
        let (faults, absent) = (self.take_faults(), self.take_absent());
        FetchError::Nowhere { id, sources: self.sources.len(), faults, absent }
    }

    /// Gets files that are missing.
    fn files(&self, files: &[FileRef]) -> Result<(), FetchError> {
        let mut seen = HashSet::new();
        let mut small = Vec::new();
        let mut large = Vec::new();
        for file in files {
            match self.holdings.size(&file.id) {
                Some(size) if size != file.size => {
                    let what = format!("it has {size} bytes and not {}", file.size);
                    return Err(DataError::Misdescribed(file.id, what).into());
                }
                // What is damaged is removed by the look at it, and fetched.
                Some(_) if self.holdings.use_object(&file.id).is_ok() => {}
                _ if !seen.insert(file.id) => {}
                _ if file.size <= BLOCK => small.push(*file),
                _ => large.push(*file),
            }
        }
        self.small(small)?;
        large.iter().try_for_each(|file| blocks::fetch(self, file))
    }

    /// Gets small files: each source is asked for a slice of them, then for what its neighbour did not have.
    fn small(&self, files: Vec<FileRef>) -> Result<(), FetchError> {
        let count = self.sources.len();
        if files.is_empty() {
            return Ok(());
        }
        if count == 0 {
            return Err(self.nowhere(files[0].id));
        }
        let mut slices: Vec<Vec<FileRef>> =
            files.chunks(files.len().div_ceil(count)).map(<[FileRef]>::to_vec).collect();
        for round in 0..count * self.options.tries.max(1) as usize {
            let missing: usize = slices.iter().map(Vec::len).sum();
            if missing == 0 {
                return Ok(());
            }
            if round >= count {
                // Everybody was asked; perhaps it was but a moment of trouble.
                thread::sleep(Duration::from_millis(50 << (round / count).min(6)));
            }
            slices = thread::scope(|scope| {
                let work = slices.into_iter().enumerate().map(|(index, slice)| {
                    let asked = &self.sources[(index + round) % count];
                    scope.spawn(move || self.slice(asked, slice))
                });
                let threads: Vec<_> = work.collect();
                threads
                    .into_iter()
                    .map(|t| t.join().unwrap_or_else(|_| Err(lost())))
                    .collect::<Result<_, _>>()
            })?;
        }
        match slices.iter().flatten().next() {
            Some(file) => Err(self.nowhere(file.id)),
            None => Ok(()),
        }
    }

    /// Gets what one source has of some small files. Returns what is still missing.
    fn slice(&self, asked: &Asked<'_>, files: Vec<FileRef>) -> Result<Vec<FileRef>, DataError> {
        let mut missing = Vec::new();
        let mut rest = &files[..];
        while !rest.is_empty() && !asked.is_liar() {
            let most = rest.len().min(bundle::MOST);
            let (now, later) = rest.split_at(most);
            let ids: Vec<ContentId> = now.iter().map(|f| f.id).collect();
            let answer = asked.source.bundle(&ids);
            let done = match answer {
                Ok(Some(mut reader)) => self.unpack(asked, now, &mut *reader, &mut missing)?,
                Ok(None) => self.several(asked, now, &mut missing)?,
                Err(SourceError::Failed(kind, what)) => {
                    self.blame(asked, &ids[0], kind, what);
                    0
                }
                Err(SourceError::Missing | SourceError::WholeOnly) => 0,
            };
            if done < now.len() {
                rest = &rest[done..];
                break;
            }
            rest = later;
        }
        missing.extend_from_slice(rest);
        Ok(missing)
    }

    /// Takes files out of a bundle. Returns how many were looked at.
    fn unpack(
        &self,
        asked: &Asked<'_>,
        files: &[FileRef],
        reader: &mut dyn Read,
        missing: &mut Vec<FileRef>,
    ) -> Result<usize, DataError> {
        let mut buffer = Vec::new();
        for (index, file) in files.iter().enumerate() {
            match bundle::read(reader, &mut buffer) {
                Ok(true) => {
                    if !self.take(asked, file, &buffer)? {
                        return Ok(index);
                    }
                }
                Ok(false) => {
                    self.lacks(asked, &file.id);
                    missing.push(*file);
                }
                Err(e) => {
                    self.blame(asked, &file.id, FaultKind::of(&e), format!("in a bundle: {e}"));
                    return Ok(index);
                }
            }
        }
        // Read to its end, so that the connection can be used again.
        let _ = reader.read(&mut [0; 1]);
        Ok(files.len())
    }

    /// Asks for files one by one, several at a time. Returns how many were looked at.
    fn several(
        &self,
        asked: &Asked<'_>,
        files: &[FileRef],
        missing: &mut Vec<FileRef>,
    ) -> Result<usize, DataError> {
        let parts = thread::scope(|scope| {
            let work = files.chunks(files.len().div_ceil(SINGLY)).map(|part| {
                scope.spawn(move || {
                    let mut missing = Vec::new();
                    let done = self.singly(asked, part, &mut missing)?;
                    missing.extend_from_slice(&part[done..]);
                    Ok(missing)
                })
            });
            let threads: Vec<_> = work.collect();
            threads
                .into_iter()
                .map(|t| t.join().unwrap_or_else(|_| Err(lost())))
                .collect::<Result<Vec<_>, _>>()
        })?;
        missing.extend(parts.into_iter().flatten());
        Ok(files.len())
    }

    /// Asks for files one by one. Returns how many were looked at.
    fn singly(
        &self,
        asked: &Asked<'_>,
        files: &[FileRef],
        missing: &mut Vec<FileRef>,
    ) -> Result<usize, DataError> {
        for (index, file) in files.iter().enumerate() {
            let read = asked.source.open(&file.id, 0..file.size, file.size).and_then(|reader| {
                let mut content = Vec::with_capacity(file.size as usize);
                reader.take(file.size + 1).read_to_end(&mut content)?;
                Ok(content)
            });
            match read {
                Ok(content) => {
                    if !self.take(asked, file, &content)? {
                        return Ok(index);
                    }
                }
                Err(SourceError::Missing | SourceError::WholeOnly) => {
                    self.lacks(asked, &file.id);
                    missing.push(*file);
                }
                Err(SourceError::Failed(kind, what)) => {
                    self.blame(asked, &file.id, kind, what);
                    return Ok(index);
                }
            }
        }
        Ok(files.len())
    }

    /// Takes a small file if it is what it should be, else blames whoever gave it.
    fn take(&self, asked: &Asked<'_>, file: &FileRef, content: &[u8]) -> Result<bool, DataError> {
        if content.len() as u64 != file.size || ContentId::of(content) != file.id {
            let what = if content.len() as u64 == file.size {
                "the content has another hash".to_owned()
            } else {
                format!("it gave {} bytes in place of {}", content.len(), file.size)
            };
            self.blame(asked, &file.id, FaultKind::Lied, what);
            return Ok(false);
        }
        // The fetch has pinned everything already.
        drop(self.holdings.put_known(file.id, content)?);
        asked.gave(file.size);
        Ok(true)
    }
}
