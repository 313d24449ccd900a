//! What a peer must not forget when it is started again: the molecules it is a home of.
//!
//! Changes are appended and reach the operating system before anybody hears of them, so they survive the death of the
//! process. They are not forced to the disk: a machine that loses power may forget the last moments, as if it had never
//! come back.

use catena_space::id::Id;
use catena_space::molecule::{Body, State};
use catena_space::register::Saved;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// One register, or that it can be forgotten.
type Record = (Id, Option<Saved<Body, State>>);

/// What was written down.
type Registers = Vec<(Id, Saved<Body, State>)>;

/// The file, and how much of it is of use.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: BufWriter<File>,
    /// The last record of each register, as it was written.
    live: BTreeMap<Id, Vec<u8>>,
    written: u64,
    useful: u64,
}

/// A journal is written anew when this many times as much is in it as is of use.
const WASTE: u64 = 4;
/// Shorter ones are not worth it.
const SMALL: u64 = 1 << 20;

impl Journal {
    /// Opens a journal, and gives back what is in it.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Registers)> {
        let mut live = BTreeMap::new();
        let mut saved = BTreeMap::new();
        if let Ok(file) = File::open(path) {
            let mut reader = BufReader::new(file);
            // A record that was cut off was not told to anybody.
            while let Some(bytes) = read_record(&mut reader)? {
                match postcard::from_bytes::<Record>(&bytes) {
                    Ok((id, Some(register))) => {
                        live.insert(id, bytes);
                        saved.insert(id, register);
                    }
                    Ok((id, None)) => {
                        live.remove(&id);
                        saved.remove(&id);
                    }
                    Err(_) => break,
                }
            }
        }
        let file = BufWriter::new(OpenOptions::new().create(true).append(true).open(path)?);
        let mut journal = Self { path: path.to_path_buf(), file, live, written: 0, useful: 0 };
        journal.rewrite()?;
        Ok((journal, saved.into_iter().collect()))
    }

    /// Notes a change; it is safe after [`flush`](Self::flush).
    pub(crate) fn note(&mut self, id: Id, saved: Option<&Saved<Body, State>>) -> io::Result<()> {
        let bytes = postcard::to_allocvec(&(id, saved)).map_err(io::Error::other)?;
        write_record(&mut self.file, &bytes)?;
        self.written += bytes.len() as u64;
        let old = match saved {
            Some(_) => {
                self.useful += bytes.len() as u64;
                self.live.insert(id, bytes)
            }
            None => self.live.remove(&id),
        };
        self.useful -= old.map_or(0, |old| old.len() as u64);
        Ok(())
    }

    /// Everything that was noted is with the operating system.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()?;
        if self.written > SMALL && self.written > WASTE * self.useful {
            self.rewrite()?;
        }
        Ok(())
    }

    /// Leaves out what is of no use any more.
    fn rewrite(&mut self) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let mut file = BufWriter::new(File::create(&new)?);
        for bytes in self.live.values() {
            write_record(&mut file, bytes)?;
        }
        file.flush()?;
        std::fs::rename(&new, &self.path)?;
        self.file = file;
        self.useful = self.live.values().map(|b| b.len() as u64).sum();
        self.written = self.useful;
        Ok(())
    }
}

fn write_record(file: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    file.write_all(&(bytes.len() as u32).to_le_bytes())?;
    file.write_all(&blake3::hash(bytes).as_bytes()[..8])?;
    file.write_all(bytes)
}

/// The next record; none if there is no whole one.
fn read_record(file: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 12];
    if let Err(error) = file.read_exact(&mut head) {
        return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
    }
    let length = u32::from_le_bytes(head[..4].try_into().expect("four bytes"));
    let mut bytes = Vec::new();
    file.take(u64::from(length)).read_to_end(&mut bytes)?;
    let whole = bytes.len() == length as usize && blake3::hash(&bytes).as_bytes()[..8] == head[4..];
    Ok(whole.then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_space::id::{Group, Peer};

    fn gone(view: u32) -> Saved<Body, State> {
        Saved::Gone(view, Group::new([Peer(1)]))
    }

    #[test]
    fn what_was_noted_is_there_again_and_what_was_cut_off_is_not() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        let (mut journal, saved) = Journal::open(&path).unwrap();
        assert!(saved.is_empty());
        for round in 1..4 {
            journal.note(Id(1), Some(&gone(round))).unwrap();
        }
        journal.note(Id(2), Some(&gone(9))).unwrap();
        journal.note(Id(2), None).unwrap();
        journal.note(Id(3), Some(&gone(5))).unwrap();
        journal.flush().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in [0, 1, 13] {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let (_, saved) = Journal::open(&path).unwrap();
            let views: Vec<_> =
                saved.iter().map(|(id, s)| (id.0, if let Saved::Gone(v, _) = s { *v } else { 0 })).collect();
            assert_eq!(views, if cut == 0 { vec![(1, 3), (3, 5)] } else { vec![(1, 3)] });
        }
    }
}
