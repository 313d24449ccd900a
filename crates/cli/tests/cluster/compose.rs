//! People who edit one composition together over real connections, and instances that die meanwhile.

use crate::helper::{QUICK, start, submit, wait_for_end};
use catena_testbed::{Cluster, free_port, wait_until};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

const PATIENCE: Duration = Duration::from_secs(20);

const COMPOSITION: &str = "composition: 1
name: Sorted
root: main
workflows:
  align: {name: Align, inputs: {reads: file}, outputs: {bam: file}, task: {run: 'align {reads} > {bam}'}}
  sort: {name: Sort, inputs: {bam: file}, outputs: {sorted: file}, task: {run: 'sort {bam} > {sorted}'}}
  main:
    inputs: {reads: file}
    outputs: {sorted: file}
    graph:
      nodes: {a: {use: align}, s: {use: sort}}
      links: {l1: reads -> a.reads, l2: a.bam -> s.bam, l3: s.sorted -> sorted}
";

/// Somebody with a window open.
struct Window {
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    session: u64,
    id: u64,
    events: Vec<Value>,
}

impl Window {
    /// Opens a composition, and comes back to a session if one is given.
    fn open(url: &str, composition: &str, token: &str, session: Option<u64>) -> Option<(Self, Value)> {
        let query = session.map(|s| format!("?session={s}")).unwrap_or_default();
        let address = format!("{}/compositions/{composition}/live{query}", url.replace("http", "ws"));
        let mut request = address.into_client_request().unwrap();
        request.headers_mut().insert("Authorization", format!("Bearer {token}").parse().unwrap());
        let (socket, _) = tungstenite::connect(request).ok()?;
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        let mut window = Self { socket, session: 0, id: 0, events: Vec::new() };
        let joined = window.answer(0)?;
        let state = joined["ok"]["state"].clone();
        window.session = state["session"].as_u64()?;
        Some((window, state))
    }

