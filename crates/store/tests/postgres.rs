//! The contract, kept by PostgreSQL.

use catena_model::Name;
use catena_model::chain::{Attempt, ChainKey, ChainState, RunId};
use catena_store::{
    Applied, Batch, ChainFilter, Claim, Counts, Finish, NewChain, NewChains, NewRun, Pick, PostgresStore,
    Store, StoreError, contract,
};
use catena_testbed::Postgres;

#[tokio::test]
async fn keeps_the_contract() {
    let server = Postgres::start().unwrap();
    let store = PostgresStore::new(&server.url()).unwrap();
    store.prepare().await.unwrap();
    // A second instance finds everything prepared.
    PostgresStore::new(&server.url()).unwrap().prepare().await.unwrap();
    contract::all(&store).await;
    contract::claims_are_shared_without_overlap(&store, &PostgresStore::new(&server.url()).unwrap()).await;
    let client = connect(&server).await;
    for (table, run) in contract::TABLES_OF_RUNS {
        let sql =
            format!("SELECT count(*) FROM catena.{table} WHERE {run} NOT IN (SELECT id FROM catena.run)");
        let left: i64 = client.query_one(&sql, &[]).await.unwrap().get(0);
        assert_eq!(left, 0, "{table} of runs that were deleted");
    }
}

/// Several names for chains 0, 1, … of a run.
fn keys(run: RunId) -> impl DoubleEndedIterator<Item = ChainKey> {
    (0..CHAINS).map(move |seq| ChainKey { run, seq })
}

const CHAINS: u64 = 8;

/// Transactions that get in each other's way may be refused, and are tried again.
async fn insist(store: &PostgresStore, batch: Batch) -> Applied {
    loop {
        match store.apply(batch.clone()).await {
            Ok(applied) => return applied,
            Err(e) => assert!(e.is_transient(), "{e}"),
        }
    }
}

/// Finishes an attempt at each chain, and tells how many of the ends counted.
async fn finish(store: &PostgresStore, chains: Vec<ChainKey>, number: u32) -> usize {
    let end = |chain: ChainKey| Finish {
        attempt: Attempt { chain, number },
        state: ChainState::Succeeded,
        started: 1,
        ended: 2,
        result: b"r".to_vec(),
        error: None,
        files: Vec::new(),
        history: Vec::new(),
    };
    let finishes = chains.into_iter().map(end).collect();
    let applied = insist(store, Batch { finishes, ..Batch::default() }).await;
    applied.finished.into_iter().filter(|counted| *counted).count()
}

async fn copy(store: &PostgresStore, run: RunId, agent: &Name) {
    let copies = vec![Pick { chains: keys(run).rev().collect(), agent: agent.clone(), now: 1 }];
    insist(store, Batch { copies, ..Batch::default() }).await;
}

#[tokio::test]
async fn a_chain_commits_once_whoever_competes_for_it() {
    let server = Postgres::start().unwrap();
    let stores: Vec<PostgresStore> = (0..4).map(|_| PostgresStore::new(&server.url()).unwrap()).collect();
    stores[0].prepare().await.unwrap();
    let agents = ["a", "b", "c", "d"].map(Name::new);
    for _ in 0..60 {
        let store = &stores[0];
        let run = store.create_run(&NewRun::default()).await.unwrap();
        let chain = NewChain { class: "any".into(), priority: 0, rank: 0, payload: vec![1] };
        let chains = vec![NewChains { run, first: 0, chains: vec![chain; CHAINS as usize] }];
        let limit = CHAINS as usize;
        let claims = vec![Claim { class: "any".into(), limit, agent: agents[0].clone(), now: 1 }];
        store.apply(Batch { chains, claims, ..Batch::default() }).await.unwrap();
        copy(store, run, &agents[1]).await;
        let third = async {
            copy(&stores[2], run, &agents[2]).await;
            finish(&stores[2], keys(run).collect(), 3).await
        };
        let lost = async {
            copy(&stores[3], run, &agents[3]).await;
            while let Err(e) = stores[3].release_agent(&agents[0], 9, "{}", 1).await {
                assert!(e.is_transient(), "{e}");
            }
        };
        let (first, second, third, ()) = tokio::join!(
            finish(&stores[0], keys(run).collect(), 1),
            finish(&stores[1], keys(run).rev().collect(), 2),
            third,
            lost
        );
        assert_eq!(first + second + third, limit, "each chain has one result");
        assert_eq!(store.counts(run).await.unwrap(), Counts { succeeded: CHAINS, ..Counts::default() });
        assert_eq!(store.repair_counts(run).await.unwrap(), 0);
        assert!(store.chains_of(&agents).await.unwrap().is_empty());
    }
    let client = connect(&server).await;
    let left: i64 = client.query_one("SELECT count(*) FROM catena.copy", &[]).await.unwrap().get(0);
    assert_eq!(left, 0, "nothing is left of copies");
}

