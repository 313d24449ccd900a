//! What is lost when parts of a cluster die: nothing.

use crate::{QUICK, assert_succeeded, counting, executions, small, start, status, submit, wait_for_chains};
use catena_testbed::{Cluster, wait_until};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// A cluster in which every role has two instances.
fn redundant(agents: usize) -> Cluster {
    let mut cluster = start(QUICK);
    cluster.serve("http", "http", &[]).unwrap();
    for n in 1..=2 {
        cluster.serve(&format!("controller{n}"), "controller", &[]).unwrap();
        cluster.serve(&format!("scheduler{n}"), "scheduler", &[]).unwrap();
    }
    for n in 0..agents {
        cluster.agent(&format!("a{n}"), &[], &[]).unwrap();
    }
    cluster.wait_for_agents(agents).unwrap();
    cluster
}

#[test]
fn the_chains_of_a_killed_agent_run_elsewhere_without_using_up_retries() {
    let mut cluster = small(2);
    counting(&cluster, "work", 8, 0.5);
    let run = submit(&cluster, "work.yaml");
    wait_for_chains(&cluster, run, 2);
    cluster.kill("a0");
    assert_succeeded(&cluster, run, 8);
    let counts = executions(&cluster, "work");
    assert_eq!(counts.len(), 8);
    assert!(counts.iter().sum::<usize>() <= 10, "only what was running runs again: {counts:?}");
}

#[test]
fn an_agent_that_is_asked_to_stop_gives_its_chains_back_at_once() {
    let mut cluster = small(2);
    counting(&cluster, "work", 8, 0.5);
    let run = submit(&cluster, "work.yaml");
    wait_for_chains(&cluster, run, 2);
    cluster.instance("a1").unwrap().stop();
    assert_succeeded(&cluster, run, 8);
}

#[test]
fn an_agent_that_is_started_again_is_a_new_one() {
    let mut cluster = small(1);
    counting(&cluster, "work", 6, 0.5);
    let run = submit(&cluster, "work.yaml");
    wait_for_chains(&cluster, run, 1);
    cluster.start_again("a0").unwrap();
    assert_succeeded(&cluster, run, 6);
}

#[test]
fn killed_schedulers_and_controllers_are_replaced_and_nothing_runs_twice() {
    let mut cluster = redundant(3);
    counting(&cluster, "work", 60, 0.2);
    let run = submit(&cluster, "work.yaml");
    for (done, victim) in [(5, "scheduler1"), (15, "controller1"), (25, "scheduler2"), (35, "controller2")] {
        wait_for_chains(&cluster, run, done);
        cluster.kill(victim);
        std::thread::sleep(Duration::from_millis(500));
        cluster.start_again(victim).unwrap();
    }
    assert_succeeded(&cluster, run, 60);
    assert_eq!(executions(&cluster, "work"), [1; 60], "agents keep what they have\n{}", cluster.logs());
}

#[test]
fn a_database_that_goes_away_is_waited_for() {
    let mut cluster = redundant(2);
    counting(&cluster, "work", 40, 0.2);
    let run = submit(&cluster, "work.yaml");
    wait_for_chains(&cluster, run, 5);
    cluster.postgres.kill();
    std::thread::sleep(Duration::from_secs(3));
    cluster.postgres.start_again().unwrap();
    let back = Instant::now();
    wait_for_chains(&cluster, run, 20);
    eprintln!("progress {:?} after the return of the database", back.elapsed());
    assert_succeeded(&cluster, run, 40);
    assert_eq!(executions(&cluster, "work"), [1; 40], "{}", cluster.logs());
}

#[test]
fn an_instance_that_waits_for_the_database_can_be_asked_to_stop() {
    let mut cluster = start(QUICK);
    cluster.serve("main", "http,controller,scheduler,fleet", &[]).unwrap();
    cluster.agent("a0", &[], &[]).unwrap();
    cluster.wait_for_agents(1).unwrap();
    counting(&cluster, "work", 50, 0.1);
    submit(&cluster, "work.yaml");
    cluster.postgres.kill();
    stops_while_it_waits(&mut cluster, "main", "trying again");
    // Nor does one insist that has never seen it.
    cluster.serve("late", "controller", &[]).unwrap();
    stops_while_it_waits(&mut cluster, "late", "waiting");
}

