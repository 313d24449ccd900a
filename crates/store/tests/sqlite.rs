//! The contract on SQLite, and what happens when the file is not as it should be.

use catena_store::{SqliteOptions, SqliteStore, Store, StoreError, contract};
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
