//! Which files there are, and who has them.

use super::apply::rows;
use super::{PostgresStore, chains};
use crate::batch::Finish;
use crate::catalogue::{Catalogue, FileRecord, Holder, HoldingChange, Home};
use crate::error::StoreError;
use crate::record::ChainRecord;
use async_trait::async_trait;
use catena_model::Name;
use catena_model::chain::{Produced, RunId};
use catena_model::content::{Artifact, ContentId};
use deadpool_postgres::Transaction;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tokio_postgres::{Error, Row};

/// Files to be noted, by run and name: a statement can change a row once only.
type Files<'a> = BTreeMap<(RunId, &'a str), (Option<u64>, &'a Artifact)>;

/// Who has what, and whether it is kept.
type Holdings<'a> = BTreeMap<(ContentId, &'a str), bool>;

async fn put_files(tx: &Transaction<'_>, files: Files<'_>) -> Result<(), Error> {
    let runs: Vec<i64> = files.keys().map(|(run, _)| run.0).collect();
    let names: Vec<&str> = files.keys().map(|(_, name)| *name).collect();
    let chains: Vec<Option<i64>> = files.values().map(|(chain, _)| chain.map(|c| c as i64)).collect();
    let artifacts: Vec<String> =
        files.values().map(|(_, artifact)| serde_json::to_string(artifact).unwrap_or_default()).collect();
    let sql = "INSERT INTO file (run, name, chain, artifact)
               SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[])
               ON CONFLICT (run, name) DO UPDATE SET chain = excluded.chain, artifact = excluded.artifact";
    rows(tx, sql, &[&runs, &names, &chains, &artifacts]).await.map(|_| ())
}

/// Notes files that come with a run.
pub(super) async fn put_with_run(tx: &Transaction<'_>, run: RunId, files: &[Produced]) -> Result<(), Error> {
    let files: Files<'_> = files.iter().map(|f| ((run, f.name.as_str()), (None, &f.artifact))).collect();
    if files.is_empty() { Ok(()) } else { put_files(tx, files).await }
}

/// What somebody keeps already it goes on keeping.
async fn put_holdings(tx: &Transaction<'_>, holdings: Holdings<'_>) -> Result<(), Error> {
    let contents: Vec<&[u8]> = holdings.keys().map(|(content, _)| content.as_bytes().as_slice()).collect();
    let agents: Vec<&str> = holdings.keys().map(|(_, agent)| *agent).collect();
    let kept: Vec<bool> = holdings.values().copied().collect();
    let sql = "INSERT INTO holder AS h (content, agent, kept)
               SELECT * FROM unnest($1::bytea[], $2::text[], $3::boolean[])
               ON CONFLICT (content, agent) DO UPDATE SET kept = true WHERE excluded.kept AND NOT h.kept";
    rows(tx, sql, &[&contents, &agents, &kept]).await.map(|_| ())
}

/// Notes what attempts have written that ended their chains, each with its agent.
pub(super) async fn note_finished(
    tx: &Transaction<'_>,
    ends: impl Iterator<Item = (&Finish, &Option<String>)>,
) -> Result<(), Error> {
    let mut files = Files::new();
    let mut holdings = Holdings::new();
    for (finish, agent) in ends {
        let Some(agent) = agent else { continue };
        let chain = finish.attempt.chain;
        for file in &finish.files {
            files.insert((chain.run, file.name.as_str()), (Some(chain.seq), &file.artifact));
            holdings.insert((file.artifact.id(), agent.as_str()), true);
        }
    }
    if files.is_empty() {
        return Ok(());
    }
    put_files(tx, files).await?;
    put_holdings(tx, holdings).await
}

impl PostgresStore {
    fn read_json<T: DeserializeOwned>(&self, text: &str) -> Result<T, StoreError> {
        serde_json::from_str(text)
            .map_err(|e| StoreError::Other { path: PathBuf::from(self.place()), detail: e.to_string() })
    }

    /// Reads name, chain and artifact.
    fn read_file(&self, row: &Row) -> Result<FileRecord, StoreError> {
        Ok(FileRecord {
            name: row.get::<_, String>(0).into(),
            chain: row.get::<_, Option<i64>>(1).map(|c| c as u64),
            artifact: self.read_json(row.get(2))?,
        })
    }

