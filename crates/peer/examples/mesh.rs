//! What a group costs: starts so many peers as processes of their own, connects each with each, and measures.
//!
//! ```text
//! cargo run --release -p catena-peer --example mesh -- 50
//! ```

use catena_peer::wire::{Event, Events, GroupKey, Identity, PeerId, Settings, Wire};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const MESSAGES: usize = 200_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match arguments.first().map(String::as_str) {
        Some("node") => runtime.block_on(node()),
        Some(peers) => group(peers.parse().expect("how many peers?")),
        None => group(50),
    }
}

/// Resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn start() -> (Wire, Events) {
    let key = GroupKey::from_secret(b"only for measuring").unwrap();
    Wire::start(&Identity::fleeting(), key, Settings::member(["127.0.0.1:0".parse().unwrap()])).unwrap()
}

async fn address(events: &mut Events) -> SocketAddr {
    match events.next().await {
        Some(Event::Listening(address)) => address,
        event => panic!("{event:?}"),
    }
}

/// One peer: is told what to do line by line.
async fn node() {
    let (wire, mut events) = start();
    println!("{} {}", wire.id(), address(&mut events).await);
    let (lines, mut commands) = tokio::sync::mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let _ = lines.blocking_send(line);
        }
    });
    let mut others: Vec<PeerId> = Vec::new();
    let mut expected = usize::MAX;
    loop {
        tokio::select! {
            command = commands.recv() => {
                let Some(command) = command else { return };
                let words: Vec<_> = command.split(' ').collect();
                match words[..] {
                    ["know", peer, address] => {
                        others.push(peer.parse().unwrap());
                        wire.know(others[others.len() - 1], [address.parse().unwrap()]);
                    }
                    ["send", length] => {
                        for other in &others {
                            wire.send(*other, vec![0; length.parse().unwrap()]).unwrap();
                        }
                        println!("sent");
                    }
                    ["connected", count] => {
                        expected = count.parse().unwrap();
                    }
                    ["resident"] => println!("{}", resident()),
                    _ => panic!("{command}"),
                }
            }
            event = events.next() => if event.is_none() { return },
        }
        if wire.connected().len() >= expected {
            println!("connected");
            expected = usize::MAX;
        }
    }
}

struct Node {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Node {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command.arg("node").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, to, from }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.to, "{line}").unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

fn group(peers: usize) {
    let mut nodes: Vec<_> = (0..peers).map(|_| Node::start()).collect();
    let names: Vec<_> = nodes.iter_mut().map(Node::hear).collect();
    report(&mut nodes, "alone");
    let started = Instant::now();
    for (n, node) in nodes.iter_mut().enumerate() {
        for (_, name) in names.iter().enumerate().filter(|(other, _)| *other != n) {
            node.say(&format!("know {name}"));
        }
        node.say("send 100");
        node.hear();
        node.say(&format!("connected {}", peers - 1));
    }
    for node in &mut nodes {
        node.hear();
    }
    println!("{peers} peers, each connected with each after {:.1} s", started.elapsed().as_secs_f32());
    // Double connections of those who called each other at once are closed after a while.
    std::thread::sleep(Duration::from_secs(25));
    report(&mut nodes, "connected, idle");
    for _ in 0..20 {
        for node in &mut nodes {
            node.say("send 100");
            node.hear();
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    report(&mut nodes, "after 20 small messages to each");
    for node in &mut nodes {
        node.say("send 100000");
        node.hear();
    }
    std::thread::sleep(Duration::from_secs(5));
    report(&mut nodes, "after 100 kB to each");
    for node in &mut nodes {
        node.child.kill().unwrap();
        node.child.wait().unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(throughput());
}

fn report(nodes: &mut [Node], when: &str) {
    let mut figures: Vec<u64> = nodes
        .iter_mut()
        .map(|node| {
            node.say("resident");
            node.hear().parse().unwrap()
        })
        .collect();
    figures.sort_unstable();
    let (least, median, most) = (figures[0], figures[figures.len() / 2], figures[figures.len() - 1]);
    println!("{when}: resident {least} / {median} / {most} KiB (least, median, most)");
}

/// Two peers in one thread: one sends, one counts.
async fn throughput() {
    for length in [100, 1000, 10_000] {
        let ((a, mut from_a), (b, mut from_b)) = (start(), start());
        address(&mut from_a).await;
        a.know(b.id(), [address(&mut from_b).await]);
        let (started, mut received, mut sent) = (Instant::now(), 0, 0);
        while received < MESSAGES {
            // Never more under way than is kept.
            while sent < MESSAGES && sent - received < 300 {
                a.send(b.id(), vec![0; length]).unwrap();
                sent += 1;
            }
            while let Some(event) = from_b.next_now() {
                received += usize::from(matches!(event, Event::Message { .. }));
            }
            tokio::task::yield_now().await;
        }
        let per_second = MESSAGES as f64 / started.elapsed().as_secs_f64();
        println!(
            "{length} bytes: {per_second:.0} messages/s, {:.1} MB/s, both ends in one thread",
            per_second * length as f64 / 1e6
        );
    }
}
