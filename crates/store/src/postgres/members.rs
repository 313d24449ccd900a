//! Who shares the store.

use super::PostgresStore;
use crate::error::StoreError;
use crate::members::{AgentRecord, Instance, Machine, MachineState, Members, Token, data_text};
use async_trait::async_trait;
use catena_model::Name;
use tokio_postgres::Row;

fn read_instance(row: &Row) -> Instance {
    Instance {
        id: row.get::<_, String>("id").into(),
        roles: row.get("roles"),
        host: row.get("host"),
        since: row.get("since"),
        until: row.get("until"),
    }
}

fn read_agent(row: &Row) -> AgentRecord {
    let capabilities: String = row.get("capabilities");
    let resources: String = row.get("resources");
    let data: Option<&str> = row.get("data");
    AgentRecord {
        id: row.get::<_, String>("id").into(),
        incarnation: row.get::<_, i64>("incarnation") as u64,
        capabilities: serde_json::from_str(&capabilities).unwrap_or_default(),
        resources: serde_json::from_str(&resources).unwrap_or_default(),
        scheduler: row.get::<_, Option<String>>("scheduler").map(Into::into),
        joined: row.get("joined"),
        seen: row.get("seen"),
        data: data.and_then(|d| serde_json::from_str(d).ok()),
    }
}

fn read_machine(row: &Row) -> Machine {
    let state: String = row.get("state");
    Machine {
        id: row.get::<_, String>("id").into(),
        setup: row.get::<_, String>("setup").into(),
        state: MachineState::from_name(&state).unwrap_or(MachineState::Failed),
        handle: row.get("handle"),
        created: row.get("created"),
        changed: row.get("changed"),
        reason: row.get("reason"),
    }
}

fn read_token(row: &Row) -> Token {
    Token {
        name: row.get("name"),
        role: row.get("role"),
        hash: row.get("hash"),
        created: row.get("created"),
        expires: row.get("expires"),
    }
}

#[async_trait]
impl Members for PostgresStore {
    async fn now(&self) -> Result<i64, StoreError> {
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let rows = self.rows(sql, &[]).await?;
        rows.first().map(|r| r.get(0)).ok_or_else(|| self.unavailable("no answer".to_owned()))
    }

    async fn enlist(&self, i: &Instance) -> Result<(), StoreError> {
        let sql = "INSERT INTO instance (id, roles, host, since, until) VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT (id) DO UPDATE SET until = $5";
        self.change(sql, &[&i.id.as_str(), &i.roles, &i.host, &i.since, &i.until]).await.map(|_| ())
    }

    async fn resign(&self, instance: &Name) -> Result<(), StoreError> {
        self.change("DELETE FROM duty WHERE holder = $1", &[&instance.as_str()]).await?;
        self.change("DELETE FROM instance WHERE id = $1", &[&instance.as_str()]).await.map(|_| ())
    }

    async fn instances(&self, now: i64) -> Result<Vec<Instance>, StoreError> {
        self.change("DELETE FROM instance WHERE until < $1::bigint - 86400000", &[&now]).await?;
        let sql = "SELECT * FROM instance WHERE until > $1 ORDER BY since, id";
        Ok(self.rows(sql, &[&now]).await?.iter().map(read_instance).collect())
    }

    async fn take_duty(&self, duty: &str, holder: &Name, until: i64, now: i64) -> Result<bool, StoreError> {
        let sql = "INSERT INTO duty (name, holder, until) VALUES ($1, $2, $3)
                   ON CONFLICT (name) DO UPDATE SET holder = $2, until = $3 WHERE duty.holder = $2 OR duty.until <= $4";
        Ok(self.change(sql, &[&duty, &holder.as_str(), &until, &now]).await? > 0)
    }

    async fn adopt_agent(&self, a: &AgentRecord, now: i64) -> Result<Option<u64>, StoreError> {
        let sql = "WITH before AS (SELECT incarnation FROM agent WHERE id = $1)
                   INSERT INTO agent AS a (id, incarnation, capabilities, resources, scheduler, joined, seen, data)
                   VALUES ($1, $2, $3, $4, $5, $6, $6, $7)
                   ON CONFLICT (id) DO UPDATE SET incarnation = $2, capabilities = $3, resources = $4, scheduler = $5,
                       data = $7, joined = CASE WHEN a.incarnation = $2 THEN a.joined ELSE $6 END, seen = $6
                   WHERE a.scheduler IS NULL OR a.scheduler = $5
                       OR a.scheduler NOT IN (SELECT id FROM instance WHERE until > $6)
                   RETURNING coalesce((SELECT incarnation FROM before), $2)";
        let capabilities = serde_json::to_string(&a.capabilities).unwrap_or_default();
        let resources = serde_json::to_string(&a.resources).unwrap_or_default();
        let incarnation = a.incarnation as i64;
        let scheduler = a.scheduler.as_deref();
        let rows = self
            .rows(
                sql,
                &[&a.id.as_str(), &incarnation, &capabilities, &resources, &scheduler, &now, &data_text(a)],
            )
            .await?;
        Ok(rows.first().map(|r| r.get::<_, i64>(0) as u64))
    }

