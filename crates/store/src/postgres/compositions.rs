//! Compositions and their history.

use super::PostgresStore;
use crate::compositions::{CompositionHead, CompositionWrite, Compositions, RECENT};
use crate::error::StoreError;
use async_trait::async_trait;
use catena_compose::model::{Cell, Composition, Kind, RowChange, TABLES, from_rows, rows};
use catena_compose::room::Saved;
use catena_model::Name;
use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

const HEAD: &str = "id, name, creator, created, seq, published, owner, until, term";

fn read_head(row: &Row) -> CompositionHead {
    CompositionHead {
        id: row.get(0),
        name: row.get(1),
        creator: row.get(2),
        created: row.get(3),
        seq: row.get::<_, i64>(4) as u64,
        published: row.get(5),
        owner: row.get::<_, Option<String>>(6).map(Name::from),
        until: row.get(7),
        term: row.get::<_, i64>(8) as u64,
    }
}

fn value(cell: &Cell) -> &(dyn ToSql + Sync) {
    match cell {
        Cell::Text(text) => text,
        Cell::Integer(n) => n,
        Cell::Real(n) => n,
    }
}

async fn change_row(tx: &Transaction<'_>, id: &str, change: &RowChange) -> Result<(), Error> {
    let (sql, cells) = match change {
        RowChange::Put(row) => {
            let table = &TABLES[row.table];
            let names: Vec<&str> = table.columns.iter().map(|(c, _)| *c).collect();
            let places: Vec<String> = (2..names.len() + 2).map(|n| format!("${n}")).collect();
            let set: Vec<String> = names[table.key..].iter().map(|c| format!("{c} = excluded.{c}")).collect();
            let set =
                if set.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {}", set.join(", ")) };
            let sql = format!(
                "INSERT INTO {} (composition, {}) VALUES ($1, {}) ON CONFLICT (composition, {}) DO {set}",
                table.name,
                names.join(", "),
                places.join(", "),
                names[..table.key].join(", "),
            );
            (sql, &row.cells[..])
        }
        RowChange::Remove(row) => {
            let table = &TABLES[row.table];
            let keys = table.columns[..table.key].iter().zip(2..);
            let key: Vec<String> = keys.map(|((c, _), n)| format!(" AND {c} = ${n}")).collect();
            (format!("DELETE FROM {} WHERE composition = $1{}", table.name, key.concat()), row.key())
        }
    };
    let statement = tx.prepare_cached(&sql).await?;
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&id];
    values.extend(cells.iter().map(value));
    tx.execute(&statement, &values).await.map(|_| ())
}