    /// Reads content, agent and whether it is kept.
    fn read_holder(&self, row: &Row) -> Result<Holder, StoreError> {
        let content: &[u8] = row.get(0);
        let content: [u8; 32] = content.try_into().map_err(|_| StoreError::Other {
            path: PathBuf::from(self.place()),
            detail: "a content id has not 32 bytes".to_owned(),
        })?;
        Ok(Holder {
            content: ContentId::from(content),
            agent: row.get::<_, String>(1).into(),
            kept: row.get(2),
        })
    }
}

#[async_trait]
impl Catalogue for PostgresStore {
    async fn files(&self, run: RunId, names: &[Name]) -> Result<Vec<FileRecord>, StoreError> {
        let names: Vec<&str> = names.iter().map(Name::as_str).collect();
        let sql = "SELECT name, chain, artifact FROM file WHERE run = $1 AND name = ANY($2) ORDER BY name";
        let rows = self.rows(sql, &[&run.0, &names]).await?;
        rows.iter().map(|row| self.read_file(row)).collect()
    }

    async fn files_after(
        &self,
        run: RunId,
        after: &str,
        limit: usize,
    ) -> Result<Vec<FileRecord>, StoreError> {
        let sql =
            "SELECT name, chain, artifact FROM file WHERE run = $1 AND name > $2 ORDER BY name LIMIT $3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.rows(sql, &[&run.0, &after, &limit]).await?;
        rows.iter().map(|row| self.read_file(row)).collect()
    }

    async fn holders(&self, contents: &[ContentId]) -> Result<Vec<Holder>, StoreError> {
        let contents: Vec<&[u8]> = contents.iter().map(|c| c.as_bytes().as_slice()).collect();
        let sql = "SELECT content, agent, kept FROM holder WHERE content = ANY($1) ORDER BY content, agent";
        let rows = self.rows(sql, &[&contents]).await?;
        rows.iter().map(|row| self.read_holder(row)).collect()
    }

    async fn change_holdings(&self, changes: &[HoldingChange]) -> Result<(), StoreError> {
        let mut holds = Holdings::new();
        let mut lost = BTreeSet::new();
        for change in changes {
            let agent = change.agent.as_str();
            for (content, kept) in &change.holds {
                *holds.entry((*content, agent)).or_default() |= kept;
            }
            for content in &change.lost {
                holds.remove(&(*content, agent));
                lost.insert((*content, agent));
            }
        }
        let contents: Vec<&[u8]> = lost.iter().map(|(content, _)| content.as_bytes().as_slice()).collect();
        let agents: Vec<&str> = lost.iter().map(|(_, agent)| *agent).collect();
        let mut client = self.client().await?;
        let change = async {
            let tx = client.transaction().await?;
            // What was lost and is there again now is not kept because it was kept before.
            let sql = "DELETE FROM holder h USING unnest($1::bytea[], $2::text[]) AS l (content, agent)
                       WHERE h.content = l.content AND h.agent = l.agent";
            rows(&tx, sql, &[&contents, &agents]).await?;
            put_holdings(&tx, holds).await?;
            tx.commit().await
        };
        change.await.map_err(|e| self.error(&e))
    }

    async fn replace_holdings(&self, agent: &Name, holds: &[(ContentId, bool)]) -> Result<(), StoreError> {
        let mut holdings = Holdings::new();
        for (content, kept) in holds {
            *holdings.entry((*content, agent.as_str())).or_default() |= kept;
        }
        let mut client = self.client().await?;
        let replace = async {
            let tx = client.transaction().await?;
            rows(&tx, "DELETE FROM holder WHERE agent = $1", &[&agent.as_str()]).await?;
            put_holdings(&tx, holdings).await?;
            tx.commit().await
        };
        replace.await.map_err(|e| self.error(&e))
    }

    async fn put_home(&self, home: &Home) -> Result<(), StoreError> {
        let address = serde_json::to_string(&home.address).unwrap_or_default();
        let sql =
            "INSERT INTO home (id, address) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET address = $2";
        self.change(sql, &[&home.id.as_str(), &address]).await.map(|_| ())
    }

    async fn homes(&self) -> Result<Vec<Home>, StoreError> {
        let rows = self.rows("SELECT id, address FROM home ORDER BY id", &[]).await?;
        let read =
            |row: &Row| Ok(Home { id: row.get::<_, String>(0).into(), address: self.read_json(row.get(1))? });
        rows.iter().map(read).collect()
    }

    async fn reopen(&self, run: RunId, chains: &[u64]) -> Result<Vec<ChainRecord>, StoreError> {
        chains::reopen(self, run, chains).await
    }
}