#[test]
fn an_instance_whose_servers_are_silent_can_be_asked_to_stop() {
    let mut cluster = start(QUICK);
    cluster.serve("main", "http,controller,scheduler,fleet", &[]).unwrap();
    cluster.serve("other", "controller,scheduler", &[]).unwrap();
    cluster.agent("a0", &[], &[]).unwrap();
    cluster.wait_for_agents(1).unwrap();
    counting(&cluster, "work", 50, 0.1);
    let run = submit(&cluster, "work.yaml");
    wait_for_chains(&cluster, run, 2);
    cluster.nats.freeze();
    stops(&mut cluster, "other");
    cluster.postgres.freeze();
    // Connections are taken, but nobody speaks.
    cluster.serve("late", "controller,scheduler", &[]).unwrap();
    // By now everybody waits for an answer.
    std::thread::sleep(Duration::from_secs(1));
    for name in ["a0", "late", "main"] {
        stops(&mut cluster, name);
    }
}

fn stops(cluster: &mut Cluster, name: &str) {
    let instance = cluster.instance(name).unwrap();
    instance.signal(Signal::TERM);
    assert_eq!(instance.wait(Duration::from_secs(30)), Some(0), "{}", instance.log());
    assert!(!instance.log().contains("takes too long"), "{}", instance.log());
}

fn stops_while_it_waits(cluster: &mut Cluster, name: &str, says: &str) {
    let instance = cluster.instance(name).unwrap();
    let waits = wait_until(Duration::from_secs(30), || instance.log().contains(says).then_some(()));
    assert!(waits.is_some(), "{}", instance.log());
    stops(cluster, name);
}

#[test]
fn a_bus_that_goes_away_is_waited_for() {
    let mut cluster = redundant(2);
    counting(&cluster, "work", 40, 0.2);
    let run = submit(&cluster, "work.yaml");
    wait_for_chains(&cluster, run, 5);
    cluster.nats.kill();
    std::thread::sleep(Duration::from_secs(3));
    cluster.nats.start_again().unwrap();
    assert_succeeded(&cluster, run, 40);
    let counts = executions(&cluster, "work");
    assert_eq!(counts.len(), 40);
    assert_eq!(counts.iter().sum::<usize>(), 40, "{counts:?}\n{}", cluster.logs());
}

#[test]
fn everything_can_be_killed_at_once_and_goes_on_by_itself() {
    let mut cluster = small(2);
    counting(&cluster, "work", 30, 0.2);
    let run = submit(&cluster, "work.yaml");
    wait_for_chains(&cluster, run, 5);
    let all = ["main", "a0", "a1"];
    for name in all {
        cluster.kill(name);
    }
    cluster.postgres.kill();
    cluster.nats.kill();
    cluster.postgres.start_again().unwrap();
    cluster.nats.start_again().unwrap();
    for name in all {
        cluster.start_again(name).unwrap();
    }
    assert_succeeded(&cluster, run, 30);
    assert_eq!(executions(&cluster, "work").len(), 30);
}

