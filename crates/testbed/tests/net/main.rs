//! Hosts on this machine: real namespaces, real links. Where there cannot be any, these cases are reported as ignored.

mod cluster;

use catena_testbed::{Host, Net, Rate, Server, wait_until};
use libtest_mimic::{Arguments, Trial};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Makes this program one that has a net and is killed.
const OWNER: &str = "CATENA_TEST_OWNER";

const CASES: [(&str, fn()); 12] = [
    ("hosts_reach_each_other_and_nobody_else", hosts_reach_each_other_and_nobody_else),
    ("a_link_carries_no_more_than_its_rate_in_either_direction", a_link_carries_no_more_than_its_rate),
    ("what_went_over_a_link_is_counted", what_went_over_a_link_is_counted),
    ("a_host_that_is_cut_off_comes_back", a_host_that_is_cut_off_comes_back),
    ("what_is_delayed_arrives_later", what_is_delayed_arrives_later),
    ("some_of_what_is_sent_gets_lost", some_of_what_is_sent_gets_lost),
    ("a_host_that_is_switched_off_runs_nothing", a_host_that_is_switched_off_runs_nothing),
    ("nothing_is_left_of_a_net", nothing_is_left_of_a_net),
    ("what_a_killed_process_leaves_is_removed", what_a_killed_process_leaves_is_removed),
    ("a_mistake_leaves_nothing", a_mistake_leaves_nothing),
    ("a_cluster_is_spread_over_hosts", cluster::a_cluster_is_spread_over_hosts),
    (
        "connections_through_the_machine_end_with_the_cluster",
        cluster::connections_through_the_machine_end_with_the_cluster,
    ),
];

fn main() {
    if let Some(directory) = std::env::var_os(OWNER) {
        return own_until_killed(&PathBuf::from(directory));
    }
    if std::env::var_os(cluster::STAND_IN).is_some() {
        return cluster::stand_in();
    }
    let arguments = Arguments::from_args();
    let possible = Net::is_possible().inspect_err(|reason| eprintln!("skipped: {reason}")).is_ok();
    let trial = |(name, case): (&str, fn())| {
        let run = move || {
            case();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!possible)
    };
    libtest_mimic::run(&arguments, CASES.into_iter().map(trial).collect()).exit();
}

/// Two ends of a connection between hosts.
fn connection(from: &Host, to: &Host) -> (TcpStream, TcpStream) {
    let listener = listen(to);
    let near = from.connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

fn listen(host: &Host) -> TcpListener {
    host.enter(|| TcpListener::bind((host.address(), 0))).unwrap().unwrap()
}

/// Sends so many bytes, and returns how long it takes until the last of them has arrived.
fn transfer((mut near, mut far): (TcpStream, TcpStream), bytes: u64) -> Duration {
    let start = Instant::now();
    let sender = std::thread::spawn(move || {
        std::io::copy(&mut std::io::repeat(7).take(bytes), &mut near).unwrap();
    });
    let received = std::io::copy(&mut far, &mut std::io::sink()).unwrap();
    sender.join().unwrap();
    assert_eq!(received, bytes);
    start.elapsed()
}

/// Where `ip` keeps the name of a host.
fn path(host: &Host) -> PathBuf {
    let [_, namespace, _] = host.prefix();
    PathBuf::from(namespace.to_str().unwrap().strip_prefix("--net=").unwrap())
}

fn is_running(process: u32) -> bool {
    // Whoever has ended, but whose parent has not noticed, has no namespaces.
    std::fs::metadata(format!("/proc/{process}/ns/net")).is_ok()
}

fn hosts_reach_each_other_and_nobody_else() {
    let net = Net::start(&["a", "b"], None).unwrap();
    let (a, b) = (net.host("a").unwrap(), net.host("b").unwrap());
    assert_ne!(a.address(), b.address());
    for (from, to) in [(&a, &b), (&b, &a), (&a, &a)] {
        let (mut near, mut far) = connection(from, to);
        assert_eq!(far.peer_addr().unwrap().ip(), from.address());
        near.write_all(b"hello").unwrap();
        let mut said = [0; 5];
        far.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"hello");
    }
    let outside = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    assert!(a.connect(outside.local_addr().unwrap()).is_err(), "it has a loopback device of its own");
    assert!(a.connect(SocketAddr::from(([192, 0, 2, 1], 80))).is_err(), "and no way out");
    // Processes are where threads are.
    let listener = listen(&b);
    let script = format!("echo -n $0 > /dev/tcp/{}/{}", b.address(), listener.local_addr().unwrap().port());
    assert!(a.command("bash", ["-c", &script, "hi"]).status().unwrap().success());
    let mut said = String::new();
    listener.accept().unwrap().0.read_to_string(&mut said).unwrap();
    assert_eq!(said, "hi");
}

