//! Finds runs by words.

use catena_store::{Run, RunState, Store, StoreError};

/// The newest runs in which all words of a query occur: in their name, the path or the text of their workflow, their
/// state or their error. `name:word`, `state:word`, `error:word` and `workflow:word` look in one place only.
pub async fn search(store: &dyn Store, query: &str, limit: usize) -> Result<Vec<Run>, StoreError> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mut found = Vec::new();
    for run in store.runs().await? {
        if found.len() == limit {
            break;
        }
        let missing: Vec<&str> = words.iter().map(String::as_str).filter(|w| !mentions(&run, w)).collect();
        if !missing.is_empty() {
            let definition = store.definition(run.id).await?.unwrap_or_default();
            let definition = String::from_utf8_lossy(&definition).to_lowercase();
            if missing.into_iter().any(|w| w.contains(':') || !definition.contains(w)) {
                continue;
            }
        }
        found.push(run);
    }
    Ok(found)
}

/// Whether what is known of a run besides its workflow has a word.
fn mentions(run: &Run, word: &str) -> bool {
    let has = |text: &str, word: &str| text.to_lowercase().contains(word);
    let error = run.error.as_deref().unwrap_or_default();
    match word.split_once(':') {
        Some(("name", w)) => has(&run.name, w),
        Some(("state", w)) => has(&state_name(run.state), w),
        Some(("error", w)) => has(error, w),
        Some(("workflow", w)) => has(&run.source, w),
        _ => {
            let id = run.id.to_string();
            let places = [run.name.as_str(), &run.source, error, &id];
            places.iter().any(|p| has(p, word)) || has(&state_name(run.state), word)
        }
    }
}

/// A state as the interface spells it.
pub(crate) fn state_name(state: RunState) -> String {
    serde_json::to_value(state).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}
