//! Real collaborators: each has a connection of its own to a real server.

use super::client::{Client, Door};
use catena_compose::lock::Mode;
use catena_compose::model::{NodeId, WorkflowId};
use catena_compose::room::{Ask, Change, Operation, Place, Said, Wanted};
use catena_simulate::collab::{Collaboration, Policy, Setting};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Numbers that look random, for one collaborator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}

/// Lets collaborators edit a composition, with the times of the setting. Returns what came of it, per minute of that time.
pub(super) async fn collaborate(
    door: &Door,
    composition: &str,
    setting: Setting,
) -> Result<Collaboration, String> {
    let mut clients = Vec::new();
    for person in 0..setting.collaborators {
        clients.push(Client::join(door, composition, None, &format!("user{person}")).await?.0);
    }
    let start = Instant::now() + Duration::from_millis(100);
    let tasks: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(person, client)| tokio::spawn(edit(client, setting, person, start)))
        .collect();
    let (mut updates, mut failures) = (0, 0);
    for task in tasks {
        let (u, f) = task.await.map_err(|e| e.to_string())??;
        updates += u;
        failures += f;
    }
    let minutes = setting.lasts / 60.0;
    let per_minute = |n: u64| n as f64 / minutes;
    Ok(Collaboration { updates: per_minute(updates), failures: per_minute(failures), wait: 0.0 })
}

/// What one collaborator does. Returns how many updates and failures counted.
async fn edit(
    mut client: Client,
    setting: Setting,
    person: usize,
    start: Instant,
) -> Result<(u64, u64), String> {
    let seconds = |s: f64| Duration::from_secs_f64(s);
    let (from, end) = (start + seconds(setting.warm_up), start + seconds(setting.warm_up + setting.lasts));
    let mut dice = Dice(setting.seed << 32 | person as u64);
    let (mut updates, mut failures) = (0, 0);
    sleep_until(start + seconds(setting.think * dice.below(1000) as f64 / 1000.0)).await;
    let mut number = 0u64;
    while Instant::now() < end {
        let (workflow, part) = choose(&client, &setting, &mut dice);
        let place = place(&setting, workflow, part);
        let think = seconds(setting.think);
        let counts = |at: Instant| u64::from(at >= from && at < end);
        let wants = || vec![Wanted { unit: place.clone(), mode: Mode::X, path: Vec::new() }];
        if let Policy::Write { .. } = setting.policy {
            client.pause(Instant::now() + think).await?;
        }
        if let Said::Refused { .. } = client.ask(Ask::Lock { wants: wants(), wait: false }).await? {
            failures += counts(Instant::now());
            if !matches!(setting.policy, Policy::Write { .. } | Policy::Seen) {
                client.pause(Instant::now() + think).await?;
            }
            continue;
        }
        let hold = if let Policy::Write { takes } = setting.policy { seconds(takes) } else { think };
        client.pause(Instant::now() + hold).await?;
        number += 1;
        let change = Change::SetNode {
            workflow: WorkflowId::new(format!("w{workflow}")),
            id: NodeId::new(format!("n{part}")),
            label: format!("{person} {number}"),
            after: Vec::new(),
        };
        let operation = Operation { op: number, changes: vec![change], ..Operation::default() };
        if let Said::Done { .. } = client.ask(Ask::Do(operation)).await? {
            updates += counts(Instant::now());
        }
        client.ask(Ask::Release { units: vec![place.clone()] }).await?;
    }
    Ok((updates, failures))
}

fn choose(client: &Client, setting: &Setting, dice: &mut Dice) -> (usize, usize) {
    let all = setting.workflows * setting.parts;
    let split = |n: usize| (n / setting.parts, n % setting.parts);
    let mut choice = split(dice.below(all));
    if setting.policy == Policy::Seen {
        for _ in 0..all {
            if !client.taken.contains(&place(setting, choice.0, choice.1)) {
                break;
            }
            choice = split(dice.below(all));
        }
    }
    choice
}

fn place(setting: &Setting, workflow: usize, part: usize) -> Place {
    let workflow = WorkflowId::new(format!("w{workflow}"));
    match setting.policy {
        Policy::Parts | Policy::PartsQueue | Policy::Seen => {
            Place::Properties(workflow, NodeId::new(format!("n{part}")))
        }
        _ => Place::Workflow(workflow),
    }
}