fn a_link_carries_no_more_than_its_rate() {
    let rate = Rate::megabits(80);
    let bytes = rate.bytes_per_second() / 2;
    let net = Net::start(&["slow", "fast"], None).unwrap();
    let (slow, fast) = (net.host("slow").unwrap(), net.host("fast").unwrap());
    slow.set_rate(Some(rate)).unwrap();
    for (from, to) in [(&slow, &fast), (&fast, &slow)] {
        let took = transfer(connection(from, to), bytes);
        println!("{} to {}: {bytes} bytes in {took:?}", from.name(), to.name());
        assert!(took > Duration::from_millis(250), "{took:?}");
    }
    slow.set_rate(None).unwrap();
    println!("without a limit: {bytes} bytes in {:?}", transfer(connection(&fast, &slow), bytes));
    // Several that send to one get no more through together.
    let net = Net::start(&["a", "b", "c"], Some(rate)).unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|n| net.host(n).unwrap());
    let (from_a, from_b) = (connection(&a, &c), connection(&b, &c));
    let start = Instant::now();
    std::thread::scope(|s| {
        s.spawn(|| transfer(from_a, bytes));
        s.spawn(|| transfer(from_b, bytes));
    });
    println!("two to one: {bytes} bytes each in {:?}", start.elapsed());
    assert!(start.elapsed() > Duration::from_millis(500), "{:?}", start.elapsed());
}

fn what_went_over_a_link_is_counted() {
    let net = Net::start(&["a", "b", "c"], Some(Rate::megabits(1000))).unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|n| net.host(n).unwrap());
    let before = [&a, &b, &c].map(|h| h.traffic().unwrap());
    transfer(connection(&a, &b), 1_000_000);
    // What a host tells itself does not count.
    transfer(connection(&c, &c), 1_000_000);
    let after = [&a, &b, &c].map(|h| h.traffic().unwrap());
    let sent = [0, 1, 2].map(|n| after[n].sent - before[n].sent);
    let received = [0, 1, 2].map(|n| after[n].received - before[n].received);
    let range = 1_000_000..1_500_000;
    assert!(range.contains(&sent[0]) && range.contains(&received[1]), "{sent:?} {received:?}");
    assert!(received[0] < 500_000 && sent[1] < 500_000, "{sent:?} {received:?}");
    assert!(sent[2] < 10_000 && received[2] < 10_000, "{sent:?} {received:?}");
}

fn a_host_that_is_cut_off_comes_back() {
    let rate = Rate::megabits(80);
    let net = Net::start(&["a", "b", "c"], Some(rate)).unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|n| net.host(n).unwrap());
    let (mut near, mut far) = connection(&a, &b);
    let listener = listen(&b);
    let address = listener.local_addr().unwrap();
    let reaches = |from: &Host| {
        from.enter(|| TcpStream::connect_timeout(&address, Duration::from_millis(300)).is_ok()).unwrap()
    };
    assert!(reaches(&a) && reaches(&c));
    a.cut().unwrap();
    assert!(!reaches(&a));
    assert!(reaches(&c), "others are not concerned");
    near.write_all(b"late").unwrap();
    far.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut said = [0; 4];
    assert!(far.read(&mut said).is_err(), "nothing passes, and nobody is told");
    a.mend().unwrap();
    far.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    far.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"late", "connections survive");
    wait_until(Duration::from_secs(20), || reaches(&a).then_some(())).unwrap();
    let took = transfer(connection(&a, &b), rate.bytes_per_second() / 2);
    assert!(took > Duration::from_millis(250), "its rate is what it was: {took:?}");
}

/// How long a question and its answer take.
fn round_trip(near: &mut TcpStream, far: &mut TcpStream) -> Duration {
    let (mut byte, start) = ([0; 1], Instant::now());
    near.write_all(b"?").unwrap();
    far.read_exact(&mut byte).unwrap();
    far.write_all(b"!").unwrap();
    near.read_exact(&mut byte).unwrap();
    start.elapsed()
}

fn what_is_delayed_arrives_later() {
    println!("netem: {}", Net::has_netem());
    let net = Net::start(&["far", "near"], Some(Rate::megabits(80))).unwrap();
    let (remote, local) = (net.host("far").unwrap(), net.host("near").unwrap());
    let (mut near, mut far) = connection(&local, &remote);
    println!("without a delay: {:?}", round_trip(&mut near, &mut far));
    for delay in [Duration::from_millis(30), Duration::from_millis(60)] {
        remote.set_delay(delay, 0.0).unwrap();
        let took = round_trip(&mut near, &mut far);
        println!("delayed by {delay:?}: {took:?}");
        assert!(took >= delay * 2, "{took:?}");
    }
    let bytes = Rate::megabits(80).bytes_per_second() / 2;
    println!("delayed: {bytes} bytes in {:?}", transfer(connection(&local, &remote), bytes));
    remote.set_delay(Duration::ZERO, 0.0).unwrap();
    round_trip(&mut near, &mut far);
    println!("without a delay: {:?}", round_trip(&mut near, &mut far));
}