async fn connect(server: &Postgres) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn an_older_store_is_upgraded_in_place() {
    let server = Postgres::start().unwrap();
    let client = connect(&server).await;
    let first = 1_i64 << 32;
    // Chains that have succeeded, have failed with a result, and are tried again after that.
    let old = format!(
        "CREATE SCHEMA catena; SET search_path = catena; CREATE TABLE format (version integer NOT NULL);
         INSERT INTO format VALUES (1);
         {}
         INSERT INTO run (name, source, fingerprint, definition, state, created) VALUES ('old', '', '', '', 0, 1);
         INSERT INTO class (key) VALUES ('any');
         INSERT INTO chain (id, class, state, priority, rank, attempt, agent) VALUES
             ({first} + 0, 1, 3, 0, 0, 1, 'a'), ({first} + 1, 1, 4, 0, 0, 1, 'a'), ({first} + 2, 1, 0, 0, 0, 1, 'a');
         INSERT INTO payload (id, chain) VALUES ({first} + 0, '0'), ({first} + 1, '1'), ({first} + 2, '2');
         INSERT INTO result (id, result, number, after_chains) VALUES
             ({first} + 0, 'aa', 0, 3), ({first} + 1, 'bb', 1, 3), ({first} + 2, 'cc', 2, 3);
         INSERT INTO class_count VALUES (1, 1, 0, 1), (1, 1, 3, 1), (1, 1, 4, 1);",
        include_str!("../src/postgres/format1.sql")
    );
    client.batch_execute(&old).await.unwrap();
    let store = PostgresStore::new(&server.url()).unwrap();
    store.prepare().await.unwrap();
    let filter = ChainFilter { payload: true, result: true, ..ChainFilter::default() };
    let chains = store.chains(RunId(1), &filter).await.unwrap();
    let results: Vec<&[u8]> = chains.iter().map(|c| c.result.as_slice()).collect();
    assert_eq!(results, [&b"aa"[..], b"bb", b""], "what is tried again has no result yet");
    assert!(chains.iter().all(|c| c.history.is_empty() && c.payload.len() == 1));
    assert_eq!(store.retry_failed(RunId(1)).await.unwrap(), 1);
    let chains = store.chains(RunId(1), &filter).await.unwrap();
    assert_eq!((chains[0].state, chains[0].result.as_slice()), (ChainState::Succeeded, &b"aa"[..]));
    assert!(chains[1].result.is_empty(), "it had failed");
    contract::all(&store).await;
}

#[tokio::test]
async fn a_server_that_is_away_is_no_catastrophe() {
    let mut server = Postgres::start().unwrap();
    let store = PostgresStore::new(&server.url()).unwrap();
    store.prepare().await.unwrap();
    assert!(store.runs().await.unwrap().is_empty());
    server.kill();
    // The processes of a server that was killed may go on for a moment.
    let mut error = None;
    for _ in 0..500 {
        error = store.runs().await.err();
        if error.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(error.unwrap().is_transient());
    server.start_again().unwrap();
    // Connections that are gone are noticed when they are used.
    let mut runs = store.runs().await;
    for _ in 0..10 {
        if runs.is_ok() {
            break;
        }
        runs = store.runs().await;
    }
    assert!(runs.unwrap().is_empty());
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    let error = PostgresStore::new("postgres//nowhere").err().unwrap();
    assert!(matches!(error, StoreError::Other { .. }), "{error}");
}
