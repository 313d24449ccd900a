//! Who may do what over HTTP, and what is refused.

use crate::small;
use catena_testbed::wait_until;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub(crate) fn call(method: &str, url: &str, token: Option<&str>, body: &str) -> (u16, String) {
    call_with(method, url, token, body, ("Content-Type", "application/json"))
}

fn call_with(
    method: &str,
    url: &str,
    token: Option<&str>,
    body: &str,
    header: (&str, &str),
) -> (u16, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let mut response = agent.run(request.header(header.0, header.1).body(body).unwrap()).unwrap();
    let status = response.status().as_u16();
    (status, response.body_mut().read_to_string().unwrap_or_default())
}

#[test]
fn nobody_without_a_good_token_gets_anywhere() {
    let cluster = small(0);
    let (status, text) = call("GET", &format!("{}/openapi.json", cluster.url()), None, "");
    assert_eq!(status, 200);
    let api: Value = serde_json::from_str(&text).unwrap();
    let create = |name: &str, role: &str| {
        let config = cluster.path().join("catena.yaml");
        let args = ["token", "create", name, "--role", role, "--config", config.to_str().unwrap()];
        cluster.ask(&args).unwrap().trim().to_owned()
    };
    let (viewer, agent) = (create("someone", "viewer"), create("worker", "agent"));
    let mut requests = 0;
    for (path, methods) in api["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let url = format!("{}{}", cluster.url(), path.replace("{id}", "1").replace("{chain}", "0"));
            if path == "/health" {
                continue;
            }
            requests += 1;
            assert_eq!(call(&method, &url, None, "{}").0, 401, "{method} {path}");
            assert_eq!(call(&method, &url, Some("nothing"), "{}").0, 401, "{method} {path}");
            // What only answers is for everybody.
            if method != "GET" && !matches!(path.as_str(), "/check" | "/simulate") {
                assert_eq!(call(&method, &url, Some(&viewer), "{}").0, 403, "{method} {path}");
            }
            if !path.ends_with("/visit") {
                assert_eq!(call(&method, &url, Some(&agent), "{}").0, 403, "{method} {path}");
            }
        }
    }
    assert!(requests > 20, "{requests}");
    let config = cluster.path().join("catena.yaml");
    cluster.ask(&["token", "revoke", "someone", "--config", config.to_str().unwrap()]).unwrap();
    assert_eq!(call("GET", &format!("{}/runs", cluster.url()), Some(&viewer), "").0, 401);
}