fn some_of_what_is_sent_gets_lost() {
    let net = Net::start(&["a", "b"], None).unwrap();
    let (a, b) = (net.host("a").unwrap(), net.host("b").unwrap());
    let socket = |host: &Host| host.enter(|| UdpSocket::bind((host.address(), 0)).unwrap()).unwrap();
    let (from, to) = (socket(&a), socket(&b));
    to.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let address = to.local_addr().unwrap();
    // As many as a socket keeps until somebody reads them.
    let count = || {
        for n in 0..200u32 {
            from.send_to(&n.to_be_bytes(), address).unwrap();
        }
        std::iter::from_fn(|| to.recv(&mut [0; 4]).ok()).count()
    };
    assert_eq!(count(), 200);
    a.set_delay(Duration::from_millis(1), 0.5).unwrap();
    let arrived = count();
    assert!((40..160).contains(&arrived), "{arrived}");
    a.set_delay(Duration::ZERO, 0.0).unwrap();
    assert_eq!(count(), 200);
}

fn a_host_that_is_switched_off_runs_nothing() {
    let net = Net::start(&["a", "b"], None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let start = |host: &str| {
        let words = net.host(host).unwrap().prefix().into_iter();
        // One that starts another, and one of them does not want to go.
        let script = ["sh", "-c", "trap '' TERM; sleep 1000 & echo there; wait"].map(Into::into);
        let server = Server::start(words.chain(script), &directory.path().join(host)).unwrap();
        wait_until(Duration::from_secs(20), || server.log().contains("there").then_some(())).unwrap();
        server
    };
    let (mut on_a, mut on_b) = (start("a"), start("b"));
    net.host("a").unwrap().kill_all();
    assert_eq!(on_a.wait(Duration::from_secs(20)), Some(-1));
    assert!(on_b.is_alive());
    on_a.start_again().unwrap();
    assert!(on_a.is_alive());
    on_a.kill();
    on_b.kill();
}

fn nothing_is_left_of_a_net() {
    let directory = tempfile::tempdir().unwrap();
    let net = Net::start(&["a", "b"], Some(Rate::megabits(10))).unwrap();
    let a = net.host("a").unwrap();
    a.set_delay(Duration::from_millis(1), 0.0).unwrap();
    let words = a.prefix().into_iter().chain(["sleep", "1000"].map(Into::into));
    let server = Server::start(words, &directory.path().join("log")).unwrap();
    let paths = [path(&a), path(&net.host("b").unwrap())];
    let switch = paths[0].with_extension("");
    assert!(paths.iter().chain([&switch]).all(|p| p.exists()), "{paths:?}");
    wait_until(Duration::from_secs(20), || {
        let inside =
            Command::new("ip").args(["netns", "pids"]).arg(paths[0].file_name().unwrap()).output().unwrap();
        String::from_utf8_lossy(&inside.stdout).contains(&server.pid().unwrap().to_string()).then_some(())
    })
    .unwrap();
    drop(net);
    assert!(!paths.iter().chain([&switch]).any(|p| p.exists()), "{paths:?}");
    assert!(!is_running(server.pid().unwrap()));
    assert!(a.traffic().is_err(), "what is left of a host is its name");
}

/// Has a net and two processes in it, of which one does not want to go.
fn own_until_killed(directory: &std::path::Path) {
    let net = Net::start(&["a"], Some(Rate::megabits(10))).unwrap();
    let a = net.host("a").unwrap();
    a.set_delay(Duration::from_millis(1), 0.0).unwrap();
    let start = |script: &str| {
        let words = ["sh", "-c", script].map(Into::into);
        Server::start(a.prefix().into_iter().chain(words), &directory.join("log")).unwrap()
    };
    let (tame, wild) = (start("exec sleep 1000"), start("trap '' TERM; sleep 1000 & wait; sleep 1000"));
    // They have to be there before anybody is killed.
    std::thread::sleep(Duration::from_secs(1));
    println!("{} {} {}", path(&a).display(), tame.pid().unwrap(), wild.pid().unwrap());
    std::thread::sleep(Duration::from_secs(1000));
}

fn what_a_killed_process_leaves_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .env(OWNER, directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let [path, tame, wild] = words[..] else { panic!("{line}") };
    let (path, tame, wild): (PathBuf, u32, u32) = (path.into(), tame.parse().unwrap(), wild.parse().unwrap());
    drop(Net::start(&["other"], None).unwrap());
    assert!(path.exists() && is_running(tame) && is_running(wild), "what somebody still uses is left alone");
    owner.kill().unwrap();
    // Even before anybody has taken note of its death.
    wait_until(Duration::from_secs(20), || (!is_running(tame)).then_some(())).unwrap();
    drop(Net::start(&["other"], None).unwrap());
    assert!(!path.exists() && !path.with_extension("").exists());
    assert!(!is_running(wild));
    owner.wait().unwrap();
}

fn a_mistake_leaves_nothing() {
    for name in ["", "a b", "a.b", "../a"] {
        assert!(Net::start(&["fine", name], None).is_err(), "`{name}`");
    }
    assert!(Net::start(&["twice", "twice"], None).is_err());
    let left = std::fs::read_dir("/run/netns").unwrap().flatten();
    let left: Vec<String> = left.filter_map(|e| e.file_name().into_string().ok()).collect();
    let own = format!("catena-net-{}-", std::process::id());
    assert!(!left.iter().any(|n| n.starts_with(&own) && n.contains(".twice")), "{left:?}");
    assert!(Net::start(&["a"], None).unwrap().host("b").is_err());
}
