//! What is in a directory, written in exactly one way, and what may not be in one.
//!
//! A manifest comes from another machine and says where files are to be written, so it is read with suspicion: no path
//! may leave the directory, nothing may lie below a file or a link, and no link may lead out, however it is composed.

use catena_model::content::{Artifact, ContentId, DirectoryRef, FileRef};
use std::collections::BTreeMap;

/// The first bytes of every manifest.
const HEADER: &str = "catena directory 1\n";

/// The longest manifest that is read: some millions of files.
pub(crate) const LONGEST: u64 = 1 << 30;

/// How many links a system follows before it gives up.
const LINKS: usize = 40;

/// Something in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file.
    File(FileRef),
    /// A link to something in the same directory.
    Link(String),
    /// A directory with nothing in it. Others are known by what is in them.
    Empty,
}

/// Everything below a directory, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    entries: BTreeMap<String, Entry>,
}

/// Why something is no directory that could be moved to another machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// A path that is absolute, goes upwards, or is not written in its shortest form.
    #[error("the path {0:?} does not stay in its directory, or is not plain")]
    Path(String),
    /// A path below something that is no directory.
    #[error("the path {0:?} is below {1:?}, which is no directory")]
    Below(String, String),
    /// A link that leads out of the directory.
    #[error("the link {path:?} leads out of its directory: {target:?}")]
    LeadsOut {
        /// Where the link is.
        path: String,
        /// What it names.
        target: String,
    },
    /// Bytes that are no manifest.
    #[error("not a manifest: {0}")]
    Malformed(&'static str),
}

impl Manifest {
    /// A manifest of these entries, if they are a directory that stays within itself.
    pub fn new(entries: BTreeMap<String, Entry>) -> Result<Self, ManifestError> {
        let manifest = Self { entries };
        for (path, entry) in &manifest.entries {
            plain(path)?;
            for (end, _) in path.match_indices('/') {
                if manifest.entries.contains_key(&path[..end]) {
                    return Err(ManifestError::Below(path.clone(), path[..end].to_owned()));
                }
            }
            if let Entry::Link(target) = entry
                && !manifest.stays(path, target)
            {
                return Err(ManifestError::LeadsOut { path: path.clone(), target: target.clone() });
            }
        }
        Ok(manifest)
    }

    /// Everything, in the order of the paths.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// Everything, to be changed.
    pub(crate) fn into_entries(self) -> BTreeMap<String, Entry> {
        self.entries
    }

    /// All files, in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &FileRef)> {
        self.entries().filter_map(|(path, entry)| match entry {
            Entry::File(file) => Some((path, file)),
            _ => None,
        })
    }

    /// What the directory is called, and the bytes of the manifest.
    pub fn artifact(&self) -> (Artifact, Vec<u8>) {
        let bytes = self.write();
        let mut directory =
            DirectoryRef { id: ContentId::of(&bytes), size: bytes.len() as u64, files: 0, bytes: 0 };
        for (_, file) in self.files() {
            directory.files += 1;
            directory.bytes = directory.bytes.saturating_add(file.size);
        }
        (Artifact::Directory(directory), bytes)
    }

    /// Follows a link as the system would, with what is in the manifest. A name that is not there is taken for a
    /// directory: whatever is made there later must not be a way out either.
    fn stays(&self, path: &str, target: &str) -> bool {
        let mut at: Vec<&str> = path.split('/').collect();
        at.pop();
        // What is still to be walked, last first.
        let mut rest: Vec<&str> = Vec::new();
        let mut followed = 0;
        let mut target = target;
        loop {
            if target.is_empty() || target.starts_with('/') || target.contains('\0') {
                return false;
            }
            rest.extend(target.rsplit('/').filter(|p| !p.is_empty() && *p != "."));
            loop {
                let Some(part) = rest.pop() else { return true };
                if part == ".." {
                    if at.pop().is_none() {
                        return false;
                    }
                    continue;
                }
                at.push(part);
                if let Some(Entry::Link(next)) = self.entries.get(&at.join("/")) {
                    at.pop();
                    followed += 1;
                    if followed > LINKS {
                        // The system refuses to follow it too.
                        return true;
                    }
                    target = next;
                    break;
                }
            }
        }
    }

    /// The one form of a manifest, whose hash names the directory.
    pub fn write(&self) -> Vec<u8> {
        let mut out = HEADER.as_bytes().to_vec();
        for (path, entry) in &self.entries {
            // No path and no target contains a zero.
            match entry {
                Entry::File(f) => {
                    let kind = if f.executable { "x" } else { "f" };
                    out.extend_from_slice(format!("{kind} {} {} {path}\0", f.id, f.size).as_bytes());
                }
                Entry::Link(target) => out.extend_from_slice(format!("l {path}\0{target}\0").as_bytes()),
                Entry::Empty => out.extend_from_slice(format!("d {path}\0").as_bytes()),
            }
        }
        out
    }

    /// Reads a manifest of somebody else.
    pub fn read(bytes: &[u8]) -> Result<Self, ManifestError> {
        let bad = ManifestError::Malformed;
        let text = std::str::from_utf8(bytes).map_err(|_| bad("it is not text"))?;
        let text = text.strip_prefix(HEADER).ok_or(bad("it does not begin like one"))?;
        let mut parts = text.split_terminator('\0');
        if !text.is_empty() && !text.ends_with('\0') {
            return Err(bad("it is cut off"));
        }
        let mut entries = BTreeMap::new();
        let mut last = "";
        while let Some(part) = parts.next() {
            let (kind, rest) = part.split_once(' ').ok_or(bad("an entry has no kind"))?;
            let (path, entry) = match kind {
                "f" | "x" => {
                    let mut words = rest.splitn(3, ' ');
                    let mut word = || words.next().ok_or(bad("a file has an id, a size and a path"));
                    let id = word()?.parse().map_err(|_| bad("a file has no id"))?;
                    let size: &str = word()?;
                    let number: u64 = size.parse().map_err(|_| bad("a size is no number"))?;
                    if number.to_string() != size {
                        return Err(bad("a size is not written plainly"));
                    }
                    (word()?, Entry::File(FileRef { id, size: number, executable: kind == "x" }))
                }
                "l" => (rest, Entry::Link(parts.next().ok_or(bad("a link has no target"))?.to_owned())),
                "d" => (rest, Entry::Empty),
                _ => return Err(bad("an entry has an unknown kind")),
            };
            if !entries.is_empty() && path <= last {
                return Err(bad("its paths are not in order"));
            }
            last = path;
            entries.insert(path.to_owned(), entry);
        }
        Self::new(entries)
    }
}

