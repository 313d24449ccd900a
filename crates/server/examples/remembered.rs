//! Writes a state directory that remembers two large runs, for those who look at such runs: one of many chains on many
//! agents, some of which were lost; and one of a workflow with many steps.
//!
//! `cargo run --package catena-server --example remembered -- DIRECTORY [CHAINS [STEPS]]`, then `catena serve` there.

use catena_model::Name;
use catena_model::chain::{
    Attempt, ChainKey, ChainState, Executable, ProcessChain, RunId, TaskFailure, TaskResult,
};
use catena_schedule::Class;
use catena_server::{Definition, StateDirectory};
use catena_store::{
    Batch, Finish, NewChain, NewChains, NewRun, Requeue, RunChange, RunState, Start, Store, StoreError, rank,
};
use std::path::Path;
use std::time::Duration;

/// So many chains are written at a time.
const PAGE: u64 = 5000;
const AGENTS: usize = 64;
const SETS: [&[&str]; 4] = [&[], &["gpu"], &["matlab"], &["gpu", "large"]];
const AGING: Duration = Duration::from_mins(10);
/// When both runs began, in milliseconds since 1970.
const BEGAN: i64 = 1_790_000_000_000;

/// Numbers that look random and are always the same.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("which directory?")?;
    let mut number = |usual: u64| arguments.next().map_or(Ok(usual), |n| n.parse());
    let (chains, steps) = (number(150_000)?, number(10_000)?);
    let state = StateDirectory::own(Path::new(&directory), "remembering")?;
    let store = state.store()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        many_chains(&store, chains).await?;
        many_steps(&store, steps).await?;
        store.sync().await
    })?;
    Ok(())
}

async fn new_run(store: &dyn Store, name: &str, text: String) -> Result<RunId, StoreError> {
    let workflow = Path::new("workflow.yaml").to_path_buf();
    let definition =
        Definition { workflow: workflow.clone(), files: vec![(workflow, text)], ..Definition::default() };
    let new = NewRun {
        name: name.to_owned(),
        source: "workflow.yaml".to_owned(),
        fingerprint: name.to_owned(),
        definition: serde_json::to_vec(&definition).unwrap_or_default(),
        created: BEGAN,
        ..NewRun::default()
    };
    store.create_run(&new).await
}

fn chain(task: &str, class: &Class) -> NewChain {
    let mut chain = ProcessChain::new(task.into(), vec![Executable::new(task.into(), "true".into())]);
    chain.required_capabilities.clone_from(&class.capabilities);
    NewChain {
        class: class.key(),
        priority: 0,
        rank: rank(0, BEGAN, AGING),
        payload: serde_json::to_vec(&chain).unwrap_or_default(),
    }
}

fn finish(attempt: Attempt, started: i64, ended: i64) -> Finish {
    let result = vec![TaskResult { started, millis: (ended - started) as f64, ..TaskResult::default() }];
    Finish {
        attempt,
        state: ChainState::Succeeded,
        started,
        ended,
        result: serde_json::to_vec(&result).unwrap_or_default(),
        error: None,
        files: Vec::new(),
        history: Vec::new(),
    }
}

async fn end(store: &dyn Store, run: RunId, ended: i64) -> Result<(), StoreError> {
    let state = Some(RunState::Succeeded);
    let change = RunChange { state, started: Some(BEGAN), ended: Some(Some(ended)), ..RunChange::default() };
    store.change_run(run, &change).await
}

