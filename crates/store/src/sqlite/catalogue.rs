//! Which files there are, and who has them.

use super::{SqliteStore, chains};
use crate::catalogue::{Catalogue, FileRecord, Holder, HoldingChange, Home};
use crate::error::StoreError;
use crate::record::ChainRecord;
use async_trait::async_trait;
use catena_model::Name;
use catena_model::chain::{Produced, RunId};
use catena_model::content::ContentId;
use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::de::DeserializeOwned;

/// A value that is kept as JSON.
fn read_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(e)))
}

/// Reads name, chain and artifact.
fn read_file(row: &Row<'_>) -> rusqlite::Result<FileRecord> {
    let chain: Option<i64> = row.get(1)?;
    Ok(FileRecord {
        name: row.get::<_, String>(0)?.into(),
        chain: chain.map(|c| c as u64),
        artifact: read_json(row, 2)?,
    })
}

/// Reads content, agent and whether it is kept.
fn read_holder(row: &Row<'_>) -> rusqlite::Result<Holder> {
    Ok(Holder {
        content: ContentId::from(row.get::<_, [u8; 32]>(0)?),
        agent: row.get::<_, String>(1)?.into(),
        kept: row.get(2)?,
    })
}

/// Notes a file of a run, in place of any of the same name.
pub(super) fn put_file(
    tx: &Transaction<'_>,
    run: RunId,
    chain: Option<u64>,
    file: &Produced,
) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO file (run, name, chain, artifact) VALUES (?1, ?2, ?3, ?4)";
    let artifact = serde_json::to_string(&file.artifact).unwrap_or_default();
    let values = params![run.0, file.name.as_str(), chain.map(|c| c as i64), artifact];
    tx.prepare_cached(sql)?.execute(values).map(|_| ())
}

/// Notes that somebody has some content. What it keeps already it goes on keeping.
pub(super) fn put_holder(
    tx: &Transaction<'_>,
    content: ContentId,
    agent: &str,
    kept: bool,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO holder (content, agent, kept) VALUES (?1, ?2, ?3)
               ON CONFLICT DO UPDATE SET kept = kept OR ?3";
    tx.prepare_cached(sql)?.execute(params![content.as_bytes(), agent, kept]).map(|_| ())
}

#[async_trait]
impl Catalogue for SqliteStore {
    async fn files(&self, run: RunId, names: &[Name]) -> Result<Vec<FileRecord>, StoreError> {
        let mut names: Vec<&str> = names.iter().map(Name::as_str).collect();
        names.sort_unstable();
        names.dedup();
        self.with(|inner| {
            let sql = "SELECT name, chain, artifact FROM file WHERE run = ?1 AND name = ?2";
            let mut statement = inner.connection.prepare_cached(sql)?;
            let mut files = Vec::new();
            for name in names {
                files.extend(statement.query_row(params![run.0, name], read_file).optional()?);
            }
            Ok(files)
        })
    }

    async fn files_after(
        &self,
        run: RunId,
        after: &str,
        limit: usize,
    ) -> Result<Vec<FileRecord>, StoreError> {
        self.with(|inner| {
            let sql =
                "SELECT name, chain, artifact FROM file WHERE run = ?1 AND name > ?2 ORDER BY name LIMIT ?3";
            let mut statement = inner.connection.prepare_cached(sql)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![run.0, after, limit], read_file)?;
            rows.collect()
        })
    }

    async fn holders(&self, contents: &[ContentId]) -> Result<Vec<Holder>, StoreError> {
        let mut contents = contents.to_vec();
        contents.sort_unstable();
        contents.dedup();
        self.with(|inner| {
            let sql = "SELECT content, agent, kept FROM holder WHERE content = ?1 ORDER BY agent";
            let mut statement = inner.connection.prepare_cached(sql)?;
            let mut holders = Vec::new();
            for content in contents {
                for holder in statement.query_map([content.as_bytes()], read_holder)? {
                    holders.push(holder?);
                }
            }
            Ok(holders)
        })
    }

    async fn change_holdings(&self, changes: &[HoldingChange]) -> Result<(), StoreError> {
        self.transact(|tx| {
            for change in changes {
                for (content, kept) in &change.holds {
                    put_holder(tx, *content, change.agent.as_str(), *kept)?;
                }
                let sql = "DELETE FROM holder WHERE content = ?1 AND agent = ?2";
                for content in &change.lost {
                    tx.prepare_cached(sql)?.execute(params![content.as_bytes(), change.agent.as_str()])?;
                }
            }
            Ok(())
        })
    }

    async fn replace_holdings(&self, agent: &Name, holds: &[(ContentId, bool)]) -> Result<(), StoreError> {
        self.transact(|tx| {
            tx.execute("DELETE FROM holder WHERE agent = ?1", [agent.as_str()])?;
            holds.iter().try_for_each(|(content, kept)| put_holder(tx, *content, agent.as_str(), *kept))
        })
    }

    async fn put_home(&self, home: &Home) -> Result<(), StoreError> {
        let address = serde_json::to_string(&home.address).unwrap_or_default();
        let sql = "INSERT OR REPLACE INTO home (id, address) VALUES (?1, ?2)";
        self.change(sql, params![home.id.as_str(), address]).map(|_| ())
    }

    async fn homes(&self) -> Result<Vec<Home>, StoreError> {
        self.all("SELECT id, address FROM home ORDER BY id", |row| {
            Ok(Home { id: row.get::<_, String>(0)?.into(), address: read_json(row, 1)? })
        })
    }

    async fn reopen(&self, run: RunId, chains: &[u64]) -> Result<Vec<ChainRecord>, StoreError> {
        self.transact(|tx| chains::reopen(tx, run, chains))
    }
}
