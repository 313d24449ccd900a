//! Peers on hosts of their own: real namespaces, real links. Where there cannot be any, these cases are reported as
//! ignored.

use catena_peer::wire::{Event, Events, GroupKey, Identity, PeerId, Settings, Wire};
use catena_testbed::{Host, Net};
use libtest_mimic::{Arguments, Trial};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

const CASES: [(&str, fn()); 2] = [
    ("peers_of_a_local_network_find_each_other", peers_of_a_local_network_find_each_other),
    (
        "a_peer_whose_plug_is_pulled_is_lost_and_comes_back",
        a_peer_whose_plug_is_pulled_is_lost_and_comes_back,
    ),
];

fn main() {
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

/// Does something on a host, with a runtime of its own.
fn on<T: Send, F: Future<Output = T>>(host: &Host, work: impl FnOnce() -> F + Send) -> T {
    host.enter(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { tokio::time::timeout(PATIENCE, work()).await.expect("it took too long") })
    })
    .unwrap()
}

fn start(identity: &Identity, settings: Settings) -> (Wire, Events) {
    Wire::start(identity, GroupKey::from_secret(b"the secret of the tests").unwrap(), settings).unwrap()
}

async fn wait<T>(events: &mut Events, mut wanted: impl FnMut(Event) -> Option<T>) -> T {
    loop {
        if let Some(found) = wanted(events.next().await.expect("the wire has ended")) {
            return found;
        }
    }
}

async fn message(events: &mut Events) -> PeerId {
    wait(events, |event| if let Event::Message { from, .. } = event { Some(from) } else { None }).await
}

fn peers_of_a_local_network_find_each_other() {
    let net = Net::start(&["one", "two"], None).unwrap();
    let meet = |host: &Host| {
        on(host, || async {
            let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
            let settings = Settings { mdns: true, ..Settings::member([everywhere]) };
            let (wire, mut events) = start(&Identity::fleeting(), settings);
            // The other one may be faster.
            let mut heard = None;
            let found = wait(&mut events, |event| match event {
                Event::Discovered { peer, addresses } => {
                    wire.know(peer, addresses);
                    Some(peer)
                }
                Event::Message { from, .. } => {
                    heard = Some(from);
                    None
                }
                _ => None,
            })
            .await;
            // A message may get lost, so it is said until the other one answers, and a while longer for the other one.
            let mut more = 10;
            while more > 0 {
                wire.send(found, b"here I am".to_vec()).unwrap();
                let answer = tokio::time::timeout(Duration::from_millis(100), message(&mut events)).await;
                heard = heard.or(answer.ok());
                more -= u32::from(heard.is_some());
            }
            assert_eq!(heard, Some(found));
            wire.clone().stop().await;
            (wire.id(), found)
        })
    };
    let [one, two] = net.hosts() else { panic!("two hosts") };
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| meet(one));
        let second = meet(two);
        (first.join().unwrap(), second)
    });
    assert_eq!(first, (second.1, second.0));
}

fn a_peer_whose_plug_is_pulled_is_lost_and_comes_back() {
    let net = Net::start(&["one", "two"], None).unwrap();
    let hosts: Vec<Arc<Host>> = net.hosts().to_vec();
    let settings = |host: &Host| Settings {
        beat: Duration::from_millis(200),
        silence: Duration::from_secs(1),
        handshake: Duration::from_secs(1),
        longest_back_off: Duration::from_millis(500),
        ..Settings::member([SocketAddr::from((host.address(), 7000))])
    };
    let (one, two) = (Identity::fleeting(), Identity::fleeting());
    let there = SocketAddr::from((hosts[1].address(), 7000));
    std::thread::scope(|scope| {
        // Answers everything until the other one goes for good.
        let answering = scope.spawn(|| {
            on(&hosts[1], || async {
                let (wire, mut events) = start(&two, settings(&hosts[1]));
                loop {
                    match events.next().await {
                        Some(Event::Message { from, bytes }) if bytes == b"bye" => {
                            return assert_eq!(from, one.id());
                        }
                        Some(Event::Message { from, bytes }) => wire.send(from, bytes).unwrap(),
                        Some(_) => {}
                        None => panic!("the wire has ended"),
                    }
                }
            });
        });
        on(&hosts[0], || async {
            let (wire, mut events) = start(&one, settings(&hosts[0]));
            wire.know(two.id(), [there]);
            insist(&wire, &mut events, two.id()).await;
            hosts[1].cut().unwrap();
            let cut = Instant::now();
            wait(&mut events, |event| matches!(event, Event::Lost { .. }).then_some(())).await;
            assert!(cut.elapsed() < Duration::from_secs(5), "{:?}", cut.elapsed());
            hosts[1].mend().unwrap();
            insist(&wire, &mut events, two.id()).await;
            wire.send(two.id(), b"bye".to_vec()).unwrap();
            wire.stop().await;
        });
        answering.join().unwrap();
    });
}

/// Sends until something comes back.
async fn insist(wire: &Wire, events: &mut Events, to: PeerId) {
    loop {
        wire.send(to, b"are you there?".to_vec()).unwrap();
        if tokio::time::timeout(Duration::from_millis(200), message(events)).await.is_ok() {
            return;
        }
    }
}
