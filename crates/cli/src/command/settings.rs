//! `catena config` and `catena token`

use super::serve::connect;
use super::{Outcome, print};
use crate::arguments::{Arguments, ConfigArgs, ConfigCommand, TokenCommand};
use crate::project::instance_config;
use catena_model::{moment, parse_duration};
use catena_server::{Config, SETTINGS, StateDirectory, TokenRole, hash_token, new_token};
use catena_store::{SqliteOptions, SqliteStore, Store, Token};
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;

pub(crate) fn config(command: &ConfigCommand) -> Outcome {
    match command {
        ConfigCommand::Settings => {
            for (setting, meaning) in SETTINGS {
                print(&format!("{setting:<24} {meaning}\n"));
            }
            Ok(ExitCode::SUCCESS)
        }
        ConfigCommand::Check { file, config, json } => {
            let args =
                ConfigArgs { config: file.clone().or_else(|| config.config.clone()), ..config.clone() };
            let (config, file) = instance_config(&args)?;
            let contradictions = config.contradictions();
            if !contradictions.is_empty() {
                return Err(contradictions.join("\n"));
            }
            let roles: Vec<&str> = config.roles.iter().map(|r| r.name()).collect();
            if *json {
                let shown = json!({
                    "file": file, "roles": roles, "state": config.state, "storage": config.storage,
                    "store": if config.store.is_some() { "postgresql" } else { "sqlite" },
                    "bus": if config.bus.url.is_empty() { "in-process" } else { "nats" },
                    "lease": config.lease.as_millis() as u64, "look": config.look.as_millis() as u64,
                    "policy": config.scheduler.policy, "listen": config.listen,
                    "setups": config.setups.iter().map(|s| &s.id).collect::<Vec<_>>(),
                });
                print(&format!("{shown:#}\n"));
                return Ok(ExitCode::SUCCESS);
            }
            print(&describe(&config));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn describe(config: &Config) -> String {
    let roles: Vec<&str> = config.roles.iter().map(|r| r.name()).collect();
    let store = config.store.as_ref().map_or_else(
        || format!("SQLite in {}", config.state.display()),
        |url| format!("PostgreSQL at {}", url.rsplit('@').next().unwrap_or(url)),
    );
    let bus = if config.bus.url.is_empty() {
        "within the process".to_owned()
    } else {
        format!(
            "NATS at {}",
            config
                .bus
                .url
                .split(',')
                .map(|u| u.rsplit('@').next().unwrap_or(u))
                .collect::<Vec<_>>()
                .join(", ")
        )
    };
    let mut out = format!(
        "roles      {}\nstore      {store}\nbus        {bus}\nlease      {} s\npolicy     {}\nlisten     {}\n",
        roles.join(", "),
        config.lease.as_secs_f64(),
        config.scheduler.policy,
        config.listen
    );
    for s in &config.setups {
        out += &format!(
            "setup      {}: {} to {} machines with {{{}}}\n",
            s.id,
            s.min,
            s.max,
            s.provides.join(", ")
        );
    }
    out
}

pub(crate) fn token(command: &TokenCommand, arguments: &Arguments) -> Outcome {
    let args = match command {
        TokenCommand::Create { config, .. }
        | TokenCommand::List { config, .. }
        | TokenCommand::Revoke { config, .. } => config,
    };
    let (config, _) = instance_config(args)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let store: Arc<dyn Store> = match &config.store {
            Some(url) => connect(url).await?,
            None => {
                // An instance may be using it; tokens can be changed all the same.
                let state =
                    if arguments.state.as_os_str() == ".catena" { &config.state } else { &arguments.state };
                let state = StateDirectory::look(state).map_err(|e| e.to_string())?;
                let file = state.path().join("catena.db");
                Arc::new(SqliteStore::open(&file, SqliteOptions::default()).map_err(|e| e.to_string())?)
            }
        };
        change_tokens(command, &*store).await
    })
}

async fn change_tokens(command: &TokenCommand, store: &dyn Store) -> Outcome {
    let fail = |e: catena_store::StoreError| e.to_string();
    match command {
        TokenCommand::Create { name, role, expires, .. } => {
            let role: TokenRole = role.parse()?;
            let now = store.now().await.map_err(fail)?;
            let good_for = expires.as_deref().map(parse_duration).transpose()?;
            let secret = new_token().map_err(|e| e.to_string())?;
            let token = Token {
                name: name.clone(),
                role: role.name().to_owned(),
                hash: hash_token(&secret),
                created: now,
                expires: good_for.map(|d| now + d.as_millis() as i64),
            };
            store.put_token(&token).await.map_err(fail)?;
            print(&format!("{secret}\n"));
        }
        TokenCommand::List { json, .. } => {
            let tokens = store.tokens().await.map_err(fail)?;
            if *json {
                print(&format!("{:#}\n", json!(tokens)));
                return Ok(ExitCode::SUCCESS);
            }
            for t in tokens {
                let until = t.expires.map_or_else(|| "revoked".to_owned(), moment);
                print(&format!(
                    "{:<9} {}  (made {}, good until {until})\n",
                    t.role,
                    t.name,
                    moment(t.created)
                ));
            }
        }
        TokenCommand::Revoke { name, .. } => {
            if !store.remove_token(name).await.map_err(fail)? {
                return Err(format!("there is no token for `{name}`"));
            }
            print(&format!("the token for {name} is worthless now\n"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