#[test]
fn a_bus_that_loses_every_message_only_makes_things_slower() {
    let settings = "lease: 3s\nlook: 200ms\nagent: {cpus: 2, memory: 1 GiB, cache: false}\nbus: {loss: 1.0, url: nats://127.0.0.1:1}\n";
    let mut cluster = start("");
    let config = cluster.path().join("catena.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    let without: Vec<&str> = text.lines().filter(|l| !l.starts_with("bus:")).collect();
    std::fs::write(&config, without.join("\n") + "\n" + settings).unwrap();
    cluster.serve("main", "http,controller,scheduler", &[]).unwrap();
    cluster.agent("a0", &[], &[]).unwrap();
    cluster.agent("a1", &[], &[]).unwrap();
    cluster.wait_for_agents(2).unwrap();
    counting(&cluster, "work", 12, 0.05);
    let run = submit(&cluster, "work.yaml");
    assert_succeeded(&cluster, run, 12);
    assert_eq!(executions(&cluster, "work"), [1; 12]);
}

#[test]
fn an_agent_without_messages_or_database_asks_over_http() {
    let mut cluster = start("lease: 3s\nlook: 200ms\nagent: {cpus: 2, memory: 1 GiB, cache: false}\n");
    cluster.serve("main", "http,controller,scheduler", &[]).unwrap();
    cluster.wait_for_agents(0).unwrap();
    let config = cluster.path().join("catena.yaml");
    let create = ["token", "create", "far", "--role", "agent", "--config", config.to_str().unwrap()];
    let token = cluster.ask(&create).unwrap();
    let (server, token) = (cluster.url(), token.trim().to_owned());
    let settings = ["--set", "bus.loss=1.0", "--set", "store=", "--server", &server, "--token", &token];
    cluster.agent("far", &[], &settings).unwrap();
    cluster.wait_for_agents(1).unwrap();
    counting(&cluster, "work", 8, 0.05);
    let run = submit(&cluster, "work.yaml");
    assert_succeeded(&cluster, run, 8);
    assert_eq!(executions(&cluster, "work"), [1; 8], "{}", cluster.logs());
}

#[test]
fn a_clock_that_is_wrong_does_no_harm() {
    let mut cluster = start(QUICK);
    cluster.serve("main", "http,controller,scheduler", &[]).unwrap();
    // Another scheduler and controller, ten minutes ahead of everybody.
    let program = env!("CARGO_BIN_EXE_catena");
    let (config, state) = (cluster.path().join("catena.yaml"), cluster.path().join("ahead"));
    // The program that shifts the clock starts another, which should end with it.
    let clock = ["faketime", "-f", "+10m", "setpriv", "--pdeathsig", "TERM", "--"];
    let serve = [program, "serve", "--roles", "controller,scheduler"];
    let paths = [("--config", &config), ("--state", &state)];
    let paths = paths.iter().flat_map(|(flag, path)| [(*flag).to_owned(), path.display().to_string()]);
    let arguments = clock.into_iter().chain(serve).map(str::to_owned).chain(paths);
    let mut ahead = catena_testbed::Server::start(arguments, &cluster.path().join("ahead.log")).unwrap();
    cluster.agent("a0", &[], &[]).unwrap();
    cluster.agent("a1", &[], &[]).unwrap();
    cluster.wait_for_agents(2).unwrap();
    counting(&cluster, "work", 20, 0.2);
    let run = submit(&cluster, "work.yaml");
    assert_succeeded(&cluster, run, 20);
    assert_eq!(executions(&cluster, "work"), [1; 20], "nobody took anything over\n{}", cluster.logs());
    assert!(ahead.is_alive(), "{}", ahead.log());
}

#[test]
fn a_bus_that_loses_half_of_its_messages_costs_nothing_but_time() {
    let mut cluster = start(QUICK);
    cluster.serve("main", "http,controller,scheduler", &["--set", "bus.loss=0.5"]).unwrap();
    for n in 0..2 {
        cluster.agent(&format!("a{n}"), &[], &["--set", "bus.loss=0.5"]).unwrap();
    }
    cluster.wait_for_agents(2).unwrap();
    counting(&cluster, "work", 20, 0.05);
    let run = submit(&cluster, "work.yaml");
    assert_succeeded(&cluster, run, 20);
    assert_eq!(executions(&cluster, "work"), [1; 20], "{}", cluster.logs());
}

#[test]
fn an_agent_that_slept_too_long_is_refused() {
    let mut cluster = small(2);
    counting(&cluster, "work", 2, 1.0);
    let run = submit(&cluster, "work.yaml");
    wait_until(Duration::from_secs(20), || {
        status(&cluster, run).filter(|s| s["chains"]["running"].as_u64() == Some(2))
    })
    .unwrap();
    cluster.signal("a0", rustix::process::Signal::STOP);
    assert_succeeded(&cluster, run, 2);
    cluster.signal("a0", rustix::process::Signal::CONT);
    // It comes back, its late result does not count, and it is useful again.
    counting(&cluster, "more", 6, 0.3);
    cluster.wait_for_agents(2).unwrap();
    let more = submit(&cluster, "more.yaml");
    assert_succeeded(&cluster, more, 6);
    assert_eq!(status(&cluster, run).unwrap()["chains"]["succeeded"], 2);
}

#[test]
fn a_chain_that_kills_its_agents_is_given_up() {
    let mut cluster = start(QUICK);
    cluster.serve("main", "http,controller,scheduler", &[]).unwrap();
    let text = "catena: 1\nsteps:\n  poison: {run: \"kill -9 $PPID\"}\n";
    std::fs::write(cluster.path().join("poison.yaml"), text).unwrap();
    cluster.agent("a0", &[], &[]).unwrap();
    cluster.wait_for_agents(1).unwrap();
    let run = submit(&cluster, "poison.yaml");
    let start = Instant::now();
    while status(&cluster, run).is_none_or(|s| s["state"] == "running") {
        assert!(start.elapsed() < Duration::from_mins(1), "{}", cluster.logs());
        if !cluster.instance("a0").unwrap().is_alive() {
            cluster.start_again("a0").unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let end = status(&cluster, run).unwrap();
    assert_eq!(end["state"], "failed", "{end:#}");
    let message = end["failures"][0]["failure"]["message"].as_str().unwrap();
    assert!(message.contains("agents were lost"), "{message}");
}
