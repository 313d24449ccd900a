//! Where what comes with runs and what comes of them is held, where agents have files of their own.

use crate::publish::{PublishedResult, publish_results, put};
use crate::supplies::Supplier;
use catena_data::{Artifact, DataError, Depot, Pin};
use catena_model::Name;
use catena_model::chain::{Produced, RunId, Supply, Unsupplied};
use catena_model::content::ContentId;
use catena_store::{FileRecord, HoldingChange, Home as HomeRecord, Store, StoreError};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A depot of an instance.
pub struct Home {
    name: Name,
    depot: Arc<Depot>,
    /// Where results are put together.
    work: PathBuf,
}

/// What came of the results of a run.
pub(crate) enum Collected {
    /// They are in their place.
    Here(Vec<PublishedResult>),
    /// Nobody has these any more.
    Missing(Vec<FileRecord>),
    /// They could not be brought here, this time.
    NotYet(String),
}

/// The name of a home is kept here, so that it is the same with every start.
const NAME_FILE: &str = "name";

impl Home {
    /// A home whose depot is in a directory.
    pub fn new(depot: Depot, directory: &Path) -> io::Result<Self> {
        let file = directory.join(NAME_FILE);
        let name = match fs::read_to_string(&file) {
            Ok(name) => name,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                // As good as any: nobody else has the token.
                let token = ContentId::of(depot.address().token.as_bytes()).to_string();
                let name = format!("home-{}", &token[..12]);
                fs::write(&file, &name)?;
                name
            }
            Err(e) => return Err(e),
        };
        let work = directory.join("results");
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work)?;
        Ok(Self { name: name.trim().into(), depot: Arc::new(depot), work })
    }

    /// What it holds.
    pub(crate) fn depot(&self) -> &Arc<Depot> {
        &self.depot
    }

    /// Says where it is and what it holds.
    pub(crate) async fn announce(&self, store: &dyn Store) -> Result<(), StoreError> {
        let address = self.depot.address().clone();
        store.put_home(&HomeRecord { id: self.name.clone(), address }).await?;
        store.replace_holdings(&self.name, &self.depot.holdings().contents()).await
    }

    /// Says that files are here that come with a run.
    pub(crate) async fn offer(&self, store: &dyn Store, files: &[Produced]) -> Result<(), String> {
        let mut change = HoldingChange { agent: self.name.clone(), ..HoldingChange::default() };
        for file in files {
            self.depot.export(&file.artifact)?;
            change.holds.push((file.artifact.id(), true));
        }
        store.change_holdings(&[change]).await.map_err(|e| e.to_string())
    }

    /// Keeps files that came with a run.
    pub(crate) fn keep(&self, run: RunId, files: &[Produced]) -> Result<(), DataError> {
        let holdings = self.depot.holdings();
        files.iter().try_for_each(|file| holdings.keep(&format!("{run}/{}", file.name), &file.artifact))
    }

    /// Takes content in that somebody sends. It is pinned until the pin is dropped.
    pub(crate) fn receive(
        &self,
        from: &mut dyn io::Read,
        expected: u64,
    ) -> Result<(Artifact, Pin), DataError> {
        let (file, pin) = self.depot.holdings().put_stream(from, expected)?;
        Ok((Artifact::File(file), pin))
    }

    /// Brings something here and opens it, or a file in it. It is here only for as long as it is open.
    pub(crate) fn open_brought(&self, supply: &Supply, part: &Path) -> Result<fs::File, String> {
        let brought = self.depot.bring(supply).map_err(|e| e.message)?;
        let name = catena_data::random_hex(8).map_err(|e| e.to_string())?;
        let place = self.work.join(format!("shown-{name}"));
        self.depot.place(supply, &place).map_err(|e| e.to_string())?;
        drop(brought);
        // An empty part would add a slash, and a file with a slash is none.
        let file = if part.as_os_str().is_empty() { place.clone() } else { place.join(part) };
        let opened = fs::File::open(&file).map_err(|e| format!("{}: {e}", file.display()));
        let _ = if place.is_dir() { fs::remove_dir_all(&place) } else { fs::remove_file(&place) };
        opened
    }

    /// What came with a run need not be kept any more.
    pub(crate) fn release(&self, run: RunId) {
        let prefix = format!("{run}/");
        for name in self.depot.holdings().kept().iter().filter(|n| n.starts_with(&prefix)) {
            // It is released with the run's deletion at the latest.
            let _ = self.depot.holdings().release(name);
        }
    }

    /// Brings the results of a run, and what it has stored below a path of its own, to where users look for them.
    pub(crate) async fn collect(
        &self,
        supplier: &Supplier,
        run: RunId,
        results: &[(Name, Vec<String>)],
        (stored, out): (&Path, &Path),
    ) -> Result<Collected, StoreError> {
        let paths: Vec<Name> = results.iter().flat_map(|(_, values)| values).map(Name::new).collect();
        let mut reads = supplier.paths(run, &paths).await?;
        let kept = supplier.below(run, stored).await?;
        reads.missing.extend(kept.missing);
        if !reads.missing.is_empty() {
            return Ok(Collected::Missing(reads.missing));
        }
        let has = |supplies: &[Supply], name: &Name| supplies.iter().any(|s| s.name == *name);
        let kept: Vec<Supply> =
            kept.supplies.into_iter().filter(|s| !has(&reads.supplies, &s.name)).collect();
        reads.supplies.extend(kept);
        let (depot, results, out) = (self.depot.clone(), results.to_vec(), out.to_path_buf());
        let stored = stored.to_path_buf();
        let work = self.work.join(run.to_string());
        let collected = tokio::task::spawn_blocking(move || {
            let _ = fs::remove_dir_all(&work);
            let collected = bring_results(&depot, &reads.supplies, &results, &work, (&stored, &out));
            let _ = fs::remove_dir_all(&work);
            collected
        });
        let collected = collected.await.unwrap_or_else(|e| Err(e.to_string()));
        Ok(collected.map_or_else(Collected::NotYet, Collected::Here))
    }
}

