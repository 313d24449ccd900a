//! Sends the files that a workflow names to a server whose agents have files of their own.

use crate::remote::Server;
use catena_data::{Part, describe};
use catena_model::chain::Produced;
use catena_model::content::ContentId;
use catena_model::{Action, DIRECTORY, InputSource, Library, Loaded, Name, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

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

/// The files that a workflow names, by the names it gives them: values of inputs that are files, directories where one
/// is asked for, and programs that come with it.
fn named_files(loaded: &Loaded) -> BTreeMap<Name, PathBuf> {
    let mut named = BTreeMap::new();
    let Some(workflow) = loaded.expanded.as_ref().or(loaded.workflow.as_ref()) else { return named };
    let constants: HashMap<&Name, &Value> =
        workflow.vars.iter().filter_map(|v| Some((&v.id, v.value.as_ref()?))).collect();
    let mut found = Found { directory: &loaded.directory, named: &mut named };
    for value in constants.values() {
        found.add(value, false);
    }
    found.actions(&workflow.actions, &constants, &loaded.library, &mut BTreeSet::new());
    named
}

struct Found<'f> {
    directory: &'f Path,
    named: &'f mut BTreeMap<Name, PathBuf>,
}

impl Found<'_> {
    fn add(&mut self, value: &Value, may_be_directory: bool) {
        match value {
            Value::String(text) if !text.is_empty() => {
                let path = self.directory.join(text);
                let Ok(meta) = std::fs::metadata(&path) else { return };
                if meta.is_file() || may_be_directory && meta.is_dir() {
                    self.named.insert(Name::new(text), path);
                }
            }
            Value::Array(values) => values.iter().for_each(|v| self.add(v, may_be_directory)),
            _ => {}
        }
    }

    fn actions<'w>(
        &mut self,
        actions: &'w [Action],
        constants: &HashMap<&Name, &Value>,
        library: &Library,
        programs: &mut BTreeSet<&'w Name>,
    ) {
        for action in actions {
            let execute = match action {
                Action::Execute(execute) => execute,
                Action::For(each) => {
                    self.actions(&each.actions, constants, library, programs);
                    continue;
                }
                Action::Include(_) => continue,
            };
            let Some(service) = library.service(&execute.service) else { continue };
            if programs.insert(&execute.service) && service.script.is_none() && service.path.contains('/') {
                self.add(&Value::String(service.path.to_string()), false);
            }
            for input in &execute.inputs {
                let parameter = service.parameters.iter().find(|p| p.id == input.id);
                let wants_directory = parameter.is_some_and(|p| p.data_type == DIRECTORY);
                match &input.source {
                    InputSource::Var(var) if wants_directory => {
                        if let Some(value) = constants.get(var) {
                            self.add(value, true);
                        }
                    }
                    InputSource::Var(_) => {}
                    InputSource::Value(value) => self.add(value, wants_directory),
                }
            }
        }
    }
}
