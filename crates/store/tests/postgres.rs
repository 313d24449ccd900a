//! The contract, kept by PostgreSQL.

use catena_store::{PostgresStore, Store, StoreError, contract};
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