/// Makes sure that a path has names only, none of them special.
fn plain(path: &str) -> Result<(), ManifestError> {
    let bad = |name: &str| matches!(name, "" | "." | "..") || name.len() > 255;
    if path.len() > 4000 || path.contains('\0') || path.split('/').any(bad) {
        return Err(ManifestError::Path(path.chars().take(200).collect()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Entry {
        Entry::File(FileRef { id: ContentId::of(b"x"), size: 1, executable: false })
    }

    fn manifest(entries: &[(&str, Entry)]) -> Result<Manifest, ManifestError> {
        Manifest::new(entries.iter().map(|(p, e)| ((*p).to_owned(), e.clone())).collect())
    }

    fn link(target: &str) -> Entry {
        Entry::Link(target.to_owned())
    }

    #[test]
    fn no_path_leaves_its_directory() {
        for path in ["", "/etc/passwd", "../x", "a/../../x", "a/..", ".", "./a", "a//b", "a/", "a\0b"] {
            assert!(matches!(manifest(&[(path, file())]), Err(ManifestError::Path(_))), "{path:?}");
        }
        for path in ["a", "a/b", "...", "..a", "a b", "ä\n", "-rf"] {
            assert!(manifest(&[(path, file())]).is_ok(), "{path:?}");
        }
    }

    #[test]
    fn nothing_lies_below_a_file_or_a_link() {
        for above in [file(), link("b"), Entry::Empty] {
            let made = manifest(&[("a", above), ("a/b/c", file()), ("b", Entry::Empty)]);
            assert!(matches!(made, Err(ManifestError::Below(..))));
        }
    }

    #[test]
    fn no_link_leads_out_however_it_is_composed() {
        let out: [&[(&str, &str)]; 7] = [
            &[("a", "/etc/passwd")],
            &[("a", "..")],
            &[("d/a", "../../x")],
            &[("a", "")],
            // Plain when read as text, but `a/b/s` is the directory itself, whose parent is outside.
            &[("a/b/s", "../.."), ("t", "a/b/s/../x")],
            &[("a/b/s", "../.."), ("c/u", "../a/b/s"), ("t", "c/u/..")],
            &[("a", "nothing/../../x")],
        ];
        for links in out {
            let entries: Vec<_> = links.iter().map(|(p, t)| (*p, link(t))).collect();
            assert!(matches!(manifest(&entries), Err(ManifestError::LeadsOut { .. })), "{links:?}");
        }
        let within: [&[(&str, &str)]; 6] = [
            &[("a", "b")],
            &[("d/a", "../x")],
            &[("d/a", "..")],
            &[("a", "a")],
            &[("a", "b"), ("b", "a")],
            &[("a/b/s", "../.."), ("t", "a/b/s/x")],
        ];
        for links in within {
            let entries: Vec<_> = links.iter().map(|(p, t)| (*p, link(t))).collect();
            assert!(manifest(&entries).is_ok(), "{links:?}");
        }
    }

    #[test]
    fn a_manifest_has_one_form() {
        let made = manifest(&[("b/x y", file()), ("a\nb", link("b")), ("c", Entry::Empty)]).unwrap();
        let bytes = made.write();
        assert_eq!(Manifest::read(&bytes).unwrap(), made);
        let (artifact, _) = made.artifact();
        assert_eq!((artifact.id(), artifact.bytes()), (ContentId::of(&bytes), 1 + bytes.len() as u64));
        let id = ContentId::of(b"");
        for bad in [
            String::new(),
            "catena directory 2\n".to_owned(),
            format!("{HEADER}d a"),
            format!("{HEADER}d b\0d a\0"),
            format!("{HEADER}d a\0d a\0"),
            format!("{HEADER}f {id} 01 a\0"),
            format!("{HEADER}f {id} +1 a\0"),
            format!("{HEADER}f {id} 1\0"),
            format!("{HEADER}f zz 1 a\0"),
            format!("{HEADER}l a\0"),
            format!("{HEADER}q a\0"),
            format!("{HEADER}\0"),
        ] {
            assert!(matches!(Manifest::read(bad.as_bytes()), Err(ManifestError::Malformed(_))), "{bad:?}");
        }
        assert!(Manifest::read(b"\xff").is_err());
        assert_eq!(Manifest::read(HEADER.as_bytes()).unwrap(), Manifest::default());
    }
}
