use super::*;

fn agent(id: &str, capabilities: &[&str], cpus: u64) -> Event {
    Event::AgentJoined(AgentInfo {
        id: id.into(),
        capabilities: capabilities.iter().map(Name::new).collect(),
        resources: Resources { cpus: cpus * 1000, memory: 1000, ..Resources::default() },
    })
}

fn class(capabilities: &[&str]) -> Class {
    Class { capabilities: capabilities.iter().map(Name::new).collect(), ..Class::default() }
}

fn registered(class: &Class, count: u64, priority: i64) -> Event {
    let rank = priority * Settings::default().aging.as_millis() as i64;
    Event::Registered { class: class.clone(), count, rank }
}

fn claims(commands: &[Command]) -> Vec<(String, String, usize)> {
    let claim = |c: &Command| match c {
        Command::Claim { agent, class, limit } => Some((agent.to_string(), class.to_string(), *limit)),
        Command::Unsatisfiable { .. } | Command::Recall { .. } => None,
    };
    commands.iter().filter_map(claim).collect()
}

fn claimed(agent: &str, class: &Class, asked: u64, got: u64) -> Event {
    Event::Claimed { agent: agent.into(), class: class.key(), asked, got, rank: None }
}

fn ended(agent: &str, class: &Class, millis: f64) -> Event {
    Event::Ended { agent: agent.into(), class: class.key(), millis: Some(millis) }
}

#[test]
fn an_agent_gets_what_it_has_room_for_and_no_more() {
    let mut s = Scheduler::default();
    let c = class(&[]);
    s.handle(agent("a", &[], 2));
    s.handle(registered(&c, 100, 0));
    let first = claims(&s.decide(0));
    assert_eq!(first, [("a".into(), c.key().to_string(), 4)]);
    s.handle(claimed("a", &c, 4, 4));
    assert!(s.decide(0).is_empty());
    s.handle(ended("a", &c, 60.0));
    assert_eq!(claims(&s.decide(0))[0].2, 1);
}

#[test]
fn short_tasks_are_sent_far_ahead() {
    let mut s = Scheduler::default();
    let c = class(&[]);
    s.handle(agent("a", &[], 2));
    s.handle(registered(&c, 1_000_000, 0));
    for _ in 0..200 {
        for (_, _, n) in claims(&s.decide(0)) {
            s.handle(claimed("a", &c, n as u64, n as u64));
        }
        s.handle(ended("a", &c, 1.0));
    }
    assert!(s.agents["a"].assigned[&c.key()].count > 50);
}

#[test]
fn higher_priorities_come_first() {
    let mut s = Scheduler::default();
    let (low, high) = (class(&["x"]), class(&["y"]));
    s.handle(agent("a", &["x", "y"], 1));
    s.handle(registered(&low, 10, 1));
    s.handle(registered(&high, 10, 7));
    assert_eq!(claims(&s.decide(0))[0].1, high.key().to_string());
}

#[test]
fn who_waits_long_enough_comes_first() {
    let settings = Settings { aging: Duration::from_secs(1), ..Settings::default() };
    let mut s = Scheduler::new(settings);
    let (low, high) = (class(&["x"]), class(&["y"]));
    s.handle(agent("a", &["x", "y"], 1));
    // A chain of priority 1 that waits since 0, and one of priority 7 that came after ten seconds.
    s.handle(Event::Registered { class: low.clone(), count: 1, rank: 1000 });
    s.handle(Event::Registered { class: high, count: 1, rank: 7000 - 10_000 });
    assert_eq!(claims(&s.decide(10_000))[0].1, low.key().to_string());
}

#[test]
fn what_nobody_offers_is_said_once_with_the_nearest_agent() {
    let mut s = Scheduler::default();
    s.handle(agent("small", &["ubuntu"], 2));
    s.handle(registered(&class(&["gpu", "ubuntu"]), 3, 0));
    let commands = s.decide(0);
    let Command::Unsatisfiable { reason, .. } = &commands[0] else { panic!("{commands:?}") };
    assert!(reason.contains("small") && reason.contains("`gpu`"), "{reason}");
    assert!(s.decide(0).is_empty());
    s.handle(agent("big", &["gpu", "ubuntu"], 2));
    assert_eq!(claims(&s.decide(0))[0].0, "big");
}

#[test]
fn resources_limit_how_many_run() {
    let mut s = Scheduler::default();
    let c = Class { resources: Resources { memory: 400, ..Resources::default() }, ..Class::default() };
    s.handle(agent("a", &[], 64));
    s.handle(registered(&c, 100, 0));
    // Two fit into the memory, two wait ahead.
    assert_eq!(claims(&s.decide(0))[0].2, 4);
    let too_big = Class { resources: Resources { memory: 4000, ..Resources::default() }, ..Class::default() };
    s.handle(registered(&too_big, 1, 0));
    assert!(matches!(&s.decide(0)[..], [Command::Unsatisfiable { .. }]));
}