    fn hear(&mut self) -> Option<Value> {
        loop {
            match self.socket.read().ok()? {
                Message::Text(text) => return serde_json::from_str(&text).ok(),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    /// Waits for the answer to a request; events are kept.
    fn answer(&mut self, id: u64) -> Option<Value> {
        loop {
            let said = self.hear()?;
            if said["re"] == id {
                return Some(said);
            }
            self.events.push(said);
        }
    }

    fn say(&mut self, text: &str) {
        self.socket.send(Message::Text(text.into())).unwrap();
    }

    fn try_ask(&mut self, mut ask: Value) -> Option<Value> {
        self.id += 1;
        ask["id"] = self.id.into();
        self.socket.send(Message::Text(ask.to_string().into())).ok()?;
        self.answer(self.id)
    }

    fn ask(&mut self, ask: Value) -> Value {
        self.try_ask(ask).expect("an answer")
    }

    /// Waits for an event of a kind.
    fn event(&mut self, kind: &str) -> Value {
        loop {
            if let Some(found) = self.events.iter().position(|e| e["event"] == kind) {
                return self.events.remove(found);
            }
            let said = self.hear().unwrap_or_else(|| panic!("no {kind}: {:?}", self.events));
            self.events.push(said);
        }
    }
}

fn lock(unit: &str, wait: bool) -> Value {
    json!({"type": "lock", "wants": [{"unit": unit, "mode": "X"}], "wait": wait})
}

fn run(workflow: &str, script: &str, op: u64) -> Value {
    let change = json!({"change": "set-task", "workflow": workflow, "task": {"action": {"run": script}}});
    json!({"type": "do", "op": op, "changes": [change]})
}

fn token(cluster: &Cluster, name: &str, role: &str) -> String {
    let config = cluster.path().join("catena.yaml");
    let args = ["token", "create", name, "--role", role, "--config", config.to_str().unwrap()];
    cluster.ask(&args).unwrap().trim().to_owned()
}

fn with_composition(cluster: &Cluster) {
    std::fs::write(cluster.path().join("sorted.yaml"), COMPOSITION).unwrap();
    let file = cluster.path().join("sorted.yaml");
    let imported = wait_until(PATIENCE, || cluster.ask(&["compose", "import", file.to_str()?]));
    assert_eq!(imported.as_deref().map(str::trim), Some("sorted"), "{}", cluster.logs());
}

#[test]
fn two_people_edit_one_composition_and_nobody_disturbs_them() {
    let mut cluster = start(QUICK);
    cluster.serve("main", "http", &[]).unwrap();
    with_composition(&cluster);
    let tokens =
        [("ann", "editor"), ("bob", "editor"), ("eve", "viewer")].map(|(n, r)| token(&cluster, n, r));
    let url = cluster.url();
    let (mut ann, state) = Window::open(&url, "sorted", &tokens[0], None).unwrap();
    assert_eq!(state["composition"]["name"], "Sorted");
    let (mut bob, _) = Window::open(&url, "sorted", &tokens[1], None).unwrap();
    let (mut eve, _) = Window::open(&url, "sorted", &tokens[2], None).unwrap();
    assert_eq!(ann.event("joined")["user"], "bob");

    let number = ann.ask(lock("workflows/align/task", false))["ok"]["locks"]["workflows/align/task"].clone();
    assert!(number.is_u64());
    let seen = bob.event("locked");
    assert_eq!((seen["user"].as_str(), seen["unit"].as_str()), (Some("ann"), Some("workflows/align/task")));
    let refused = bob.ask(lock("workflows/align/task", false));
    assert!(
        refused["error"]["message"].as_str().unwrap().starts_with("ann is editing the task of *Align*"),
        "{refused}"
    );
    assert_eq!(bob.ask(lock("workflows/align/task", true))["ok"]["waits"]["position"], 1);

    // Whatever others send, it changes nothing and concerns nobody else.
    eve.say("this is no request");
    assert_eq!(eve.answer(0).unwrap()["error"]["code"], "malformed");
    eve.socket.send(Message::Binary(vec![0, 159, 146, 150].into())).unwrap();
    assert_eq!(eve.answer(0).unwrap()["error"]["code"], "malformed");
    eve.say(&json!({"id": 1, "type": "point", "cursor": "x".repeat(300 << 10)}).to_string());
    assert_eq!(eve.answer(0).unwrap()["error"]["code"], "too-large");
    assert_eq!(eve.ask(run("align", "eve was here", 1))["error"]["code"], "not-allowed");
    bob.id += 1;
    let replayed = json!({"id": 1, "type": "renew"});
    bob.say(&replayed.to_string());
    assert_eq!(bob.answer(1).unwrap()["error"]["code"], "replayed");
    let mut stale = run("align", "stale", 9);
    stale["tokens"] = json!({"workflows/align/task": 1});
    assert_eq!(ann.ask(stale)["error"]["code"], "stale-token");

    let mut good = run("align", "new", 1);
    good["tokens"] = json!({"workflows/align/task": number});
    assert_eq!(ann.ask(good.clone())["ok"]["seq"], 1);
    assert_eq!(bob.event("changed")["user"], "ann");
    assert_eq!(ann.ask(good)["error"]["code"], "replayed", "an operation is done once");
    ann.ask(json!({"type": "release", "units": ["workflows/align/task"]}));
    assert_eq!(bob.event("locked")["user"], "bob", "bob has waited for it");
    assert_eq!(bob.ask(run("align", "newer", 1))["ok"]["seq"], 2);
    let undone = ann.ask(json!({"type": "undo"}));
    assert!(undone["error"]["message"].as_str().unwrap().contains("bob"), "{undone}");

    // Commands and requests go the same way as windows.
    assert!(cluster.ask(&["compose", "locks", "sorted"]).unwrap().contains("bob"));
    let file = cluster.path().join("sorted.yaml");
    let import = cluster.command(&["compose", "import", file.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&import.stderr).into_owned();
    assert!(!import.status.success() && said.contains("bob is editing the task of *Align*"), "{said}");
    bob.ask(json!({"type": "release", "units": ["workflows/align/task"]}));
    assert!(cluster.ask(&["compose", "name", "sorted", "first"]).is_some());
    assert!(cluster.ask(&["compose", "publish", "sorted", "first"]).is_some());
    assert!(cluster.ask(&["compose", "versions", "sorted"]).unwrap().contains("published"));
    let exported = cluster.ask(&["compose", "export", "sorted"]).unwrap();
    assert!(exported.contains("run: newer"), "{exported}");
    assert!(cluster.ask(&["compose", "import", file.to_str().unwrap()]).is_some());
    assert_eq!(bob.event("changed")["note"], "imported");
    let log = cluster.ask(&["compose", "log", "sorted"]).unwrap();
    assert!(log.contains("set-task align") && log.contains("replace") && log.contains("imported"), "{log}");
    let locks = || cluster.ask(&["compose", "log", "sorted", "--locks"]).filter(|l| l.contains("refuse"));
    let locks = wait_until(PATIENCE, locks).unwrap();
    assert!(locks.contains("grant X workflows/align/task") && locks.contains("queue"), "{locks}");
}

#[test]
fn what_was_acknowledged_survives_the_death_of_the_instance_that_had_it() {
    let mut cluster = start(QUICK);
    cluster.serve("one", "http", &[]).unwrap();
    with_composition(&cluster);
    let port = free_port();
    let other = format!("http://127.0.0.1:{port}");
    cluster.serve("two", "http", &["--listen", &format!("127.0.0.1:{port}")]).unwrap();
    let (ann_token, bob_token) = (token(&cluster, "ann", "editor"), token(&cluster, "bob", "editor"));
    // Ann is connected to the instance that has the composition, Bob to the other one.
    let (mut ann, _) = Window::open(&cluster.url(), "sorted", &ann_token, None).unwrap();
    let (mut bob, _) = wait_until(PATIENCE, || Window::open(&other, "sorted", &bob_token, None)).unwrap();
    assert_eq!(ann.event("joined")["user"], "bob");
    let session = ann.session;
    let mut acknowledged = 0;
    for op in 1..=20 {
        acknowledged = ann.ask(run("align", &format!("ann {op}"), op))["ok"]["seq"].as_u64().unwrap();
        assert_eq!(bob.event("changed")["seq"], acknowledged);
        bob.ask(run("sort", &format!("bob {op}"), op));
    }
    acknowledged = acknowledged.max(40);
    bob.ask(lock("workflows/sort/task", false));
    assert!(cluster.kill("one"));
    let clock = Instant::now();
    // Bob's window stays open. He hears everything anew from whoever has the composition now.
    let state = loop {
        let said = bob.hear().expect("the other instance takes over");
        if said["re"] == 0 && said["ok"]["state"].is_object() {
            break said["ok"]["state"].clone();
        }
    };
    println!("taken over after {:?}", clock.elapsed());
    assert_eq!(state["seq"], acknowledged, "nothing is lost");
    assert_eq!(state["last_op"], 20);
    let (mut ann, state) =
        wait_until(PATIENCE, || Window::open(&other, "sorted", &ann_token, Some(session))).unwrap();
    assert_eq!((state["seq"].as_u64(), state["last_op"].as_u64()), (Some(acknowledged), Some(20)));
    let script =
        |state: &Value, w: &str| state["composition"]["workflows"][w]["body"]["action"]["run"].clone();
    assert_eq!((script(&state, "align"), script(&state, "sort")), (json!("ann 20"), json!("bob 20")));
    // One whose answer was lost with the instance says it again; it is not done twice.
    assert_eq!(ann.ask(run("align", "ann 20", 20))["error"]["code"], "replayed");
    assert_eq!(ann.ask(run("align", "ann 21", 21))["ok"]["seq"], acknowledged + 1);
    assert_eq!(bob.event("changed")["seq"], acknowledged + 1);
    // What can be undone is in the history.
    assert_eq!(bob.ask(json!({"type": "undo"}))["ok"]["seq"], acknowledged + 2);
}

#[test]
fn compositions_run_on_a_cluster() {
    let mut cluster = start(QUICK);
    cluster.serve("main", "http,controller,scheduler", &[]).unwrap();
    cluster.agent("a", &[], &[]).unwrap();
    cluster.wait_for_agents(1).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/composition");
    let run = submit(&cluster, example.to_str().unwrap());
    let end = wait_for_end(&cluster, run);
    assert_eq!(end["state"], "succeeded", "{end:#}\n{}", cluster.logs());
}
