//! Compositions and their history.

use super::SqliteStore;
use crate::compositions::{CompositionHead, CompositionWrite, Compositions, RECENT};
use crate::error::StoreError;
use async_trait::async_trait;
use catena_compose::model::{Cell, Composition, Kind, Row, RowChange, TABLES, from_rows, rows};
use catena_compose::room::Saved;
use catena_model::Name;
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension, Transaction, params, params_from_iter};

const HEAD: &str = "id, name, creator, created, seq, published, owner, until, term";

fn read_head(row: &rusqlite::Row<'_>) -> rusqlite::Result<CompositionHead> {
    Ok(CompositionHead {
        id: row.get(0)?,
        name: row.get(1)?,
        creator: row.get(2)?,
        created: row.get(3)?,
        seq: row.get::<_, i64>(4)? as u64,
        published: row.get(5)?,
        owner: row.get::<_, Option<String>>(6)?.map(Name::from),
        until: row.get(7)?,
        term: row.get::<_, i64>(8)? as u64,
    })
}

fn value(cell: &Cell) -> ToSqlOutput<'_> {
    match cell {
        Cell::Text(text) => ToSqlOutput::from(text.as_str()),
        Cell::Integer(n) => ToSqlOutput::from(*n),
        Cell::Real(n) => ToSqlOutput::from(*n),
    }
}

fn change_row(tx: &Transaction<'_>, id: &str, change: &RowChange) -> rusqlite::Result<()> {
    let (sql, cells) = match change {
        RowChange::Put(row) => {
            let table = &TABLES[row.table];
            let places = ", ?".repeat(table.columns.len());
            (format!("INSERT OR REPLACE INTO {} VALUES (?{places})", table.name), &row.cells[..])
        }
        RowChange::Remove(row) => {
            let table = &TABLES[row.table];
            let key: Vec<String> =
                table.columns[..table.key].iter().map(|(c, _)| format!(" AND {c} = ?")).collect();
            (format!("DELETE FROM {} WHERE composition = ?{}", table.name, key.concat()), row.key())
        }
    };
    let values = std::iter::once(ToSqlOutput::from(id)).chain(cells.iter().map(value));
    tx.prepare_cached(&sql)?.execute(params_from_iter(values)).map(|_| ())
}

