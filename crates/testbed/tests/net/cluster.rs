//! Clusters on hosts. What Catena does is none of their business: a stand-in shows where it runs and whom it reaches.

use catena_testbed::{AgentStart, Cluster, Net, Rate, wait_until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// Makes this program the stand-in.
pub(crate) const STAND_IN: &str = "CATENA_TEST_STAND_IN";

/// A program that is this one, as the stand-in.
fn program() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("catena");
    let own = std::env::current_exe().unwrap();
    std::fs::write(&file, format!("#!/bin/sh\n{STAND_IN}=1 exec '{}' \"$@\"\n", own.display())).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    (directory, file)
}

/// A server that knows who has joined, agents that join, and a command that tells who has.
pub(crate) fn stand_in() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str| arguments.iter().skip_while(|a| *a != flag).nth(1).cloned().unwrap_or_default();
    let config = std::fs::read_to_string(after("--config")).unwrap_or_default();
    let setting = |start: &str| {
        let line = config.lines().find_map(|l| l.strip_prefix(start)).unwrap_or_default();
        line.split(['@', '/', '\'']).find_map(|w| w.parse::<SocketAddr>().ok())
    };
    match arguments[0].as_str() {
        "serve" => serve(setting("http: ").unwrap()),
        "agent" => {
            let (store, bus) = (setting("store: ").unwrap(), setting("bus: ").unwrap());
            let mut hello = String::new();
            BufReader::new(TcpStream::connect(bus).unwrap()).read_line(&mut hello).unwrap();
            assert!(hello.starts_with("INFO "), "{hello}");
            drop(TcpStream::connect(store).unwrap());
            let mut server = SocketAddr::new(bus.ip(), setting("http: ").unwrap().port());
            if let Ok(url) = after("--server").trim_start_matches("http://").parse() {
                server = url;
            }
            let slow = std::env::var("CATENA_TEST_SLOW").unwrap_or_default();
            println!("slow: {slow}, state: {}", after("--state"));
            let mut joined = TcpStream::connect(server).unwrap();
            writeln!(joined, "{} from {}", after("--name"), joined.local_addr().unwrap().ip()).unwrap();
            let _ = joined.read(&mut [0; 1]);
        }
        _ => {
            let server = std::env::var("CATENA_SERVER").unwrap();
            print!("{}", agents(&server));
        }
    }
}

fn serve(address: SocketAddr) {
    let mut joined = Vec::new();
    for connection in TcpListener::bind(address).unwrap().incoming() {
        let mut line = String::new();
        let mut connection = connection.unwrap();
        BufReader::new(&connection).read_line(&mut line).unwrap();
        if line == "agents\n" {
            for (agent, _) in &joined {
                write!(connection, "\"incarnation\" {agent}").unwrap();
            }
        } else {
            joined.push((line, connection));
        }
    }
}

fn agents(url: &str) -> String {
    let mut connection = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    connection.write_all(b"agents\n").unwrap();
    let mut list = String::new();
    connection.read_to_string(&mut list).unwrap();
    list
}

pub(crate) fn a_cluster_is_spread_over_hosts() {
    let (_directory, program) = program();
    let net = Net::start(&["home", "a", "b"], Some(Rate::megabits(100))).unwrap();
    let addresses: Vec<_> = net.hosts().iter().map(|h| h.address()).collect();
    let mut cluster = Cluster::start_on(net, "home", &program, "look: 1s\n").unwrap();
    cluster.serve("main", "http,controller,scheduler", &[]).unwrap();
    cluster.wait_for_agents(0).unwrap();
    let server = cluster.url_for_hosts();
    cluster.agent_on("a1", "a", &["red"], &["--server", &server]).unwrap();
    let slow =
        AgentStart { on: Some("b"), environment: &[("CATENA_TEST_SLOW", "10")], ..AgentStart::default() };
    cluster.agent_with("b1", slow).unwrap();
    cluster.agent("c1", &[], &[]).unwrap();
    cluster.wait_for_agents(3).unwrap();
    let line = |n: usize, name: &str| format!("\"incarnation\" {name} from {}", addresses[n]);
    let expected = [line(1, "a1"), line(2, "b1"), line(0, "c1")];
    // The machine sees what the servers see.
    for list in [agents(&cluster.url()), cluster.ask(&["agents"]).unwrap()] {
        let mut list: Vec<&str> = list.lines().collect();
        list.sort_unstable();
        assert_eq!(list, expected);
    }
    let states = cluster.path().join("states");
    let log = cluster.instance("b1").unwrap().log();
    assert_eq!(log.trim(), format!("slow: 10, state: {}", states.join("b1").display()));
    let log = cluster.instance("a1").unwrap().log();
    assert_eq!(log.trim(), format!("slow: , state: {}", states.join("a1").display()));
    assert!(cluster.agent_on("d1", "nowhere", &[], &[]).is_err());

    // Servers come back where they were.
    cluster.postgres.create_database("more").unwrap();
    cluster.postgres.kill();
    cluster.nats.kill();
    cluster.postgres.start_again().unwrap();
    cluster.nats.start_again().unwrap();
    // Everything that ran on a host is gone with it, and comes back with it.
    cluster.host("b").unwrap().kill_all();
    assert_eq!(cluster.instance("b1").unwrap().wait(Duration::from_secs(20)), Some(-1));
    cluster.start_again("b1").unwrap();
    cluster.wait_for_agents(4).unwrap();

    let processes = ["main", "a1", "b1", "c1"].map(|n| cluster.instance(n).unwrap().pid().unwrap());
    let namespaces = cluster.net().unwrap().hosts().iter().map(|h| crate::path(h)).collect::<Vec<_>>();
    drop(cluster);
    assert!(!processes.iter().any(|p| crate::is_running(*p)));
    assert!(!namespaces.iter().any(|p| p.exists()));
}

pub(crate) fn connections_through_the_machine_end_with_the_cluster() {
    let (_directory, program) = program();
    let net = Net::start(&["home"], None).unwrap();
    let mut cluster = Cluster::start_on(net, "home", &program, "").unwrap();
    let address = cluster.url().trim_start_matches("http://").to_owned();
    // Nobody is there yet.
    let mut early = TcpStream::connect(&address).unwrap();
    assert!(matches!(early.read(&mut [0; 1]), Ok(0) | Err(_)));
    cluster.serve("main", "http", &[]).unwrap();
    cluster.wait_for_agents(0).unwrap();
    let mut idle = TcpStream::connect(&address).unwrap();
    idle.write_all(b"somebody\n").unwrap();
    wait_until(Duration::from_secs(20), || agents(&cluster.url()).contains("somebody").then_some(()))
        .unwrap();
    drop(cluster);
    assert!(matches!(idle.read(&mut [0; 1]), Ok(0) | Err(_)));
    assert!(TcpStream::connect(&address).is_err());
}
