//! What is started for a task, as a text.

use crate::Name;
use crate::chain::Executable;
use crate::template::{Template, shell_quote};
use std::collections::HashMap;

impl Executable {
    /// A script with the arguments in their places. `locate` says where a value is, if it is somewhere else for a while.
    pub fn script_text<'v>(&'v self, script: &str, locate: impl Fn(&'v str) -> &'v str) -> String {
        let mut values: HashMap<&str, Vec<&str>> = HashMap::new();
        for a in &self.arguments {
            values.entry(a.id.as_str()).or_default().push(locate(&a.variable.value));
        }
        let mut template = Template::parse(script);
        template.split_fields(|n| values.contains_key(n));
        template.render_shell(|n| values.get(n).cloned().unwrap_or_default())
    }

    /// Label and value of each argument, in the order of the service's parameters.
    pub fn command_line<'v>(&'v self, locate: impl Fn(&'v str) -> &'v str) -> Vec<String> {
        let mut out = Vec::with_capacity(self.arguments.len());
        for a in &self.arguments {
            if a.data_type == "boolean" {
                if a.variable.value.eq_ignore_ascii_case("true") {
                    out.extend(a.label.as_ref().map(Name::to_string));
                }
                continue;
            }
            out.extend(a.label.as_ref().map(Name::to_string));
            out.push(locate(&a.variable.value).to_owned());
        }
        out
    }

    /// The program with arguments, as a user would type it.
    pub fn shown_command(&self, arguments: &[String]) -> String {
        let words = std::iter::once(self.path.as_str()).chain(arguments.iter().map(String::as_str));
        words.map(shell_quote).collect::<Vec<_>>().join(" ")
    }

    /// What is started, as a user would type it, with all files in their final places.
    pub fn shown(&self) -> String {
        match &self.script {
            Some(script) => self.script_text(script, |value| value),
            None => self.shown_command(&self.command_line(|value| value)),
        }
    }
}
