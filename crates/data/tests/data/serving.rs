//! A server that answers what is right, and nothing else.

use super::{Machine, content};
use catena_data::{Artifact, ContentId, ServeOptions};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Says something to a server and returns everything it says until it ends the connection.
fn say(machine: &Machine, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(machine.server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // It may have refused before everything was said.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn get(machine: &Machine, path: &str, headers: &str) -> (u16, String, Vec<u8>) {
    ask(machine, "GET", path, headers, b"")
}

fn ask(machine: &Machine, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n").into_bytes();
    request.extend_from_slice(body);
    split(&say(machine, &request))
}

fn split(answer: &[u8]) -> (u16, String, Vec<u8>) {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("an answer has a head");
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head, answer[end + 4..].to_vec())
}

#[test]
fn objects_are_served_whole_and_in_parts() {
    let bytes = content(1, 100_000);
    let (machine, artifact) = Machine::holding(&bytes);
    let path = format!("/data/{}", artifact.id());
    let (status, head, body) = get(&machine, &path, "");
    assert_eq!((status, body.as_slice()), (200, &bytes[..]));
    assert!(head.contains(&format!("ETag: \"{}\"", artifact.id())) && head.contains("Accept-Ranges: bytes"));
    for (range, status, expected, said) in [
        ("bytes=0-0", 206, &bytes[..1], "bytes 0-0/100000"),
        ("bytes=99990-", 206, &bytes[99_990..], "bytes 99990-99999/100000"),
        ("bytes=-7", 206, &bytes[99_993..], "bytes 99993-99999/100000"),
        ("bytes=100000-", 416, &[][..], "bytes */100000"),
        ("bytes=5-1", 200, &bytes[..], ""),
    ] {
        let (got, head, body) = get(&machine, &path, &format!("Range: {range}\r\n"));
        assert_eq!((got, body.as_slice()), (status, expected), "{range}");
        assert!(head.contains(said), "{head}");
    }
    let (status, head, body) = ask(&machine, "HEAD", &path, "", b"");
    assert_eq!((status, body.len()), (200, 0));
    assert!(head.contains("Content-Length: 100000"));
    let known = format!("If-None-Match: \"{}\"\r\n", artifact.id());
    assert_eq!(get(&machine, &path, &known).0, 304);
    let other = "Range: bytes=0-0\r\nIf-Range: \"something else\"\r\n";
    assert_eq!(get(&machine, &path, other).0, 200);
}

#[test]
fn several_requests_share_a_connection_also_without_waiting() {
    let (machine, artifact) = Machine::holding(b"hello");
    let one = format!("GET /data/{} HTTP/1.1\r\nHost: x\r\n\r\n", artifact.id());
    let none = "GET /data/none HTTP/1.1\r\nHost: x\r\n\r\n";
    let text = String::from_utf8(say(&machine, format!("{one}{none}{one}").as_bytes())).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2);
    assert_eq!(text.matches("HTTP/1.1 404 Not Found").count(), 1);
    assert!(text.ends_with("hello"));
}

#[test]
fn no_path_leads_out_of_the_holdings() {
    let (machine, artifact) = Machine::holding(b"hello");
    let id = artifact.id().to_string();
    for path in [
        "/",
        "/data",
        "/data/",
        "/data/../index",
        "/data/..%2findex",
        "/data/%2e%2e/index",
        "/data//etc/passwd",
        "/data/../../../../etc/passwd",
        "/etc/passwd",
        &format!("/data/{}", id.to_uppercase()),
        &format!("/data/{id}/"),
        &format!("/data/{}/../{id}", &id[..2]),
        &format!("/data/{id}?x=1"),
        &format!("/data/{id}/outline/x"),
    ] {
        let (status, _, _) = get(&machine, path, "");
        assert!(matches!(status, 404 | 405), "{path}: {status}");
    }
    assert_eq!(ask(&machine, "POST", &format!("/data/{id}"), "", b"").0, 405);
    assert_eq!(get(&machine, "/bundle", "").0, 405);
}

#[test]
fn what_is_malformed_is_refused_and_ends_the_connection() {
    let (machine, artifact) = Machine::holding(b"hello");
    let good = format!("GET /data/{} HTTP/1.1\r\nHost: x\r\n\r\n", artifact.id());
    for (bad, status) in [
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.0\r\nHost: x\r\n\r\n".to_owned(), 505),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("POST /bundle HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), 501),
        ("GET / HTTP/1.1\r\nHost: x".to_owned(), 400),
    ] {
        let answer =
            say(&machine, format!("{bad}{}", if bad.ends_with('\n') { &good } else { "" }).as_bytes());
        let (got, _, rest) = split(&answer);
        assert_eq!(got, status, "{bad:?}");
        assert!(!rest.ends_with(b"hello"), "what follows is not answered");
    }
    assert!(say(&machine, &[0xff; 100]).starts_with(b"HTTP/1.1 400"));
    assert_eq!(get(&machine, &format!("/data/{}", artifact.id()), "").0, 200, "others are still served");
}

