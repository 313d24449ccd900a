//! Which files come with a workflow.

use catena_model::{Action, DIRECTORY, InputSource, Library, Loaded, Name, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// The files that a workflow names, by the names it gives them: values of inputs that are files, directories where one
/// is asked for, and programs that come with it.
pub fn named_files(loaded: &Loaded) -> BTreeMap<Name, PathBuf> {
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
                Action::Include(_) | Action::First(_) => continue,
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