    async fn greet_agent(&self, a: &AgentRecord, now: i64) -> Result<(), StoreError> {
        let sql = "INSERT INTO agent AS a (id, incarnation, capabilities, resources, joined, seen, data)
                   VALUES ($1, $2, $3, $4, $5, $5, $6)
                   ON CONFLICT (id) DO UPDATE SET seen = $5, data = coalesce($6, a.data) WHERE a.incarnation = $2";
        let capabilities = serde_json::to_string(&a.capabilities).unwrap_or_default();
        let resources = serde_json::to_string(&a.resources).unwrap_or_default();
        let incarnation = a.incarnation as i64;
        self.change(sql, &[&a.id.as_str(), &incarnation, &capabilities, &resources, &now, &data_text(a)])
            .await
            .map(|_| ())
    }

    async fn adopt_orphans(&self, scheduler: &Name, now: i64) -> Result<Vec<AgentRecord>, StoreError> {
        let sql = "UPDATE agent SET scheduler = $1, seen = $2 WHERE scheduler IS NULL
                   OR scheduler NOT IN (SELECT id FROM instance WHERE until > $2) RETURNING *";
        Ok(self.rows(sql, &[&scheduler.as_str(), &now]).await?.iter().map(read_agent).collect())
    }

    async fn agents_seen(
        &self,
        scheduler: &Name,
        agents: &[Name],
        now: i64,
    ) -> Result<Vec<Name>, StoreError> {
        let agents: Vec<&str> = agents.iter().map(Name::as_str).collect();
        let sql = "UPDATE agent SET seen = $3 WHERE id = ANY($1) AND scheduler = $2 RETURNING id";
        let rows = self.rows(sql, &[&agents, &scheduler.as_str(), &now]).await?;
        Ok(rows.iter().map(|r| r.get::<_, String>(0).into()).collect())
    }

    async fn agents(&self) -> Result<Vec<AgentRecord>, StoreError> {
        Ok(self.rows("SELECT * FROM agent ORDER BY id", &[]).await?.iter().map(read_agent).collect())
    }

    async fn remove_agent(&self, agent: &Name, incarnation: u64) -> Result<(), StoreError> {
        let sql = "WITH gone AS (DELETE FROM agent WHERE id = $1 AND incarnation = $2 RETURNING id)
                   DELETE FROM holder WHERE agent IN (SELECT id FROM gone)";
        self.change(sql, &[&agent.as_str(), &(incarnation as i64)]).await.map(|_| ())
    }

    async fn put_machine(&self, m: &Machine) -> Result<(), StoreError> {
        let sql = "INSERT INTO machine (id, setup, state, handle, created, changed, reason)
                   VALUES ($1, $2, $3, $4, $5, $6, $7)
                   ON CONFLICT (id) DO UPDATE SET state = $3, handle = $4, changed = $6, reason = $7";
        let values = (m.id.as_str(), m.setup.as_str(), m.state.name());
        self.change(sql, &[&values.0, &values.1, &values.2, &m.handle, &m.created, &m.changed, &m.reason])
            .await
            .map(|_| ())
    }

    async fn machines(&self) -> Result<Vec<Machine>, StoreError> {
        let sql = "SELECT * FROM machine ORDER BY created DESC, id DESC LIMIT 1000";
        Ok(self.rows(sql, &[]).await?.iter().map(read_machine).collect())
    }

    async fn put_token(&self, t: &Token) -> Result<(), StoreError> {
        let sql = "INSERT INTO token (name, role, hash, created, expires) VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT (name) DO UPDATE SET role = $2, hash = $3, created = $4, expires = $5";
        self.change(sql, &[&t.name, &t.role, &t.hash, &t.created, &t.expires]).await.map(|_| ())
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        Ok(self.rows("SELECT * FROM token ORDER BY name", &[]).await?.iter().map(read_token).collect())
    }

    async fn remove_token(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.change("DELETE FROM token WHERE name = $1", &[&name]).await? > 0)
    }
}