#[test]
fn a_body_where_none_belongs_is_not_taken_for_a_request() {
    let (machine, artifact) = Machine::holding(b"hello");
    let hidden = format!("GET /data/{} HTTP/1.1\r\nHost: x\r\n\r\n", artifact.id());
    let length = hidden.len();
    let request = format!("GET /data/none HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{hidden}");
    let answer = String::from_utf8(say(&machine, request.as_bytes())).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && !answer.contains("hello"), "{answer}");
}

#[test]
fn a_huge_head_is_refused() {
    let machine = Machine::new();
    let (status, _, _) = get(&machine, "/", &format!("X: {}\r\n", "x".repeat(20_000)));
    assert_eq!(status, 431);
    let endless = [b"GET / HTTP/1.1\r\nHost: x\r\nX: ".to_vec(), vec![b'a'; 1 << 20]].concat();
    assert_eq!(split(&say(&machine, &endless)).0, 431);
}

#[test]
fn a_slow_client_is_not_waited_for() {
    let options = ServeOptions { patience: Duration::from_millis(200), ..ServeOptions::default() };
    let machine = Machine::with(options);
    let mut slow = TcpStream::connect(machine.server.address()).unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    let mut silent = TcpStream::connect(machine.server.address()).unwrap();
    assert_eq!(silent.read(&mut [0; 10]).unwrap(), 0, "who says nothing is left without a word");
}

#[test]
fn a_client_that_takes_nothing_is_left() {
    let options =
        ServeOptions { patience: Duration::from_millis(200), connections: 1, ..ServeOptions::default() };
    let machine = Machine::with(options);
    let path = machine.path("large");
    std::fs::write(&path, content(1, 64 << 20)).unwrap();
    let (artifact, _pin) = machine.holdings.put(&path, catena_data::Put::Link).unwrap();
    let mut lazy = TcpStream::connect(machine.server.address()).unwrap();
    write!(lazy, "GET /data/{} HTTP/1.1\r\nHost: x\r\n\r\n", artifact.id()).unwrap();
    // There is one place only, and it is free again soon.
    let mut status = 0;
    for _ in 0..1000 {
        status = get(&machine, "/data/none", "").0;
        if status == 404 {
            break;
        }
        assert_eq!(status, 503);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(status, 404);
}

#[test]
fn many_small_objects_come_in_one_answer() {
    let machine = Machine::new();
    let (a, _) = machine.holdings.put_bytes(b"first").unwrap();
    let (b, _) = machine.holdings.put_bytes(b"").unwrap();
    let (large, _) = machine.holdings.put_bytes(&content(1, 2 << 20)).unwrap();
    let missing = ContentId::of(b"missing");
    let body: Vec<u8> = [a.id, missing, b.id, large.id].iter().flat_map(|i| *i.as_bytes()).collect();
    let length = format!("Content-Length: {}\r\n", body.len());
    let (status, _, answer) = ask(&machine, "POST", "/bundle", &length, &body);
    assert_eq!(status, 200);
    let mut expected = [&[1][..], &5_u64.to_le_bytes(), b"first"].concat();
    expected.extend_from_slice(&[0; 9]);
    expected.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend_from_slice(&[0; 9]);
    assert_eq!(answer, expected, "what is missing or too large is said to be absent");
    assert_eq!(ask(&machine, "POST", "/bundle", "Content-Length: 31\r\n", &[0; 31]).0, 400);
    assert_eq!(ask(&machine, "POST", "/bundle", "Content-Length: 99999999\r\n", b"").0, 413);
    assert_eq!(ask(&machine, "POST", "/bundle", "", b"").0, 200);
}

#[test]
fn only_who_knows_the_token_is_answered() {
    let machine = Machine::with(ServeOptions { token: Some("secret".into()), ..ServeOptions::default() });
    let (file, _) = machine.holdings.put_bytes(b"hello").unwrap();
    let path = format!("/data/{}", file.id);
    for headers in [
        "",
        "Authorization: Bearer wrong\r\n",
        "Authorization: Basic secret\r\n",
        "Authorization: secret\r\n",
    ] {
        assert_eq!(get(&machine, &path, headers).0, 401, "{headers}");
        assert_eq!(get(&machine, "/data/none", headers).0, 401, "nor told what is here");
    }
    assert_eq!(get(&machine, &path, "Authorization: Bearer secret\r\n").2, b"hello");
}

#[test]
fn what_was_changed_on_disk_is_not_served() {
    use std::os::unix::fs::PermissionsExt;
    let (machine, artifact) = Machine::holding(b"hello");
    let object = machine.object(&artifact);
    std::fs::set_permissions(&object, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(&object, b"HELLO").unwrap();
    assert_eq!(get(&machine, &format!("/data/{}", artifact.id()), "").0, 404);
    assert!(!machine.holdings.has(&artifact.id()));
    assert!(matches!(artifact, Artifact::File(_)));
}

#[test]
fn a_server_that_is_dropped_lets_go_of_its_clients_and_its_port() {
    let machine = Machine::new();
    let address = machine.server.address();
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"GET /data/none HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).unwrap();
    drop(machine);
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest);
    assert!(TcpStream::connect(address).is_err());
}
