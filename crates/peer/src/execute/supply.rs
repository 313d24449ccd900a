//! Brings what a task reads from the peers that have it.

use crate::book::Book;
use crate::catalogue::Catalogue;
use crate::matter::{Item, Lost, Task, TaskEnding};
use catena_data::{Depot, Pin};
use catena_model as model;
use catena_model::chain::{RunContext, TaskFailure};
use catena_server::chain_inputs;
use catena_space::molecule::{Ending, Kind, Name};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// How long it is waited before others are asked for something once more. A peer may just be starting again.
const PAUSES: [Duration; 2] = [Duration::ZERO, Duration::from_secs(1)];
/// So many things are brought at the same time.
const STREAMS: usize = 4;

/// What a task reads: of those it waited for, and of what was known when it was given out. What a task has given last
/// counts, so one whose data were lost may have been executed again since.
pub(super) fn items(task: &Task, inputs: &[(Name, Arc<Ending>)]) -> Result<Vec<Item>, String> {
    let mut catalogue = Catalogue::default();
    let mut fresh = BTreeSet::new();
    for (name, ending) in inputs.iter().filter(|(name, _)| name.kind == Kind::Task) {
        if let TaskEnding::Done { results, holders } = TaskEnding::read(ending)? {
            catalogue.add(name.number, results.iter().flat_map(|r| &r.data), &holders);
            fresh.insert(name.number);
        }
    }
    let mut items: Vec<Item> = task.items.iter().filter(|i| !fresh.contains(&i.of)).cloned().collect();
    let read = chain_inputs(&task.chain);
    items.extend(catalogue.reads(&read));
    // What others write has such paths. It cannot be read where nobody says what is there.
    let RunContext { tmp, out, .. } = &task.context;
    let is_made = |path: &Path| path.starts_with(tmp) || path.starts_with(out);
    let is_known = |path: &Path| items.iter().any(|i| path.starts_with(&i.supply.name));
    match read.iter().map(|name| Path::new(name.as_str())).find(|p| is_made(p) && !is_known(p)) {
        Some(path) => Err(format!("nobody says where {} can be had", path.display())),
        None => Ok(items),
    }
}

/// Whom to ask for what is to be brought: those who should have it where they are now, and others who may have copies.
#[derive(Clone, Copy)]
pub(crate) struct Holders<'a> {
    pub(crate) book: &'a Book,
    pub(crate) others: &'a [model::Name],
}

/// Brings everything. `None` if it is not wanted any more.
pub(crate) fn bring_all(
    depot: &Depot,
    items: &[Item],
    holders: Holders<'_>,
    is_wanted: &(dyn Fn() -> bool + Sync),
) -> Option<Result<Vec<Pin>, TaskEnding>> {
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let goes_on = || !has_failed.load(Ordering::Relaxed) && is_wanted();
    let work = || {
        let mut pins = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            match bring(depot, item, holders, &goes_on) {
                Some(Ok(pin)) => pins.push(pin),
                failed => {
                    has_failed.store(true, Ordering::Relaxed);
                    return failed.map(|f| f.map(|_| Vec::new()));
                }
            }
        }
        Some(Ok(pins))
    };
    let mut pins = Vec::with_capacity(items.len());
    let mut end = Some(());
    let mut failure = None;
    thread::scope(|scope| {
        // Alone it takes longer, but comes to the same.
        let help = |_| thread::Builder::new().name("bring".to_owned()).spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (1..items.len().min(STREAMS)).filter_map(help).collect();
        let own = work();
        // Whoever panics has brought nothing.
        let theirs = helpers.into_iter().map(|h| h.join().unwrap_or(None));
        for brought in std::iter::once(own).chain(theirs) {
            match brought {
                Some(Ok(more)) => pins.extend(more),
                Some(Err(why)) => failure = Some(why),
                None => end = None,
            }
        }
    });
    match failure {
        Some(why) => Some(Err(why)),
        None => end.map(|()| Ok(pins)),
    }
}

/// Brings something. `None` if it is not wanted any more.
fn bring(
    depot: &Depot,
    item: &Item,
    holders: Holders<'_>,
    is_wanted: &dyn Fn() -> bool,
) -> Option<Result<Pin, TaskEnding>> {
    let mut message = String::new();
    for (pause, is_last) in PAUSES.into_iter().zip([false, true]) {
        thread::sleep(pause);
        if !is_wanted() {
            return None;
        }
        let mut supply = item.supply.clone();
        supply.sources = supply.sources.iter().filter_map(|origin| holders.book.now(origin)).collect();
        if is_last {
            // Somebody may have a copy of it.
            supply.sources.extend(holders.others.iter().filter_map(|name| holders.book.find(name)));
        }
        match depot.bring(&supply) {
            Ok(brought) => return Some(Ok(brought.pin)),
            Err(why) if why.no_room => {
                let failure = TaskFailure { message: why.message, help: why.help, ..TaskFailure::default() };
                return Some(Err(TaskEnding::Failed(Box::new(failure))));
            }
            Err(why) => message = why.message,
        }
    }
    let lost = Lost { of: item.of, name: item.supply.name.clone(), message };
    Some(Err(TaskEnding::Lost(lost)))
}
