//! Pegasus DAX: jobs and dependencies in XML.

use super::{Builder, Trace, TraceJob};
use crate::Name;
use roxmltree::{Document, Node, ParsingOptions};

/// Reads a DAX file of version 2 or 3. What is wrong is told with its line and column.
pub fn read_dax(text: &str) -> Result<Trace, String> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|e| e.to_string())?;
    let root = document.root_element();
    let mut builder = Builder::default();
    read(&root, &mut builder).map_err(|(node, message)| {
        let place = document.text_pos_at(node.range().start);
        format!("{}:{}: {message}", place.row, place.col)
    })?;
    Ok(builder.finish())
}

type Element<'a> = Node<'a, 'a>;

fn read<'a>(root: &Element<'a>, builder: &mut Builder) -> Result<(), (Element<'a>, String)> {
    if root.tag_name().name() != "adag" {
        return Err((*root, format!("expected an `adag`, found `{}`", root.tag_name().name())));
    }
    root.attribute("name").unwrap_or_default().clone_into(&mut builder.trace.name);
    let elements = || root.children().filter(Node::is_element);
    for job in elements().filter(|e| matches!(e.tag_name().name(), "job" | "dax" | "dag")) {
        read_job(&job, builder)?;
    }
    for child in elements().filter(|e| e.tag_name().name() == "child") {
        let number = |node: Element<'a>| {
            let id = node.attribute("ref").ok_or_else(|| "`ref` is missing".to_owned());
            id.and_then(|id| builder.find(id)).map_err(|message| (node, message))
        };
        let to = number(child)?;
        let parents = child.children().filter(|e| e.tag_name().name() == "parent");
        let arcs: Vec<(u32, u32)> = parents.map(|p| Ok((number(p)?, to))).collect::<Result<_, _>>()?;
        builder.trace.arcs.extend(arcs);
    }
    Ok(())
}

fn read_job<'a>(job: &Element<'a>, builder: &mut Builder) -> Result<(), (Element<'a>, String)> {
    let Some(id) = job.attribute("id") else { return Err((*job, "a job has no `id`".to_owned())) };
    let profile = |key: &str| {
        let mut profiles = job.children().filter(|e| e.tag_name().name() == "profile");
        profiles.find(|p| p.attribute("key") == Some(key)).and_then(|p| p.text())
    };
    let runtime = job.attribute("runtime").or_else(|| profile("runtime")).unwrap_or("0");
    let Ok(runtime) = runtime.trim().parse() else {
        return Err((*job, format!("`{runtime}` is no runtime in seconds")));
    };
    let recorded = TraceJob {
        id: Name::new(id),
        program: Name::new(job.attribute("name").unwrap_or(id)),
        runtime,
        cores: 1.0,
        ..TraceJob::default()
    };
    let number = builder.job(recorded).map_err(|message| (*job, message))?;
    for file in job.children().filter(|e| e.tag_name().name() == "uses") {
        let Some(name) = file.attribute("file").or_else(|| file.attribute("name")) else { continue };
        let size = file.attribute("size").and_then(|s| s.trim().parse().ok());
        match file.attribute("link") {
            Some("input") => builder.uses(number, name, size, true),
            Some("output") => builder.uses(number, name, size, false),
            Some("inout") => {
                builder.uses(number, name, size, true);
                builder.uses(number, name, size, false);
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_files_and_dependencies_are_read() {
        let text = "<adag name='w'><job id='b' name='p' runtime='2.5'><uses file='x' link='input' size='-7'/></job><job id='a'><uses name='x' link='output' size='9'/><uses name='y' link='inout'/></job><child ref='b'><parent ref='a'/></child></adag>";
        let trace = read_dax(text).unwrap();
        let ids: Vec<&str> = trace.jobs.iter().map(|j| j.id.as_str()).collect();
        assert_eq!((ids, &trace.arcs[..], trace.jobs[0].runtime), (vec!["b", "a"], &[(1, 0)][..], 2.5));
        assert_eq!(
            (trace.files[0].size, &trace.jobs[1].inputs[..]),
            (7, &[][..]),
            "what is written is no input"
        );
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let text = "<adag>\n<job id='a'/>\n <child ref='c'/></adag>";
        assert_eq!(read_dax(text).unwrap_err(), "3:2: there is no job `c`");
        assert!(read_dax("<adag>").is_err());
        assert!(read_dax("<html/>").unwrap_err().contains("expected an `adag`"));
        assert_eq!(
            read_dax("<adag><job id='a' runtime='x'/></adag>").unwrap_err(),
            "1:7: `x` is no runtime in seconds"
        );
    }
}
