//! Who shares the store.

use super::SqliteStore;
use crate::error::StoreError;
use crate::members::{AgentRecord, Instance, Machine, MachineState, Members, Token, data_text};
use async_trait::async_trait;
use catena_model::Name;
use rusqlite::{Row, params};
use std::time::{SystemTime, UNIX_EPOCH};

fn read_instance(row: &Row<'_>) -> rusqlite::Result<Instance> {
    Ok(Instance {
        id: row.get::<_, String>("id")?.into(),
        roles: row.get("roles")?,
        host: row.get("host")?,
        since: row.get("since")?,
        until: row.get("until")?,
    })
}

fn read_agent(row: &Row<'_>) -> rusqlite::Result<AgentRecord> {
    let capabilities: String = row.get("capabilities")?;
    let resources: String = row.get("resources")?;
    let data: Option<String> = row.get("data")?;
    Ok(AgentRecord {
        id: row.get::<_, String>("id")?.into(),
        incarnation: row.get::<_, i64>("incarnation")? as u64,
        capabilities: serde_json::from_str(&capabilities).unwrap_or_default(),
        resources: serde_json::from_str(&resources).unwrap_or_default(),
        scheduler: row.get::<_, Option<String>>("scheduler")?.map(Into::into),
        joined: row.get("joined")?,
        seen: row.get("seen")?,
        data: data.and_then(|d| serde_json::from_str(&d).ok()),
    })
}

fn read_machine(row: &Row<'_>) -> rusqlite::Result<Machine> {
    let state: String = row.get("state")?;
    Ok(Machine {
        id: row.get::<_, String>("id")?.into(),
        setup: row.get::<_, String>("setup")?.into(),
        state: MachineState::from_name(&state).unwrap_or(MachineState::Failed),
        handle: row.get("handle")?,
        created: row.get("created")?,
        changed: row.get("changed")?,
        reason: row.get("reason")?,
    })
}

fn read_token(row: &Row<'_>) -> rusqlite::Result<Token> {
    Ok(Token {
        name: row.get("name")?,
        role: row.get("role")?,
        hash: row.get("hash")?,
        created: row.get("created")?,
        expires: row.get("expires")?,
    })
}

impl SqliteStore {
    pub(super) fn all<T>(
        &self,
        sql: &str,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.with(|inner| {
            let mut statement = inner.connection.prepare_cached(sql)?;
            let rows = statement.query_map([], read)?;
            rows.collect()
        })
    }

    pub(super) fn change(&self, sql: &str, values: impl rusqlite::Params) -> Result<usize, StoreError> {
        self.with(|inner| inner.connection.prepare_cached(sql)?.execute(values))
    }
}

