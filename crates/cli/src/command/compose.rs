//! `catena compose`

use super::{EXIT_USAGE, Outcome, print, show_problems, write_to};
use crate::arguments::{
    Arguments, ComposeCommand, ComposeExportArgs, ComposeImportArgs, ComposeLogArgs, SourceArgs,
};
use crate::project::load_source;
use crate::remote::{Server, encode};
use catena_compose::model::{
    Composition, adopt, is_composition_text, read_composition, workflow_file, write,
};
use catena_model::{Diagnostics, Node, moment, parse_yaml, read_text};
use serde_json::{Value, json};
use std::io::Read;
use std::process::ExitCode;

const JSON: &str = "application/json";

pub(crate) fn compose(command: &ComposeCommand, arguments: &Arguments) -> Outcome {
    let server = Server::expect(arguments)?;
    match command {
        ComposeCommand::List(args) => {
            let heads: Vec<Value> = server.get("/compositions")?;
            let row = |h: &Value| {
                let seq = h["seq"].to_string();
                vec![
                    text(h, "id"),
                    text(h, "name"),
                    seq,
                    text(h, "published"),
                    text(h, "creator"),
                    when(h, "created"),
                ]
            };
            show(args.json, &heads, &["ID", "NAME", "CHANGES", "PUBLISHED", "BY", "MADE"], row);
        }
        ComposeCommand::Import(args) => return import(args, &server),
        ComposeCommand::Export(args) => export(args, &server)?,
        ComposeCommand::Log(args) => log(args, &server)?,
        ComposeCommand::Versions(args) => {
            let versions: Vec<Value> = server.get(&format!("/compositions/{}/versions", encode(&args.id)))?;
            let row = |v: &Value| {
                let published = if v["published"] == true { "published" } else { "" };
                vec![
                    text(v, "name"),
                    v["seq"].to_string(),
                    text(v, "user"),
                    when(v, "time"),
                    published.to_owned(),
                ]
            };
            show(args.json, &versions, &["NAME", "AFTER", "BY", "WHEN", ""], row);
        }
        ComposeCommand::Locks(args) => {
            let locks: Vec<Value> = server.get(&format!("/compositions/{}/locks", encode(&args.id)))?;
            let row = |l: &Value| {
                let seconds = l["since"].as_u64().unwrap_or(0) / 1000;
                vec![text(l, "unit"), text(l, "mode"), text(l, "user"), format!("{seconds} s")]
            };
            show(args.json, &locks, &["PART", "MODE", "BY", "FOR"], row);
        }
        ComposeCommand::Name(args) => {
            let path = format!("/compositions/{}/versions", encode(&args.id));
            send(&server, &path, &json!({"name": args.name}))?;
        }
        ComposeCommand::Publish(args) => {
            let path = format!("/compositions/{}/publish", encode(&args.id));
            send(&server, &path, &json!({"name": args.version}))?;
        }
        ComposeCommand::Remove(args) => server.delete(&format!("/compositions/{}", encode(&args.id)))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn send(server: &Server, path: &str, body: &Value) -> Result<(), String> {
    let _: Value = server.send("POST", path, JSON, body)?;
    Ok(())
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn when(value: &Value, key: &str) -> String {
    moment(value[key].as_i64().unwrap_or(0))
}

/// Prints a table, or JSON.
fn show(as_json: bool, values: &[Value], titles: &[&str], row: impl Fn(&Value) -> Vec<String>) {
    if as_json {
        return print(&format!("{}\n", Value::from(values)));
    }
    let titles = titles.iter().map(ToString::to_string).collect();
    let rows: Vec<Vec<String>> = std::iter::once(titles).chain(values.iter().map(row)).collect();
    let columns = rows.first().map_or(0, Vec::len);
    let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        print(&format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end()));
    }
}

/// What a command names, as a composition: one that it is, or that an ordinary workflow becomes. A composition need not
/// be complete.
pub(crate) fn composition(source: &SourceArgs) -> Result<Result<Composition, ExitCode>, String> {
    let file = workflow_file(&source.workflow);
    if read_text(&file).is_ok_and(|text| is_composition_text(&text)) {
        return Ok(read_composition(&file).map_err(|(diags, sources)| {
            diags.iter().for_each(|d| eprintln!("{}", d.render(&sources)));
            ExitCode::from(EXIT_USAGE)
        }));
    }
    let (loaded, ..) = load_source(source)?;
    show_problems(&loaded);
    if loaded.diags.has_errors() {
        return Ok(Err(ExitCode::from(EXIT_USAGE)));
    }
    let text = loaded.sources.main().map(|s| s.text.clone()).unwrap_or_default();
    let documents = parse_yaml(&text, 0, &mut Diagnostics::default());
    let services = documents.first().and_then(|d| d.get("services")).map(Node::to_value).unwrap_or_default();
    adopt(&loaded, services).map(Ok).ok_or_else(|| "only workflows can become compositions".to_owned())
}

fn import(args: &ComposeImportArgs, server: &Server) -> Outcome {
    let composition = match composition(&args.source)? {
        Ok(composition) => composition,
        Err(code) => return Ok(code),
    };
    let path = std::path::absolute(&args.source.workflow).map_err(|e| e.to_string())?;
    let stem = |p: &std::path::Path| p.file_stem().map(|s| s.to_string_lossy().into_owned());
    let named = match stem(&path).filter(|_| !path.is_dir()) {
        Some(name) if name != "workflow" => Some(name),
        Some(_) => path.parent().and_then(stem),
        None => path.file_name().map(|n| n.to_string_lossy().into_owned()),
    };
    let id = args.id.clone().or(named).unwrap_or_default();
    server.put(&format!("/compositions/{}", encode(&id)), write(&composition).as_bytes())?;
    print(&format!("{id}\n"));
    Ok(ExitCode::SUCCESS)
}

fn export(args: &ComposeExportArgs, server: &Server) -> Result<(), String> {
    let version = args.version.as_ref().map(|v| format!("&version={}", encode(v))).unwrap_or_default();
    let path = format!("/compositions/{}?form={}{version}", encode(&args.id), args.to.name());
    let mut text = String::new();
    server.stream(&path)?.read_to_string(&mut text).map_err(|e| e.to_string())?;
    write_to(args.output.as_deref(), |out| out.write_all(text.as_bytes()))
}

fn log(args: &ComposeLogArgs, server: &Server) -> Result<(), String> {
    let what = if args.locks { "lock-events" } else { "operations" };
    let path = format!("/compositions/{}/{what}?after={}&limit={}", encode(&args.id), args.after, args.limit);
    let entries: Vec<Value> = server.get(&path)?;
    for entry in &entries {
        let line = if args.json { entry.to_string() } else { describe(entry, args.locks) };
        print(&format!("{line}\n"));
    }
    Ok(())
}

/// An entry of a log in a line.
fn describe(entry: &Value, locks: bool) -> String {
    let who = format!("{}  {}", when(entry, "time"), text(entry, "user"));
    if locks {
        let number = entry["number"].as_u64().map(|n| format!(" #{n}")).unwrap_or_default();
        return format!(
            "{who}  {} {} {}{number}",
            text(entry, "what"),
            text(entry, "mode"),
            text(entry, "unit")
        );
    }
    let change = |c: &Value| {
        let at =
            [&c["workflow"], &c["id"]].into_iter().filter_map(Value::as_str).collect::<Vec<_>>().join("/");
        format!("{} {at}", text(c, "change"))
    };
    let changes: Vec<String> = entry["changes"].as_array().into_iter().flatten().map(change).collect();
    let note = text(entry, "note");
    let note = if note.is_empty() { note } else { format!(" ({note})") };
    format!("{:>6}  {who}  {}{note}", entry["seq"], changes.join(", "))
}