async fn execute(tx: &Transaction<'_>, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<u64, Error> {
    let statement = tx.prepare_cached(sql).await?;
    tx.execute(&statement, values).await
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

async fn write_down(
    tx: &Transaction<'_>,
    id: &str,
    instance: &Name,
    term: u64,
    write: &CompositionWrite,
) -> Result<bool, Error> {
    let sql =
        "UPDATE composition SET seq = $4, last_number = $5, name = $6, published = coalesce($7, published)
               WHERE id = $1 AND owner = $2 AND term = $3";
    let (term, seq, last_number) = (term as i64, write.seq as i64, write.last_number as i64);
    let instance = instance.as_str();
    if execute(tx, sql, &[&id, &instance, &term, &seq, &last_number, &write.name, &write.published]).await?
        == 0
    {
        return Ok(false);
    }
    for change in &write.rows {
        change_row(tx, id, change).await?;
    }
    if !write.operations.is_empty() {
        let numbers: Vec<i64> = write.operations.iter().map(|(seq, _)| *seq as i64).collect();
        let texts: Vec<&str> = write.operations.iter().map(|(_, text)| text.as_str()).collect();
        let sql = "INSERT INTO operation SELECT $1, * FROM unnest($2::bigint[], $3::text[])";
        execute(tx, sql, &[&id, &numbers, &texts]).await?;
    }
    for (version, composition) in &write.versions {
        let sql = "INSERT INTO named_version VALUES ($1, $2, $3, $4, $5)";
        let (seq, told, made) = (version.seq as i64, json(version), json(composition));
        execute(tx, sql, &[&id, &version.name, &seq, &told, &made]).await?;
    }
    if !write.locks.is_empty() {
        let events: Vec<String> = write.locks.iter().map(json).collect();
        let sql = "INSERT INTO lock_event (composition, event_json) SELECT $1, * FROM unnest($2::text[])";
        execute(tx, sql, &[&id, &events]).await?;
    }
    Ok(true)
}

#[async_trait]
impl Compositions for PostgresStore {
    async fn create_composition(
        &self,
        id: &str,
        creator: &str,
        composition: &Composition,
        now: i64,
    ) -> Result<bool, StoreError> {
        let mut client = self.client().await?;
        let create = async {
            let tx = client.transaction().await?;
            let sql = "INSERT INTO composition (id, name, creator, created, seq, last_number, until, term)
                       VALUES ($1, $2, $3, $4, 0, 0, 0, 0) ON CONFLICT DO NOTHING";
            if execute(&tx, sql, &[&id, &composition.name, &creator, &now]).await? == 0 {
                return Ok(false);
            }
            for row in rows(composition) {
                change_row(&tx, id, &RowChange::Put(row)).await?;
            }
            tx.commit().await?;
            Ok(true)
        };
        create.await.map_err(|e| self.error(&e))
    }

    async fn compositions(&self) -> Result<Vec<CompositionHead>, StoreError> {
        let sql = format!("SELECT {HEAD} FROM composition ORDER BY id");
        Ok(self.rows(&sql, &[]).await?.iter().map(read_head).collect())
    }

    async fn composition_head(&self, id: &str) -> Result<Option<CompositionHead>, StoreError> {
        let rows = self.rows(&format!("SELECT {HEAD} FROM composition WHERE id = $1"), &[&id]).await?;
        Ok(rows.first().map(read_head))
    }

    async fn delete_composition(&self, id: &str) -> Result<bool, StoreError> {
        let mut client = self.client().await?;
        let delete = async {
            let tx = client.transaction().await?;
            let tables = TABLES.iter().map(|t| t.name).chain(["operation", "named_version", "lock_event"]);
            for table in tables {
                execute(&tx, &format!("DELETE FROM {table} WHERE composition = $1"), &[&id]).await?;
            }
            let removed = execute(&tx, "DELETE FROM composition WHERE id = $1", &[&id]).await?;
            tx.commit().await?;
            Ok(removed > 0)
        };
        delete.await.map_err(|e| self.error(&e))
    }

    async fn claim_composition(
        &self,
        id: &str,
        instance: &Name,
        now: i64,
        until: i64,
    ) -> Result<Option<CompositionHead>, StoreError> {
        let sql = "UPDATE composition SET owner = $2, until = $4,
                   term = term + CASE WHEN owner IS NOT DISTINCT FROM $2 THEN 0 ELSE 1 END
                   WHERE id = $1 AND (owner IS NOT DISTINCT FROM $2 OR until <= $3)";
        self.change(sql, &[&id, &instance.as_str(), &now, &until]).await?;
        self.composition_head(id).await
    }

    async fn keep_compositions(&self, instance: &Name, until: i64) -> Result<(), StoreError> {
        let sql = "UPDATE composition SET until = $2 WHERE owner = $1";
        self.change(sql, &[&instance.as_str(), &until]).await.map(|_| ())
    }

    async fn load_composition(&self, id: &str) -> Result<Option<Saved>, StoreError> {
        let sql = "SELECT seq, last_number, published FROM composition WHERE id = $1";
        let heads = self.rows(sql, &[&id]).await?;
        let Some(head) = heads.first() else { return Ok(None) };
        let client = self.client().await?;
        // All questions are asked at once, over one connection.
        let read = TABLES.iter().enumerate().map(|(index, table)| {
            let client = &client;
            async move {
                let names: Vec<&str> = table.columns.iter().map(|(c, _)| *c).collect();
                let sql = format!("SELECT {} FROM {} WHERE composition = $1", names.join(", "), table.name);
                let rows = client.query(&client.prepare_cached(&sql).await?, &[&id]).await?;
                let row = |row: &Row| {
                    let cell = |(n, (_, kind)): (usize, &(&str, Kind))| match kind {
                        Kind::Text => Cell::Text(row.get(n)),
                        Kind::Integer => Cell::Integer(row.get(n)),
                        Kind::Real => Cell::Real(row.get(n)),
                    };
                    let cells = table.columns.iter().enumerate().map(cell).collect();
                    catena_compose::model::Row { table: index, cells }
                };
                Ok::<_, Error>(rows.iter().map(row).collect::<Vec<_>>())
            }
        });
        let all = futures_util::future::try_join_all(read).await.map_err(|e| self.error(&e))?;
        drop(client);
        let mut saved = Saved {
            composition: from_rows(all.into_iter().flatten()),
            seq: head.get::<_, i64>(0) as u64,
            last_number: head.get::<_, i64>(1) as u64,
            ..Saved::default()
        };
        let sql =
            "SELECT operation_json FROM (SELECT seq, operation_json FROM operation WHERE composition = $1
                   ORDER BY seq DESC LIMIT $2) AS latest ORDER BY seq";
        for row in self.rows(sql, &[&id, &RECENT]).await? {
            saved.operations.extend(serde_json::from_str(row.get(0)).ok());
        }
        let sql = "SELECT version_json, composition_json FROM named_version WHERE composition = $1 ORDER BY seq, name";
        for row in self.rows(sql, &[&id]).await? {
            saved
                .named
                .extend(serde_json::from_str(row.get(0)).ok().zip(serde_json::from_str(row.get(1)).ok()));
        }
        let published: Option<String> = head.get(2);
        let is_published = |name: &str| published.as_deref() == Some(name);
        saved.published = saved.named.iter().map(|(v, _)| v).find(|v| is_published(&v.name)).cloned();
        Ok(Some(saved))
    }

    async fn write_composition(
        &self,
        id: &str,
        instance: &Name,
        term: u64,
        write: &CompositionWrite,
    ) -> Result<bool, StoreError> {
        let mut client = self.client().await?;
        let written = async {
            let tx = client.transaction().await?;
            let written = write_down(&tx, id, instance, term, write).await?;
            tx.commit().await?;
            Ok(written)
        };
        written.await.map_err(|e| self.error(&e))
    }

    async fn operations(&self, id: &str, after: u64, limit: usize) -> Result<Vec<String>, StoreError> {
        let sql =
            "SELECT operation_json FROM operation WHERE composition = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.rows(sql, &[&id, &(after as i64), &limit]).await?;
        Ok(rows.iter().map(|r| r.get(0)).collect())
    }

    async fn composition_version(&self, id: &str, name: &str) -> Result<Option<Composition>, StoreError> {
        let sql = "SELECT composition_json FROM named_version WHERE composition = $1 AND name = $2";
        let rows = self.rows(sql, &[&id, &name]).await?;
        Ok(rows.first().and_then(|r| serde_json::from_str(r.get(0)).ok()))
    }

    async fn lock_events(&self, id: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT event_json FROM (SELECT id, event_json FROM lock_event WHERE composition = $1
                   ORDER BY id DESC LIMIT $2) AS latest ORDER BY id";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Ok(self.rows(sql, &[&id, &limit]).await?.iter().map(|r| r.get(0)).collect())
    }
}