#[test]
fn requests_are_answered_and_mistakes_explained() {
    let cluster = small(1);
    let token = cluster.token().unwrap();
    let url = |path: &str| format!("{}{path}", cluster.url());
    let get = |path: &str| call("GET", &url(path), Some(&token), "");
    assert_eq!(call("GET", &url("/health"), None, "").0, 200);
    assert!(call("GET", &url("/docs"), None, "").1.contains("/runs/{id}/chains"));
    let workflow = "catena: 1\nname: first\nsteps:\n  a: {run: \"echo one; echo two >&2\"}\n";
    let (status, text) = call("POST", &url("/runs"), Some(&token), workflow);
    assert_eq!((status, text.as_str()), (201, "{\"run\":1}"));
    let over =
        || (serde_json::from_str::<Value>(&get("/runs/1").1).ok()?["state"] == "succeeded").then_some(());
    wait_until(Duration::from_secs(20), over).unwrap();
    assert_eq!(get("/runs/1/workflow").1, workflow);
    let chain: Value = serde_json::from_str(&get("/runs/1/chains/0").1).unwrap();
    assert_eq!((&chain["state"], &chain["tasks"][0]), (&"succeeded".into(), &"a".into()));
    assert_eq!(get("/runs/1/chains/0/log").1, "one\n");
    assert_eq!(get("/runs/1/chains/0/log?stream=err&follow=true").1, "two\n");
    let part = |range| call_with("GET", &url("/runs/1/chains/0/log"), Some(&token), "", ("Range", range));
    for (range, status, text) in [
        ("bytes=1-2", 206, "ne"),
        ("bytes=2-", 206, "e\n"),
        ("bytes=-3", 206, "ne\n"),
        ("bytes=0-99", 206, "one\n"),
    ] {
        assert_eq!(part(range), (status, text.to_owned()), "{range}");
    }
    assert_eq!(part("bytes=9-").0, 416, "there is no such part");
    assert!(get("/search?q=first+state:succeeded").1.contains("\"run\":1"));
    assert_eq!(get("/search?q=state:failed").1, "[]");
    let metrics = get("/metrics").1;
    assert!(
        metrics.contains("catena_runs{state=\"succeeded\"} 1") && metrics.contains("catena_agents 1"),
        "{metrics}"
    );
    assert!(get("/instances").1.contains("scheduler"));
    assert!(get("/runs/1/events").1.contains("\"event\":\"ended\""));
    // What pictures are drawn from.
    let board: Value = serde_json::from_str(&get("/runs/1/board").1).unwrap();
    assert_eq!((&board["steps"], &board["chains"]["state"]), (&json!(["a"]), &json!([3])));
    let since =
        format!("/runs/1/board?epoch={}&after={}", board["epoch"].as_str().unwrap(), board["version"]);
    let news: Value = serde_json::from_str(&get(&since).1).unwrap();
    assert_eq!(news["chains"]["chain"], json!([]), "nothing is new");
    let graph: Value = serde_json::from_str(&get("/runs/1/graph").1).unwrap();
    assert_eq!(graph["nodes"][0]["name"], "a");
    let path: Value = serde_json::from_str(&get("/runs/1/critical-path").1).unwrap();
    assert_eq!(path["links"][0]["tasks"], json!(["a"]));
    assert!(get("/runs/1/chains/0/why").1.contains("It has succeeded"));
    assert_eq!(get("/runs/1/chains/0/files/0/0/0").0, 404, "it has no arguments");
    let (status, text) = call("POST", &url("/check"), Some(&token), "catena: 1\nsteps:\n  a: {rum: x}\n");
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("\"valid\":false") && text.contains("\"line\":3"), "{text}");
    let again = "catena: 1\nname: first\nsteps:\n  a: {run: \"echo three\"}\n";
    assert_eq!(call("POST", &url("/runs/1/again"), Some(&token), again), (201, "{\"run\":2}".to_owned()));
    let over =
        || (serde_json::from_str::<Value>(&get("/runs/2").1).ok()?["state"] == "succeeded").then_some(());
    wait_until(Duration::from_secs(20), over).unwrap();
    assert_eq!(get("/runs/2/chains/0/log").1, "three\n");
    // Mistakes.
    let (status, text) = call("POST", &url("/runs"), Some(&token), "catena: 1\nsteps:\n  a: {rum: x}\n");
    assert_eq!(status, 422, "{text}");
    assert!(text.contains("did you mean") && text.contains("\"line\":3"), "{text}");
    assert_eq!(call("POST", &url("/runs"), Some(&token), "\u{0}{{{").0, 422);
    let submission = json!({"files": [["w.yaml", workflow]], "order": "oldest"}).to_string();
    let kind = ("Content-Type", "application/vnd.catena+json");
    let (status, text) = call_with("POST", &url("/runs"), Some(&token), &submission, kind);
    assert_eq!(status, 422, "{text}");
    assert!(text.contains("known are fifo, prio, auto"), "{text}");
    assert_eq!(get("/runs/77").0, 404);
    assert_eq!(get("/nothing").0, 404);
    assert_eq!(call("POST", &url("/runs/1/cancel"), Some(&token), "").0, 409);
    assert_eq!(call("PUT", &url("/runs/1/priority"), Some(&token), "{\"priority\": \"high\"}").0, 422);
    assert_eq!(get("/runs/x").0, 400);
}

