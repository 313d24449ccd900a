//! Files, and who has them.

use super::{add, apply_finish, chain, claim_for, finish, new_run};
use crate::{
    AgentRecord, Batch, Counts, Feed, FileRecord, Finish, Holder, HoldingChange, Home, NewRun, RunChange,
    Store,
};
use catena_model::Name;
use catena_model::chain::{ChainKey, ChainState, DataAddress, Phase, Produced, RunId};
use catena_model::content::{Artifact, ContentId, DirectoryRef, FileRef};

pub(super) async fn all(store: &dyn Store) {
    files_are_kept_by_run_and_name(store).await;
    what_a_chain_has_written_is_noted_if_its_end_counts(store).await;
    holders_come_and_go(store).await;
    a_removed_agent_holds_nothing(store).await;
    homes_are_kept(store).await;
    a_chain_can_be_opened_again(store).await;
    a_result_of_a_success_is_never_replaced(store).await;
}

fn file(name: &str, content: &str) -> Produced {
    let id = ContentId::of(content.as_bytes());
    let artifact = Artifact::File(FileRef { id, size: content.len() as u64, executable: true });
    Produced { name: name.into(), artifact }
}

async fn run_with(store: &dyn Store, files: Vec<Produced>) -> RunId {
    store.create_run(&NewRun { files, ..NewRun::default() }).await.unwrap()
}

fn names(files: &[FileRecord]) -> Vec<&str> {
    files.iter().map(|f| f.name.as_str()).collect()
}

async fn holders_of(store: &dyn Store, content: &str) -> Vec<(String, bool)> {
    let holders = store.holders(&[ContentId::of(content.as_bytes())]).await.unwrap();
    holders.into_iter().map(|h| (h.agent.to_string(), h.kept)).collect()
}

async fn files_are_kept_by_run_and_name(store: &dyn Store) {
    let directory = DirectoryRef { id: ContentId::of(b"d"), size: 4, files: 5, bytes: 6 };
    let directory = Produced { name: "/in/Dir".into(), artifact: Artifact::Directory(directory) };
    let files = vec![
        file("/in/b", "old"),
        directory.clone(),
        file("/in/a", "a"),
        file("/in/é", "e"),
        file("/in/b", "new"),
    ];
    let run = run_with(store, files).await;
    let other = run_with(store, vec![file("/in/b", "other")]).await;
    let wanted = ["/in/b", "/in/none", "/in/Dir", "/in/b"].map(Name::new);
    let found = store.files(run, &wanted).await.unwrap();
    assert_eq!(names(&found), ["/in/Dir", "/in/b"], "by name, in the order of bytes");
    assert_eq!((found[0].chain, &found[0].artifact), (None, &directory.artifact));
    assert_eq!(found[1].artifact, file("", "new").artifact, "the last one counts");
    let page = store.files_after(run, "", 3).await.unwrap();
    assert_eq!(names(&page), ["/in/Dir", "/in/a", "/in/b"]);
    let page = store.files_after(run, &page[2].name, 3).await.unwrap();
    assert_eq!(names(&page), ["/in/é"]);
    assert!(store.files(run, &[]).await.unwrap().is_empty());
    store.delete_run(run).await.unwrap();
    assert!(store.files_after(run, "", 9).await.unwrap().is_empty());
    assert_eq!(store.files_after(other, "", usize::MAX).await.unwrap().len(), 1);
}

async fn what_a_chain_has_written_is_noted_if_its_end_counts(store: &dyn Store) {
    let run = run_with(store, vec![file("/out/x", "before")]).await;
    add(store, run, 0, "written", &[0, 0]).await;
    let claimed = claim_for(store, "writer", "written", 2, 1).await;
    let copies = vec![super::giving::pick(run, &[0], "second writer")];
    store.apply(Batch { copies, ..Batch::default() }).await.unwrap();
    let end = |i: usize, files: Vec<Produced>| {
        let history = vec![(Phase::Queued, 1), (Phase::StageOut, 2)];
        Finish { files, history, ..finish(claimed[i].attempt, ChainState::Succeeded) }
    };
    let first = end(0, vec![file("/out/x", "x"), file("/out/same", "x"), file("/out/y", "shared")]);
    let late = end(0, vec![file("/out/x", "late")]);
    let second = end(1, vec![file("/out/z", "shared")]);
    let finishes = vec![first, late, second];
    let applied = store.apply(Batch { finishes, ..Batch::default() }).await.unwrap();
    assert_eq!(applied.finished, [true, false, true]);
    let files = store.files_after(run, "", 9).await.unwrap();
    let shown: Vec<_> = files.iter().map(|f| (f.name.as_str(), f.chain, f.artifact)).collect();
    let artifact = |content| file("", content).artifact;
    let expected = [
        ("/out/same", Some(0), artifact("x")),
        ("/out/x", Some(0), artifact("x")),
        ("/out/y", Some(0), artifact("shared")),
        ("/out/z", Some(1), artifact("shared")),
    ];
    assert_eq!(shown, expected);
    assert_eq!(holders_of(store, "x").await, [("writer".to_owned(), true)]);
    assert_eq!(holders_of(store, "shared").await, [("writer".to_owned(), true)]);
    assert!(holders_of(store, "late").await.is_empty() && holders_of(store, "before").await.is_empty());
    let history = chain(store, claimed[1].attempt.chain).await.history;
    assert_eq!(history, [(Phase::Queued, 1), (Phase::StageOut, 2)]);
}

