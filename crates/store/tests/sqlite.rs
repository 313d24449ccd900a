//! The contract on SQLite, and what happens when the file is not as it should be.

use catena_model::chain::{ChainState, RunId};
use catena_store::{ChainFilter, Members, SqliteOptions, SqliteStore, Store, StoreError, contract};
use std::path::{Path, PathBuf};

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, SqliteOptions::default())
}

fn file(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("catena.db")
}

#[tokio::test]
async fn sqlite_fulfils_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    contract::all(&open(&file(&dir)).unwrap()).await;
    let connection = rusqlite::Connection::open(file(&dir)).unwrap();
    for (table, run) in contract::TABLES_OF_RUNS {
        let sql = format!("SELECT count(*) FROM {table} WHERE {run} NOT IN (SELECT id FROM run)");
        let left: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table} of runs that were deleted");
    }
}

#[tokio::test]
async fn what_was_applied_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let run = {
        let store = open(&file(&dir)).unwrap();
        store.create_run(&catena_store::NewRun { name: "x".into(), ..Default::default() }).await.unwrap()
    };
    let store = open(&file(&dir)).unwrap();
    assert_eq!(store.run(run).await.unwrap().unwrap().name, "x");
}

/// A store as the first version with several instances has left it: an agent, and chains that have succeeded, have
/// failed with a result, and are tried again after that.
fn make_old_store(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(include_str!("../src/sqlite/format1.sql")).unwrap();
    connection.execute_batch(include_str!("../src/sqlite/format2.sql")).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA application_id = {1}; PRAGMA user_version = 2;
             INSERT INTO run (id, name, source, fingerprint, definition, state, created)
                 VALUES (1, 'old', '', '', x'', 0, 1);
             INSERT INTO class (id, key) VALUES (1, 'any');
             INSERT INTO chain (id, class, state, priority, attempt, agent) VALUES
                 ({0} + 0, 1, 3, 0, 1, 'a'), ({0} + 1, 1, 4, 0, 1, 'a'), ({0} + 2, 1, 0, 0, 1, 'a');
             INSERT INTO payload (id, chain) VALUES ({0} + 0, x'00'), ({0} + 1, x'01'), ({0} + 2, x'02');
             INSERT INTO result (id, result, number, after_chains) VALUES
                 ({0} + 0, x'aa', 0, 3), ({0} + 1, x'bb', 1, 3), ({0} + 2, x'cc', 2, 3);
             INSERT INTO class_count VALUES (1, 1, 0, 1), (1, 1, 3, 1), (1, 1, 4, 1);
             INSERT INTO agent (id, incarnation, capabilities, resources, joined, seen)
                 VALUES ('a', 7, '[]', '{{}}', 1, 1);",
            1_i64 << 32,
            0x6361_7465
        ))
        .unwrap();
}

#[tokio::test]
async fn an_older_store_is_upgraded_in_place() {
    let dir = tempfile::tempdir().unwrap();
    make_old_store(&file(&dir));
    let store = open(&file(&dir)).unwrap();
    let filter = ChainFilter { payload: true, result: true, ..ChainFilter::default() };
    let chains = store.chains(RunId(1), &filter).await.unwrap();
    let results: Vec<&[u8]> = chains.iter().map(|c| c.result.as_slice()).collect();
    assert_eq!(results, [&[0xaa][..], &[0xbb], &[]], "what is tried again has no result yet");
    assert!(chains.iter().all(|c| c.history.is_empty() && c.payload.len() == 1));
    assert_eq!(store.agents().await.unwrap()[0].data, None);
    assert_eq!(store.retry_failed(RunId(1)).await.unwrap(), 1);
    let chains = store.chains(RunId(1), &filter).await.unwrap();
    assert_eq!((chains[0].state, chains[0].result.as_slice()), (ChainState::Succeeded, &[0xaa][..]));
    assert!(chains[1].result.is_empty(), "it had failed");
    assert_eq!(store.repair_counts(RunId(1)).await.unwrap(), 0);
    store.remove_agent(&"a".into(), 7).await.unwrap();
    contract::all(&store).await;
}

#[tokio::test]
async fn an_older_store_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    make_old_store(&file(&dir));
    let store = SqliteStore::open(&file(&dir), SqliteOptions { read_only: true }).unwrap();
    assert_eq!(store.chains(RunId(1), &ChainFilter::default()).await.unwrap().len(), 3);
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(&file(&dir)).unwrap());
    let connection = rusqlite::Connection::open(file(&dir)).unwrap();
    connection.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(connection);
    let before = std::fs::read(file(&dir)).unwrap();
    let error = open(&file(&dir)).err().unwrap();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert_eq!(std::fs::read(file(&dir)).unwrap(), before);
}

#[test]
fn a_file_that_is_no_store_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let text = "dear diary, ".repeat(1000);
    std::fs::write(file(&dir), &text).unwrap();
    let error = open(&file(&dir)).err().unwrap();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(file(&dir)).unwrap(), text);
}

#[tokio::test]
async fn a_damaged_store_says_so() {
    let dir = tempfile::tempdir().unwrap();
    {
        let store = open(&file(&dir)).unwrap();
        for _ in 0..200 {
            let definition = vec![7; 500];
            store.create_run(&catena_store::NewRun { definition, ..Default::default() }).await.unwrap();
        }
    }
    let mut bytes = std::fs::read(file(&dir)).unwrap();
    let end = bytes.len();
    bytes[4096..end].fill(0xAB);
    std::fs::write(file(&dir), &bytes).unwrap();
    let error = match open(&file(&dir)) {
        Err(e) => e,
        Ok(store) => store.runs().await.err().unwrap(),
    };
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[test]
fn a_place_that_cannot_be_written_says_so() {
    let dir = tempfile::tempdir().unwrap();
    // A file where a directory should be cannot be written into, not even by root.
    std::fs::write(dir.path().join("file"), "").unwrap();
    let error = open(&dir.path().join("file/catena.db")).err().unwrap();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
}