/// Runs a command in a directory. Returns its exit code and what it says.
fn catena(directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    let output = command.args(arguments).current_dir(directory).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn nobody_listens_to_the_world_without_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| catena(dir.path(), arguments);
    let (code, said) = run(&["serve", "--listen", "0.0.0.0:0", "--set", "http.open=true"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("http.open"), "{said}");
}

#[test]
fn settings_are_checked_before_anything_is_started() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("catena.yaml"),
        "lease: 5s\nstore: postgres://localhost/x\nfleet: {setups: [{id: a, mox: 2}]}\n",
    )
    .unwrap();
    let run = |arguments: &[&str]| catena(dir.path(), arguments);
    let (code, said) = run(&["config", "check"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("catena.yaml:3:26: unknown key `mox`"), "{said}");
    std::fs::write(dir.path().join("catena.yaml"), "store: postgres://localhost/x\n").unwrap();
    assert!(run(&["serve"]).1.contains("set `bus`"));
    assert!(run(&["agent"]).1.contains("set `bus`") || run(&["agent"]).1.contains("needs the `bus`"));
    std::fs::write(dir.path().join("catena.yaml"), "lease: 5s\n").unwrap();
    assert_eq!(run(&["config", "check"]).0, Some(0));
}

/// Runs a small workflow on a cluster and returns its number.
fn run_through(cluster: &catena_testbed::Cluster, text: &str) -> i64 {
    std::fs::write(cluster.path().join("through.yaml"), text).unwrap();
    let run = crate::helper::submit(cluster, "through.yaml");
    crate::helper::wait_for_end(cluster, run);
    run
}

#[test]
fn files_of_a_run_are_shown_and_no_others() {
    let cluster = small(1);
    let token = cluster.token().unwrap();
    let secret = cluster.path().join("secret.txt");
    std::fs::write(&secret, "secret").unwrap();
    let text = format!(
        "catena: 1\ninputs: {{key: {0}}}\nsteps:\n  a: {{run: \"echo hello > {{out}}; ln -s {0} {{out}}.link\", out: x.txt}}\n  b: {{run: \"cat {{a.out}} {{key}} > {{out}}\", out: y.txt}}\nresults: {{y: \"{{b.out}}\"}}\n",
        secret.display()
    );
    let run = run_through(&cluster, &text);
    let get = |path: &str| call("GET", &format!("{}/runs/{run}{path}", cluster.url()), Some(&token), "");
    let chain: Value = serde_json::from_str(&get("/chains/0").1).unwrap();
    let tasks = chain["files"].as_array().unwrap();
    let mut shown = 0;
    for (t, task) in tasks.iter().enumerate() {
        for (a, argument) in task["arguments"].as_array().unwrap().iter().enumerate() {
            let (status, text) = get(&format!("/chains/0/files/{t}/{a}/0"));
            let is_secret = argument["values"][0] == secret.to_str().unwrap();
            assert_eq!(argument["files"], !is_secret, "{argument}");
            assert_eq!(status, if is_secret { 403 } else { 200 }, "{argument}: {text}");
            shown += u32::from(status == 200);
        }
    }
    assert!(shown >= 2, "{chain:#}");
    assert_eq!(get("/results/y/0").1, "hello\nsecret");
    let (status, text) = get("/results/y/0/provenance");
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("echo hello"), "{text}");
}

#[test]
fn a_run_that_is_paused_can_be_cancelled() {
    let cluster = small(0);
    let token = cluster.token().unwrap();
    let url = |path: &str| format!("{}{path}", cluster.url());
    let workflow = "catena: 1\nsteps:\n  a: {run: \"true\"}\n";
    assert_eq!(call("POST", &url("/runs"), Some(&token), workflow).0, 201);
    assert_eq!(call("POST", &url("/runs/1/pause"), Some(&token), "").0, 200);
    assert_eq!(call("POST", &url("/runs/1/cancel"), Some(&token), "").0, 200);
    let run = || serde_json::from_str::<Value>(&call("GET", &url("/runs/1"), Some(&token), "").1).ok();
    let over = || (run()?["state"] == "cancelled").then_some(());
    wait_until(Duration::from_secs(20), over).unwrap();
}

#[test]
fn the_workbench_knows_the_interface_as_it_is() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/openapi.json");
    let known = std::fs::read_to_string(file).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_catena")).args(["schema", "--http"]).output().unwrap();
    let is_same = known == String::from_utf8_lossy(&output.stdout);
    assert!(is_same, "the interface has changed: `cargo xtask web types` tells the workbench");
}