/// A step for each capability set, applied to many elements each. Now and then a task fails, or an agent is lost.
async fn many_chains(store: &dyn Store, count: u64) -> Result<(), StoreError> {
    let names = ["prepare", "segment", "solve", "render"];
    let mut text = format!("catena: 1\nname: survey\ninputs: {{ns: {{range: {}}}}}\nsteps:\n", count / 4);
    for (i, name) in names.iter().enumerate() {
        let list = if i == 0 { "ns".to_owned() } else { format!("{}.out", names[i - 1]) };
        text += &format!(
            "  {name}: {{for: x in {list}, run: 'true {{x}} > {{out}}', out: x, needs: [{}]}}\n",
            SETS[i].join(", ")
        );
    }
    let run = new_run(store, "survey", text).await?;
    let classes =
        SETS.map(|set| Class { capabilities: set.iter().map(Name::new).collect(), ..Class::default() });
    let mut free = vec![BEGAN; AGENTS * 2];
    let (mut dice, mut last) = (Dice(7), BEGAN);
    for first in (0..count).step_by(PAGE as usize) {
        let page = first..(first + PAGE).min(count);
        // The steps follow each other, as they would.
        let step = |seq: u64| (seq * 4 / count) as usize;
        let new = page.clone().map(|seq| chain(&format!("{}${seq}", names[step(seq)]), &classes[step(seq)]));
        let new = NewChains { run, first, chains: new.collect() };
        store.apply(Batch { chains: vec![new], ..Batch::default() }).await?;
        let mut batch = Batch::default();
        for seq in page {
            let place = (0..free.len()).min_by_key(|i| free[*i]).unwrap_or_default();
            let agent = Name::new(format!("node-{:02}", place / 2));
            let key = ChainKey { run, seq };
            let started = free[place] + dice.below(300) as i64;
            let mut attempt = Attempt { chain: key, number: 1 };
            let mut began = started;
            match dice.below(4000) {
                0..4 => {
                    let failure = TaskFailure {
                        task: names[step(seq)].into(),
                        message: "exit code 1".to_owned(),
                        ..TaskFailure::default()
                    };
                    let error = serde_json::to_string(&failure).unwrap_or_default();
                    let failed =
                        Requeue { attempt, failure: Some((started, started + 900, error)), not_before: 0 };
                    let start = Start { attempt, agent: agent.clone(), now: started };
                    store.apply(Batch { starts: vec![start], ..Batch::default() }).await?;
                    store.apply(Batch { requeues: vec![failed], ..Batch::default() }).await?;
                    store.waiting(i64::MAX).await?;
                    began = started + 1000;
                    attempt.number = 2;
                }
                4 => {
                    let lost = Name::new(format!("lost-{}", dice.below(8)));
                    let start = Start { attempt, agent: lost.clone(), now: started };
                    store.apply(Batch { starts: vec![start], ..Batch::default() }).await?;
                    store.release_agent(&lost, 9, "{}", started + 5000).await?;
                    began = started + 5200;
                    attempt.number = 2;
                }
                _ => {}
            }
            let ended = began + 2000 + dice.below(20_000) as i64;
            free[place] = ended;
            last = last.max(ended);
            batch.starts.push(Start { attempt, agent, now: began });
            batch.finishes.push(finish(attempt, began, ended));
        }
        // Ends come before beginnings within a batch.
        let finishes = std::mem::take(&mut batch.finishes);
        store.apply(batch).await?;
        store.apply(Batch { finishes, ..Batch::default() }).await?;
    }
    end(store, run, last).await
}

/// Steps that each have a name of their own, in a hundred layers.
async fn many_steps(store: &dyn Store, count: u64) -> Result<(), StoreError> {
    let wide = (count / 100).max(1);
    let mut text = "catena: 1\nname: pipeline\nsteps:\n".to_owned();
    for i in 0..count {
        let (layer, place) = (i / wide, i % wide);
        let before = |p: u64| format!("s{}", (layer - 1) * wide + p % wide);
        let after = if layer == 0 {
            String::new()
        } else {
            format!(", after: [{}, {}]", before(place), before(place + 1))
        };
        text += &format!("  s{i}: {{run: 'true'{after}}}\n");
    }
    let run = new_run(store, "pipeline", text).await?;
    let class = Class::default();
    for first in (0..count).step_by(PAGE as usize) {
        let page = first..(first + PAGE).min(count);
        let new =
            NewChains { run, first, chains: page.clone().map(|i| chain(&format!("s{i}"), &class)).collect() };
        store.apply(Batch { chains: vec![new], ..Batch::default() }).await?;
        let at = |seq: u64| BEGAN + (seq / wide) as i64 * 1000;
        let attempt = |seq: u64| Attempt { chain: ChainKey { run, seq }, number: 1 };
        let agent = |seq: u64| Name::new(format!("node-{:02}", seq % AGENTS as u64));
        let starts = page.clone().map(|seq| Start { attempt: attempt(seq), agent: agent(seq), now: at(seq) });
        store.apply(Batch { starts: starts.collect(), ..Batch::default() }).await?;
        let finishes = page.map(|seq| finish(attempt(seq), at(seq), at(seq) + 900));
        store.apply(Batch { finishes: finishes.collect(), ..Batch::default() }).await?;
    }
    end(store, run, BEGAN + (count / wide) as i64 * 1000).await
}