async fn holders_come_and_go(store: &dyn Store) {
    let id = |content: &str| ContentId::of(content.as_bytes());
    let change = |agent: &str, holds: &[(&str, bool)], lost: &[&str]| HoldingChange {
        agent: agent.into(),
        holds: holds.iter().map(|(content, kept)| (id(content), *kept)).collect(),
        lost: lost.iter().map(|content| id(content)).collect(),
    };
    let changes = [
        change("h1", &[("m", false), ("n", true), ("m", false)], &[]),
        change("h2", &[("n", false), ("o", false)], &[]),
        change("h1", &[("n", false), ("o", true)], &["o"]),
    ];
    store.change_holdings(&changes).await.unwrap();
    assert_eq!(holders_of(store, "m").await, [("h1".to_owned(), false)]);
    let both = [("h1".to_owned(), true), ("h2".to_owned(), false)];
    assert_eq!(holders_of(store, "n").await, both, "what is kept goes on being kept");
    assert_eq!(holders_of(store, "o").await, [("h2".to_owned(), false)], "what is lost is not there");
    let all = store.holders(&[id("o"), id("m"), id("n"), id("n"), id("nothing")]).await.unwrap();
    assert_eq!(all.len(), 4);
    let order = |h: &Holder| (h.content, h.agent.clone());
    assert!(all.windows(2).all(|w| order(&w[0]) < order(&w[1])), "by content and name");

    let changes = [change("h1", &[], &["n", "unknown"]), change("h1", &[("n", false), ("m", true)], &[])];
    store.change_holdings(&changes).await.unwrap();
    assert_eq!(holders_of(store, "n").await[0], ("h1".to_owned(), false), "it was lost in between");
    assert_eq!(holders_of(store, "m").await, [("h1".to_owned(), true)]);

    let holds = [(id("m"), false), (id("p"), true), (id("p"), false)];
    store.replace_holdings(&"h1".into(), &holds).await.unwrap();
    assert_eq!(holders_of(store, "m").await, [("h1".to_owned(), false)]);
    assert_eq!(holders_of(store, "n").await, [("h2".to_owned(), false)], "others are not concerned");
    assert_eq!(holders_of(store, "p").await, [("h1".to_owned(), true)]);
    store.replace_holdings(&"h1".into(), &[]).await.unwrap();
    assert!(holders_of(store, "p").await.is_empty());
    store.change_holdings(&[]).await.unwrap();
    assert!(store.holders(&[]).await.unwrap().is_empty());
}

async fn a_removed_agent_holds_nothing(store: &dyn Store) {
    let agent = AgentRecord { id: "leaver".into(), incarnation: 3, ..AgentRecord::default() };
    store.greet_agent(&agent, 1).await.unwrap();
    let held = ContentId::of(b"left");
    store.replace_holdings(&agent.id, &[(held, true)]).await.unwrap();
    store.replace_holdings(&"stayer".into(), &[(held, true)]).await.unwrap();
    store.remove_agent(&agent.id, 2).await.unwrap();
    assert_eq!(store.holders(&[held]).await.unwrap().len(), 2, "another incarnation went");
    store.remove_agent(&agent.id, 3).await.unwrap();
    assert_eq!(holders_of(store, "left").await, [("stayer".to_owned(), true)]);
}

