//! Sends the files that a workflow names to a server whose agents have files of their own.

use crate::remote::Server;
use catena_data::{Part, describe};
use catena_model::chain::Produced;
use catena_model::content::ContentId;
use catena_model::{Loaded, Value};
use catena_server::named_files;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

/// Whether a server and its agents see files where they are.
pub(crate) fn sees_our_files(server: &Server) -> Result<bool, String> {
    let storage: Value = server.get("/storage")?;
    Ok(storage["mode"] == "shared")
}

/// Sends what the server does not have, and says what everything is.
pub(crate) fn send_files(
    server: &Server,
    loaded: &Loaded,
    mut tell: impl FnMut(&str, u64),
) -> Result<Vec<Produced>, String> {
    let mut files = Vec::new();
    let mut parts: BTreeMap<ContentId, Part> = BTreeMap::new();
    for (name, path) in named_files(loaded) {
        let described = describe(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        files.push(Produced { name, artifact: described.artifact });
        parts.extend(described.parts);
    }
    let ids: Vec<&ContentId> = parts.keys().collect();
    let missing: Vec<ContentId> = server.send("POST", "/content/missing", "application/json", &ids)?;
    for id in missing {
        let path = format!("/content/{id}");
        match parts.get(&id) {
            Some(Part::File(file)) => {
                let content = File::open(file).map_err(|e| format!("{}: {e}", file.display()))?;
                let size = content.metadata().map_err(|e| format!("{}: {e}", file.display()))?.len();
                tell(&file.display().to_string(), size);
                // What has changed since it was looked at is refused.
                server.put(&path, content.take(size)).map_err(|e| format!("{}: {e}", file.display()))?;
            }
            Some(Part::Bytes(bytes)) => server.put(&path, bytes.as_slice())?,
            None => {}
        }
    }
    Ok(files)
}