#[async_trait]
impl Members for SqliteStore {
    async fn now(&self) -> Result<i64, StoreError> {
        Ok(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64))
    }

    async fn enlist(&self, i: &Instance) -> Result<(), StoreError> {
        let sql = "INSERT INTO instance (id, roles, host, since, until) VALUES (?1, ?2, ?3, ?4, ?5)
                   ON CONFLICT DO UPDATE SET until = ?5";
        self.change(sql, params![i.id.as_str(), i.roles, i.host, i.since, i.until]).map(|_| ())
    }

    async fn resign(&self, instance: &Name) -> Result<(), StoreError> {
        self.change("DELETE FROM duty WHERE holder = ?1", [instance.as_str()])?;
        self.change("DELETE FROM instance WHERE id = ?1", [instance.as_str()]).map(|_| ())
    }

    async fn instances(&self, now: i64) -> Result<Vec<Instance>, StoreError> {
        self.change("DELETE FROM instance WHERE until < ?1 - 86400000", [now])?;
        let all = self.all("SELECT * FROM instance ORDER BY since, id", read_instance)?;
        Ok(all.into_iter().filter(|i| i.until > now).collect())
    }

    async fn take_duty(&self, duty: &str, holder: &Name, until: i64, now: i64) -> Result<bool, StoreError> {
        let sql = "INSERT INTO duty (name, holder, until) VALUES (?1, ?2, ?3)
                   ON CONFLICT DO UPDATE SET holder = ?2, until = ?3 WHERE holder = ?2 OR until <= ?4";
        Ok(self.change(sql, params![duty, holder.as_str(), until, now])? > 0)
    }

    async fn adopt_agent(&self, a: &AgentRecord, now: i64) -> Result<Option<u64>, StoreError> {
        let before = self.all("SELECT * FROM agent", read_agent)?.into_iter().find(|b| b.id == a.id);
        let before = before.map_or(a.incarnation, |b| b.incarnation);
        let sql = "INSERT INTO agent (id, incarnation, capabilities, resources, scheduler, joined, seen, data)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)
                   ON CONFLICT DO UPDATE SET incarnation = ?2, capabilities = ?3, resources = ?4, scheduler = ?5, data = ?7,
                       joined = CASE WHEN incarnation = ?2 THEN joined ELSE ?6 END, seen = ?6
                   WHERE scheduler IS NULL OR scheduler = ?5
                       OR scheduler NOT IN (SELECT id FROM instance WHERE until > ?6)";
        let values = params![
            a.id.as_str(),
            a.incarnation as i64,
            serde_json::to_string(&a.capabilities).unwrap_or_default(),
            serde_json::to_string(&a.resources).unwrap_or_default(),
            a.scheduler.as_deref(),
            now,
            data_text(a)
        ];
        Ok((self.change(sql, values)? > 0).then_some(before))
    }

    async fn greet_agent(&self, a: &AgentRecord, now: i64) -> Result<(), StoreError> {
        let sql = "INSERT INTO agent (id, incarnation, capabilities, resources, joined, seen, data)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)
                   ON CONFLICT DO UPDATE SET seen = ?5, data = coalesce(?6, data) WHERE incarnation = ?2";
        let values = params![
            a.id.as_str(),
            a.incarnation as i64,
            serde_json::to_string(&a.capabilities).unwrap_or_default(),
            serde_json::to_string(&a.resources).unwrap_or_default(),
            now,
            data_text(a)
        ];
        self.change(sql, values).map(|_| ())
    }

    async fn adopt_orphans(&self, scheduler: &Name, now: i64) -> Result<Vec<AgentRecord>, StoreError> {
        self.with(|inner| {
            let mut statement = inner.connection.prepare_cached(
                "UPDATE agent SET scheduler = ?1, seen = ?2 WHERE scheduler IS NULL
                 OR scheduler NOT IN (SELECT id FROM instance WHERE until > ?2) RETURNING *",
            )?;
            let rows = statement.query_map(params![scheduler.as_str(), now], read_agent)?;
            rows.collect()
        })
    }

    async fn agents_seen(
        &self,
        scheduler: &Name,
        agents: &[Name],
        now: i64,
    ) -> Result<Vec<Name>, StoreError> {
        let mut mine = Vec::new();
        for agent in agents {
            let sql = "UPDATE agent SET seen = ?3 WHERE id = ?1 AND scheduler = ?2";
            if self.change(sql, params![agent.as_str(), scheduler.as_str(), now])? > 0 {
                mine.push(agent.clone());
            }
        }
        Ok(mine)
    }

    async fn agents(&self) -> Result<Vec<AgentRecord>, StoreError> {
        self.all("SELECT * FROM agent ORDER BY id", read_agent)
    }

    async fn remove_agent(&self, agent: &Name, incarnation: u64) -> Result<(), StoreError> {
        self.transact(|tx| {
            let sql = "DELETE FROM agent WHERE id = ?1 AND incarnation = ?2";
            if tx.execute(sql, params![agent.as_str(), incarnation as i64])? > 0 {
                tx.execute("DELETE FROM holder WHERE agent = ?1", [agent.as_str()])?;
            }
            Ok(())
        })
    }

    async fn put_machine(&self, m: &Machine) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO machine (id, setup, state, handle, created, changed, reason)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values = params![
            m.id.as_str(),
            m.setup.as_str(),
            m.state.name(),
            m.handle,
            m.created,
            m.changed,
            m.reason
        ];
        self.change(sql, values).map(|_| ())
    }

    async fn machines(&self) -> Result<Vec<Machine>, StoreError> {
        self.all("SELECT * FROM machine ORDER BY created DESC, id DESC LIMIT 1000", read_machine)
    }

    async fn put_token(&self, t: &Token) -> Result<(), StoreError> {
        let sql =
            "INSERT OR REPLACE INTO token (name, role, hash, created, expires) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.change(sql, params![t.name, t.role, t.hash, t.created, t.expires]).map(|_| ())
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.all("SELECT * FROM token ORDER BY name", read_token)
    }

    async fn remove_token(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.change("DELETE FROM token WHERE name = ?1", [name])? > 0)
    }
}