async fn homes_are_kept(store: &dyn Store) {
    let home = |id: &str, url: &str| {
        let address = DataAddress { url: url.into(), token: "secret".into() };
        Home { id: id.into(), address }
    };
    for (id, url) in [("second", "http://b"), ("first", "http://a"), ("second", "http://c")] {
        store.put_home(&home(id, url)).await.unwrap();
    }
    assert_eq!(store.homes().await.unwrap(), [home("first", "http://a"), home("second", "http://c")]);
}

async fn succeed(store: &dyn Store, class: &str, result: &str) {
    let claimed = claim_for(store, "worker", class, 9, 1).await;
    for c in claimed {
        let history = vec![(Phase::Running, 1)];
        let end = finish(c.attempt, ChainState::Succeeded);
        assert!(apply_finish(store, Finish { result: result.as_bytes().to_vec(), history, ..end }).await);
    }
}

async fn a_chain_can_be_opened_again(store: &dyn Store) {
    let run = new_run(store, "reopened").await;
    add(store, run, 0, "reopened", &[4, 0, 0]).await;
    let losses = claim_for(store, "unlucky", "reopened", 1, 1).await;
    store.release_agent(&"unlucky".into(), 9, "{}", 2).await.unwrap();
    let failed = claim_for(store, "unlucky", "reopened", 1, 1).await;
    assert_eq!(failed[0].attempt.chain, losses[0].attempt.chain);
    assert!(super::apply_requeue(store, failed[0].attempt, Some("{}"), 5).await);
    store.waiting(5).await.unwrap();
    succeed(store, "reopened", "r").await;
    add(store, run, 3, "reopened", &[0]).await;
    let opened = store.reopen(run, &[3, 0, 1, 0, 17]).await.unwrap();
    assert_eq!(opened.iter().map(|c| c.key.seq).collect::<Vec<_>>(), [0, 1], "the others had not succeeded");
    let first = &opened[0];
    assert_eq!((first.state, first.class.as_str(), first.rank), (ChainState::Registered, "reopened", 4000));
    assert_eq!((first.attempt, first.losses, first.failures, first.not_before), (3, 0, 0, 0));
    assert!(first.history.is_empty() && first.payload.is_empty());
    assert_eq!(
        *first,
        crate::ChainRecord { payload: Vec::new(), result: Vec::new(), ..chain(store, first.key).await }
    );
    let expected = Counts { registered: 3, succeeded: 1, ..Counts::default() };
    assert_eq!(store.counts(run).await.unwrap(), expected);
    assert_eq!(store.repair_counts(run).await.unwrap(), 0);
    let again = claim_for(store, "worker", "reopened", 1, 1).await;
    assert_eq!((again[0].attempt.chain.seq, again[0].attempt.number, again[0].failures), (0, 4, 0));
    assert!(store.reopen(run, &[0]).await.unwrap().is_empty(), "it is running");
}

async fn result_of(store: &dyn Store, run: RunId, seq: u64) -> Vec<u8> {
    chain(store, ChainKey { run, seq }).await.result
}

async fn a_result_of_a_success_is_never_replaced(store: &dyn Store) {
    let run = new_run(store, "used").await;
    add(store, run, 0, "used", &[0, 0]).await;
    succeed(store, "used", "first").await;
    let feed = Feed { run, first: 0, after_chains: 2, chains: vec![0] };
    store.apply(Batch { feeds: vec![feed], ..Batch::default() }).await.unwrap();
    store.reopen(run, &[0, 1]).await.unwrap();
    succeed(store, "used", "second").await;
    assert_eq!(result_of(store, run, 0).await, b"first", "it was used");
    assert_eq!(result_of(store, run, 1).await, b"first", "it may be about to be used");
    assert_eq!(store.unused_results(run, 9).await.unwrap(), [(1, b"first".to_vec())]);
    assert_eq!(store.feeds(run).await.unwrap().len(), 1);

    store.reopen(run, &[0, 1]).await.unwrap();
    let claimed = claim_for(store, "worker", "used", 1, 1).await;
    assert!(apply_finish(store, finish(claimed[0].attempt, ChainState::Failed)).await);
    store.move_chains(run, ChainState::Registered, ChainState::Cancelled).await.unwrap();
    assert_eq!(store.retry_failed(run).await.unwrap(), 2);
    assert_eq!(result_of(store, run, 0).await, b"first", "a later failure does not undo it");
    assert_eq!(result_of(store, run, 1).await, b"first");
    assert_eq!(store.feeds(run).await.unwrap().len(), 1);
    let end = RunChange { cancel_requested: Some(true), ..RunChange::default() };
    store.change_run(run, &end).await.unwrap();
}
