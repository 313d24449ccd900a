//! The contract, kept by NATS.

use catena_bus::{Bus, Message, NatsBus, NatsOptions, contract};
use catena_testbed::Nats;
use std::time::Duration;

async fn connect(url: String) -> NatsBus {
    NatsBus::connect(&NatsOptions { url, ..NatsOptions::default() }).await.unwrap()
}

async fn wait_for_echo(from: &dyn Bus, to: &dyn Bus) {
    let mut heard = to.subscribe("echo").await;
    let mut messages = Vec::new();
    for _ in 0..200 {
        from.publish("echo", Message::Echo(1)).await;
        let receive = heard.receive(&mut messages, 1);
        if tokio::time::timeout(Duration::from_millis(100), receive).await.is_ok() {
            return;
        }
    }
    panic!("no message arrives");
}

#[tokio::test]
async fn keeps_the_contract() {
    let server = Nats::start().unwrap();
    let bus = connect(server.url()).await;
    wait_for_echo(&bus, &bus).await;
    contract::all(&bus).await;
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let mut server = Nats::start().unwrap();
    let bus = connect(server.url()).await;
    wait_for_echo(&bus, &bus).await;
    server.kill();
    // Nobody waits for a bus that is away.
    let publish = async {
        for _ in 0..10_000 {
            bus.publish("a", Message::Interrupt).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), publish).await.expect("publishing never blocks");
    server.start_again().unwrap();
    wait_for_echo(&bus, &bus).await;
}

#[tokio::test]
async fn the_servers_of_a_cluster_are_one_bus() {
    let mut servers = Nats::start_cluster(3).unwrap();
    let urls: Vec<String> = servers.iter().map(Nats::url).collect();
    let (one, two) = (connect(urls.join(",")).await, connect(urls[1].clone()).await);
    wait_for_echo(&one, &two).await;
    servers[0].kill();
    wait_for_echo(&one, &two).await;
}
