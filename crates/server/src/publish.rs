//! Puts the named results of a run where the user looks for them.

use catena_model::Name;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A result in its final place.
#[derive(Clone, Debug, Serialize)]
pub struct PublishedResult {
    /// Its name.
    pub name: Name,
    /// Its values: paths of files, or other values as they are.
    pub values: Vec<String>,
}

/// Makes every file among the results available in `out`: a single one under its own name, several in a
/// directory with the result's name. Files are linked, not copied, where the file system allows it.
pub fn publish_results(results: &[(Name, Vec<String>)], out: &Path) -> io::Result<Vec<PublishedResult>> {
    let mut published = Vec::new();
    for (name, values) in results {
        let mut places = Vec::with_capacity(values.len());
        let mut taken = std::collections::HashSet::new();
        for (i, value) in values.iter().enumerate() {
            let source = Path::new(value);
            let (Some(file), true) = (source.file_name(), source.is_absolute() && source.exists()) else {
                places.push(value.clone());
                continue;
            };
            let directory = if values.len() == 1 { out.to_path_buf() } else { out.join(name.as_str()) };
            let mut place = directory.join(file);
            if !taken.insert(place.clone()) {
                place = directory.join(format!("{i}-{}", file.to_string_lossy()));
            }
            put(source, &place)?;
            places.push(place.to_string_lossy().into_owned());
        }
        published.push(PublishedResult { name: name.clone(), values: places });
    }
    Ok(published)
}

/// Replaces `to` by `from` in one step, so that nobody ever sees half a file.
pub(crate) fn put(from: &Path, to: &Path) -> io::Result<()> {
    let directory = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            put(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let draft: PathBuf = directory.join(format!(".{name}.{}", std::process::id()));
    let _ = fs::remove_file(&draft);
    fs::hard_link(from, &draft).or_else(|_| fs::copy(from, &draft).map(|_| ()))?;
    let renamed = fs::rename(&draft, to);
    // Renaming a file over another name of itself does nothing, and leaves the draft.
    let _ = fs::remove_file(&draft);
    renamed
}