fn read_rows(connection: &Connection, id: &str) -> rusqlite::Result<Vec<Row>> {
    let mut all = Vec::new();
    for (index, table) in TABLES.iter().enumerate() {
        let names: Vec<&str> = table.columns.iter().map(|(c, _)| *c).collect();
        let sql = format!("SELECT {} FROM {} WHERE composition = ?1", names.join(", "), table.name);
        let mut statement = connection.prepare_cached(&sql)?;
        let read = statement.query_map([id], |row| {
            let cells = table.columns.iter().enumerate().map(|(n, (_, kind))| match kind {
                Kind::Text => row.get(n).map(Cell::Text),
                Kind::Integer => row.get(n).map(Cell::Integer),
                Kind::Real => row.get(n).map(Cell::Real),
            });
            Ok(Row { table: index, cells: cells.collect::<rusqlite::Result<_>>()? })
        })?;
        for row in read {
            all.push(row?);
        }
    }
    Ok(all)
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[async_trait]
impl Compositions for SqliteStore {
    async fn create_composition(
        &self,
        id: &str,
        creator: &str,
        composition: &Composition,
        now: i64,
    ) -> Result<bool, StoreError> {
        self.transact(|tx| {
            let sql = "INSERT OR IGNORE INTO composition (id, name, creator, created, seq, last_number, until, term)
                       VALUES (?1, ?2, ?3, ?4, 0, 0, 0, 0)";
            if tx.execute(sql, params![id, composition.name, creator, now])? == 0 {
                return Ok(false);
            }
            for row in rows(composition) {
                change_row(tx, id, &RowChange::Put(row))?;
            }
            Ok(true)
        })
    }

    async fn compositions(&self) -> Result<Vec<CompositionHead>, StoreError> {
        self.with(|inner| {
            let sql = format!("SELECT {HEAD} FROM composition ORDER BY id");
            inner.connection.prepare_cached(&sql)?.query_map([], read_head)?.collect()
        })
    }

    async fn composition_head(&self, id: &str) -> Result<Option<CompositionHead>, StoreError> {
        self.with(|inner| {
            let sql = format!("SELECT {HEAD} FROM composition WHERE id = ?1");
            inner.connection.prepare_cached(&sql)?.query_row([id], read_head).optional()
        })
    }

    async fn delete_composition(&self, id: &str) -> Result<bool, StoreError> {
        self.transact(|tx| {
            let tables = TABLES.iter().map(|t| t.name).chain(["operation", "named_version", "lock_event"]);
            for table in tables {
                tx.execute(&format!("DELETE FROM {table} WHERE composition = ?1"), [id])?;
            }
            Ok(tx.execute("DELETE FROM composition WHERE id = ?1", [id])? > 0)
        })
    }

    async fn claim_composition(
        &self,
        id: &str,
        instance: &Name,
        now: i64,
        until: i64,
    ) -> Result<Option<CompositionHead>, StoreError> {
        self.transact(|tx| {
            let sql = "UPDATE composition SET term = term + (owner IS NOT ?2), owner = ?2, until = ?4
                       WHERE id = ?1 AND (owner IS ?2 OR until <= ?3)";
            tx.execute(sql, params![id, instance.as_str(), now, until])?;
            Ok(())
        })?;
        self.composition_head(id).await
    }

    async fn keep_compositions(&self, instance: &Name, until: i64) -> Result<(), StoreError> {
        self.with(|inner| {
            let sql = "UPDATE composition SET until = ?2 WHERE owner = ?1";
            inner.connection.prepare_cached(sql)?.execute(params![instance.as_str(), until]).map(|_| ())
        })
    }

    async fn load_composition(&self, id: &str) -> Result<Option<Saved>, StoreError> {
        self.with(|inner| {
            let connection = &inner.connection;
            let sql = "SELECT seq, last_number, published FROM composition WHERE id = ?1";
            let head = connection.query_row(sql, [id], |row| {
                Ok((
                    row.get::<_, i64>(0)? as u64,
                    row.get::<_, i64>(1)? as u64,
                    row.get::<_, Option<String>>(2)?,
                ))
            });
            let Some((seq, last_number, published)) = head.optional()? else { return Ok(None) };
            let composition = from_rows(read_rows(connection, id)?);
            let mut saved = Saved { composition, seq, last_number, ..Saved::default() };
            let sql =
                "SELECT operation_json FROM (SELECT seq, operation_json FROM operation WHERE composition = ?1
                       ORDER BY seq DESC LIMIT ?2) ORDER BY seq";
            let mut statement = connection.prepare_cached(sql)?;
            for text in statement.query_map(params![id, RECENT], |row| row.get::<_, String>(0))? {
                saved.operations.extend(serde_json::from_str(&text?).ok());
            }
            let sql = "SELECT version_json, composition_json FROM named_version WHERE composition = ?1
                       ORDER BY seq, name";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
            for texts in statement.query_map([id], read)? {
                let (version, composition) = texts?;
                let pair = serde_json::from_str(&version).ok().zip(serde_json::from_str(&composition).ok());
                saved.named.extend(pair);
            }
            let is_published = |name: &str| published.as_deref() == Some(name);
            saved.published = saved.named.iter().map(|(v, _)| v).find(|v| is_published(&v.name)).cloned();
            Ok(Some(saved))
        })
    }

    async fn write_composition(
        &self,
        id: &str,
        instance: &Name,
        term: u64,
        write: &CompositionWrite,
    ) -> Result<bool, StoreError> {
        self.transact(|tx| {
            let sql = "UPDATE composition SET seq = ?4, last_number = ?5, name = ?6, published = coalesce(?7, published)
                       WHERE id = ?1 AND owner = ?2 AND term = ?3";
            let values = params![
                id,
                instance.as_str(),
                term as i64,
                write.seq as i64,
                write.last_number as i64,
                write.name,
                write.published
            ];
            if tx.prepare_cached(sql)?.execute(values)? == 0 {
                return Ok(false);
            }
            for change in &write.rows {
                change_row(tx, id, change)?;
            }
            for (seq, operation) in &write.operations {
                tx.prepare_cached("INSERT INTO operation VALUES (?1, ?2, ?3)")?
                    .execute(params![id, *seq as i64, operation])?;
            }
            for (version, composition) in &write.versions {
                let values = params![id, version.name, version.seq as i64, json(version), json(composition)];
                tx.prepare_cached("INSERT INTO named_version VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(values)?;
            }
            for event in &write.locks {
                tx.prepare_cached("INSERT INTO lock_event (composition, event_json) VALUES (?1, ?2)")?
                    .execute(params![id, json(event)])?;
            }
            Ok(true)
        })
    }

    async fn operations(&self, id: &str, after: u64, limit: usize) -> Result<Vec<String>, StoreError> {
        self.with(|inner| {
            let sql = "SELECT operation_json FROM operation WHERE composition = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let mut statement = inner.connection.prepare_cached(sql)?;
            statement.query_map(params![id, after as i64, limit], |row| row.get(0))?.collect()
        })
    }

    async fn composition_version(&self, id: &str, name: &str) -> Result<Option<Composition>, StoreError> {
        self.with(|inner| {
            let sql = "SELECT composition_json FROM named_version WHERE composition = ?1 AND name = ?2";
            let text =
                inner.connection.query_row(sql, [id, name], |row| row.get::<_, String>(0)).optional()?;
            Ok(text.and_then(|t| serde_json::from_str(&t).ok()))
        })
    }

    async fn lock_events(&self, id: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.with(|inner| {
            let sql = "SELECT event_json FROM (SELECT id, event_json FROM lock_event WHERE composition = ?1
                       ORDER BY id DESC LIMIT ?2) ORDER BY id";
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let mut statement = inner.connection.prepare_cached(sql)?;
            statement.query_map(params![id, limit], |row| row.get(0))?.collect()
        })
    }
}
