//! Pegasus DAX: jobs and dependencies in XML.

use super::builder::{Builder, NO_JOBS, bytes, cores, number, seconds};
use super::{Trace, TraceJob};
use crate::Name;
use roxmltree::{Document, Node, ParsingOptions};

/// Reads a DAX file of version 2 or 3. What is wrong is told with its line and column.
pub fn read_dax(text: &str) -> Result<Trace, String> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|e| {
        let place = e.pos();
        let message = e.to_string();
        let message = message.rsplit_once(" at ").map_or(message.as_str(), |(m, _)| m);
        format!("{}:{}: this is no XML: {message}", place.row, place.col)
    })?;
    read(&document.root_element()).map_err(|(node, message)| {
        let place = document.text_pos_at(node.range().start);
        format!("{}:{}: {message}", place.row, place.col)
    })
}

type Element<'a> = Node<'a, 'a>;

/// An element and what is wrong with it.
type Wrong<'a> = (Element<'a>, String);

fn read<'a>(root: &Element<'a>) -> Result<Trace, Wrong<'a>> {
    if root.tag_name().name() != "adag" {
        let found = root.tag_name().name();
        return Err((*root, format!("expected an `adag`, found `{found}`: is it a DAX file?")));
    }
    let mut builder = Builder::default();
    root.attribute("name").unwrap_or_default().clone_into(&mut builder.trace.name);
    let elements = || root.children().filter(Node::is_element);
    let jobs: Vec<Element> =
        elements().filter(|e| matches!(e.tag_name().name(), "job" | "dax" | "dag")).collect();
    if jobs.is_empty() {
        return Err((*root, NO_JOBS.to_owned()));
    }
    for job in &jobs {
        read_job(job, &mut builder)?;
    }
    for child in elements().filter(|e| e.tag_name().name() == "child") {
        let find = |node: Element<'a>| {
            let id = node
                .attribute("ref")
                .ok_or_else(|| format!("`ref` is missing: say which job the {} is", node.tag_name().name()));
            id.and_then(|id| builder.find(id)).map_err(|message| (node, message))
        };
        let to = find(child)?;
        let parents = child.children().filter(|e| e.tag_name().name() == "parent");
        let arcs: Vec<(u32, u32)> = parents.map(|p| Ok((find(p)?, to))).collect::<Result<_, _>>()?;
        builder.trace.arcs.extend(arcs);
    }
    builder.finish().map_err(|(job, message)| (jobs[job as usize], message))
}

fn read_job<'a>(job: &Element<'a>, builder: &mut Builder) -> Result<(), Wrong<'a>> {
    let Some(id) = job.attribute("id") else {
        return Err((*job, "a job has no `id`: give each job an id of its own".to_owned()));
    };
    let profile = |namespace: &str, key: &str| {
        let mut profiles = job.children().filter(|e| e.tag_name().name() == "profile");
        let profile = profiles.find(|p| {
            p.attribute("namespace").is_none_or(|n| n.eq_ignore_ascii_case(namespace))
                && p.attribute("key").is_some_and(|k| k.eq_ignore_ascii_case(key))
        })?;
        Some((profile, profile.text().unwrap_or_default()))
    };
    let wrong = |(node, _): (Element<'a>, &str), message| (node, message);
    let program = ["name", "file"].into_iter().filter_map(|a| job.attribute(a)).find(|p| !p.is_empty());
    let mut recorded = TraceJob {
        id: Name::new(id),
        program: Name::new(program.unwrap_or(id)),
        cores: 1.0,
        ..TraceJob::default()
    };
    if let Some(said) = job.attribute("runtime").map(|r| (*job, r)).or_else(|| profile("pegasus", "runtime"))
    {
        recorded.runtime =
            number(said.1, "runtime in seconds").and_then(seconds).map_err(|m| wrong(said, m))?;
    }
    if let Some(said) = profile("pegasus", "cores").or_else(|| profile("condor", "request_cpus")) {
        recorded.cores =
            number(said.1, "number of processors").and_then(cores).map_err(|m| wrong(said, m))?;
    }
    // In megabytes.
    if let Some(said) = profile("pegasus", "memory").or_else(|| profile("condor", "request_memory")) {
        recorded.memory = number(said.1, "amount of memory in megabytes")
            .and_then(|m| bytes(m * 1e6))
            .map_err(|m| wrong(said, m))?;
    }
    let number_of_job = builder.job(recorded).map_err(|message| (*job, message))?;
    for file in job.children().filter(Node::is_element) {
        let link = match file.tag_name().name() {
            "uses" => file.attribute("link"),
            "stdin" => Some("input"),
            "stdout" | "stderr" => Some("output"),
            _ => continue,
        };
        let name = file.attribute("file").or_else(|| file.attribute("name"));
        let Some(name) = name.filter(|n| !n.is_empty()) else {
            return Err((file, "a file has no name: say which it is with `file` or `name`".to_owned()));
        };
        let size = file.attribute("size").filter(|s| !s.trim().is_empty());
        let size = size.map(|s| number(s, "size in bytes").and_then(bytes)).transpose();
        let size = size.map_err(|message| (file, message))?;
        let (is_read, is_written) = match link {
            Some("input") => (true, false),
            Some("output") => (false, true),
            Some("inout" | "checkpoint") => (true, true),
            None | Some("none") => (false, false),
            Some(other) => {
                let known = "input, output, inout, checkpoint and none";
                return Err((file, format!("`link` is `{other}`: it can be {known}")));
            }
        };
        for (_, is_input) in [(is_read, true), (is_written, false)].into_iter().filter(|(is, _)| *is) {
            builder.uses(number_of_job, name, size, is_input);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_files_and_dependencies_are_read() {
        let text = "<adag name='w'><job id='b' name='p' runtime='2.5'><uses file='x' link='input' size='-7'/></job><job id='a'><profile namespace='pegasus' key='cores'>4</profile><profile namespace='pegasus' key='memory'>1.5</profile><uses name='x' link='output' size='9'/><uses name='y' link='inout'/><stdout name='z'/></job><child ref='b'><parent ref='a'/></child></adag>";
        let trace = read_dax(text).unwrap();
        let ids: Vec<&str> = trace.jobs.iter().map(|j| j.id.as_str()).collect();
        assert_eq!((ids, &trace.arcs[..], trace.jobs[0].runtime), (vec!["b", "a"], &[(1, 0)][..], 2.5));
        assert_eq!((trace.jobs[1].cores, trace.jobs[1].memory), (4.0, 1_500_000));
        assert_eq!(
            (trace.files[0].size, &trace.jobs[1].inputs[..]),
            (7, &[][..]),
            "what is written is no input"
        );
        assert_eq!(trace.jobs[1].outputs, [0, 1, 2]);
    }
}