#[test]
fn a_claim_that_finds_less_ends_the_search() {
    let mut s = Scheduler::default();
    let c = class(&[]);
    s.handle(agent("a", &[], 2));
    s.handle(registered(&c, 100, 0));
    let n = claims(&s.decide(0))[0].2 as u64;
    s.handle(claimed("a", &c, n, 1));
    assert_eq!(s.registered(), 0);
    assert_eq!(s.agents["a"].assigned[&c.key()].count, 1);
}

#[test]
fn who_can_do_little_is_served_before_who_can_do_much() {
    let mut s = Scheduler::default();
    let (a, b) = (class(&["a"]), class(&["b"]));
    s.handle(agent("both", &["a", "b"], 1));
    s.handle(agent("only a", &["a"], 1));
    s.handle(registered(&a, 1, 0));
    s.handle(registered(&b, 1, 0));
    let claims = claims(&s.decide(0));
    assert_eq!(claims[0].0, "only a");
    assert_eq!((claims[1].0.as_str(), &claims[1].1), ("both", &b.key().to_string()));
}

#[test]
fn a_flexible_agent_helps_where_help_is_scarce() {
    let mut s = Scheduler::default();
    let (a, b) = (class(&["a"]), class(&["b"]));
    s.handle(agent("both", &["a", "b"], 1));
    for n in 0..5 {
        s.handle(agent(&format!("a{n}"), &["a"], 1));
    }
    s.handle(registered(&a, 40, 0));
    s.handle(registered(&b, 20, 0));
    let claims = claims(&s.decide(0));
    assert!(claims.iter().any(|(id, class, _)| id == "both" && *class == b.key().as_str()));
}

#[test]
fn what_waits_behind_others_is_recalled_for_an_idle_agent() {
    let mut s = Scheduler::default();
    let c = class(&[]);
    s.handle(agent("busy", &[], 1));
    s.handle(registered(&c, 2, 0));
    s.decide(0);
    s.handle(claimed("busy", &c, 2, 2));
    // It has shown that its chains take long.
    s.agents.get_mut("busy").unwrap().mean_millis = 1000.0;
    assert!(s.decide(0).is_empty());
    s.handle(agent("idle", &[], 1));
    let recall = Command::Recall { agent: "busy".into(), class: c.key(), limit: 1 };
    assert_eq!(s.decide(0), [recall]);
    assert!(s.decide(0).is_empty(), "asked once");
    s.handle(Event::Ended { agent: "busy".into(), class: c.key(), millis: None });
    s.handle(registered(&c, 1, 0));
    // Only the idle agent is without work, and who waited longest is served first.
    assert_eq!(claims(&s.decide(0))[0].0, "idle");
}

#[test]
fn the_policy_of_the_paper_gives_one_chain_to_one_agent_per_set_and_step() {
    let mut s = Scheduler::new(Settings { policy: Policy::Steep, ..Settings::default() });
    let c = class(&["x"]);
    s.handle(agent("a", &["x"], 4));
    s.handle(agent("b", &["x"], 4));
    s.handle(registered(&c, 10, 0));
    assert_eq!(claims(&s.decide(0)), [("a".into(), c.key().to_string(), 1)]);
    s.handle(claimed("a", &c, 1, 1));
    assert_eq!(claims(&s.decide(0))[0].0, "b", "the one that was idle for longer");
}

#[test]
fn short_or_long_chains_first_as_the_policy_says() {
    for (policy, expected) in [(Policy::MinMin, "short"), (Policy::MaxMin, "long")] {
        let mut s = Scheduler::new(Settings { policy, ..Settings::default() });
        let (short, long) = (class(&["short"]), class(&["long"]));
        s.handle(agent("a", &["short", "long"], 1));
        for (class, millis) in [(&short, 200.0), (&long, 9000.0)] {
            s.handle(registered(class, 10, 0));
            s.handle(Event::Has { agent: "a".into(), class: class.clone(), count: 1 });
            s.handle(ended("a", class, millis));
        }
        assert!(claims(&s.decide(0))[0].1.contains(expected));
    }
}

#[test]
fn an_assignment_costs_the_same_however_many_agents_and_chains_there_are() {
    let mut s = Scheduler::default();
    let classes: Vec<Class> = (0..100).map(|n| class(&[&format!("c{n}")])).collect();
    for n in 0..1000 {
        s.handle(agent(&format!("agent {n:04}"), &[&format!("c{}", n % 100), "x"], 1));
    }
    for class in &classes {
        s.handle(registered(class, 10_000, 0));
    }
    let first = claims(&s.decide(0));
    assert_eq!(first.len(), 1000);
    for (id, class, n) in &first {
        let class = Name::new(class);
        let (asked, agent) = (*n as u64, Name::new(id));
        s.handle(Event::Claimed { agent, class, asked, got: asked, rank: None });
    }
    // One event leads to one claim.
    s.handle(ended("agent 0007", &classes[7], 60.0));
    assert_eq!(claims(&s.decide(0)).len(), 1);
}