/// Brings results, puts them together in a directory for that, and links them to their places: what is named to where it
/// is looked for, what is below the path for what is to be stored to the same place below `out`.
pub fn bring_results(
    depot: &Depot,
    supplies: &[Supply],
    results: &[(Name, Vec<String>)],
    work: &Path,
    (stored, out): (&Path, &Path),
) -> Result<Vec<PublishedResult>, String> {
    let mut places: Vec<(&Path, PathBuf)> = Vec::new();
    let mut pins = Vec::new();
    for (number, supply) in supplies.iter().enumerate() {
        let brought = depot.bring(supply).map_err(|Unsupplied { message, .. }| message)?;
        pins.push(brought.pin);
        let name = Path::new(supply.name.as_str());
        let place = work.join(number.to_string()).join(name.file_name().unwrap_or_default());
        depot.place(supply, &place).map_err(|e| e.to_string())?;
        // What is to be stored has its place already.
        if let Ok(rest) = name.strip_prefix(stored) {
            put(&place, &out.join(rest)).map_err(|e| format!("{}: {e}", out.join(rest).display()))?;
        }
        places.push((name, place));
    }
    let local = |value: &String| {
        let found = places.iter().find_map(|(name, place)| {
            let rest = Path::new(value).strip_prefix(name).ok()?;
            Some(if rest.as_os_str().is_empty() { place.clone() } else { place.join(rest) })
        });
        found.map_or_else(|| value.clone(), |path| path.to_string_lossy().into_owned())
    };
    let results: Vec<(Name, Vec<String>)> =
        results.iter().map(|(name, values)| (name.clone(), values.iter().map(local).collect())).collect();
    publish_results(&results, out).map_err(|e| format!("results cannot be put in their place: {e}"))
}
