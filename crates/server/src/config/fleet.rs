//! What machines can be made from, and how many.

use super::{Mistake, texts, unknown};
use catena_fleet::{Network, Pool, Setup};
use catena_model::{Name, Node, parse_bytes, parse_duration};

const SETUP_KEYS: &[&str] = &[
    "id",
    "provides",
    "min",
    "max",
    "maxCreateConcurrent",
    "provider",
    "provisioning",
    "bootDelay",
    "readyWithin",
    "idleShutdown",
    "attempts",
    "retryDelay",
    "lockAfterFailures",
    "settings",
    "network",
    "cpus",
    "memory",
    "resources",
];

pub(super) fn read_setup(node: &Node) -> Result<Setup, Mistake> {
    let entries = node.as_map().ok_or((Some(node.span), "a setup must be a mapping".to_owned()))?;
    let mut setup = Setup::default();
    for (key, value) in entries {
        let name = key.as_str().unwrap_or_default();
        let fail = |what: String| (Some(value.span), what);
        let text = || value.as_str().ok_or_else(|| fail(format!("`{name}` must be a text")));
        let count = || {
            let n = value.as_str().and_then(|s| s.parse::<u32>().ok());
            n.ok_or_else(|| fail(format!("`{name}` must be a whole number")))
        };
        let number = |v: &Node| {
            let n = v.as_str().and_then(|s| s.parse::<f64>().ok()).filter(|n| n.is_finite() && *n >= 0.0);
            n.ok_or_else(|| fail(format!("`{name}` must be a number")))
        };
        let duration = || text().and_then(|t| parse_duration(t).map_err(|e| fail(format!("`{name}`: {e}"))));
        match name {
            "id" => setup.id = Name::new(text()?),
            "provides" => setup.provides = texts(value).map(Name::new).collect(),
            "min" => setup.min = count()?,
            "max" => setup.max = count()?,
            "maxCreateConcurrent" => setup.max_create_concurrent = count()?.max(1),
            "provider" => setup.provider = Name::new(text()?),
            "provisioning" => setup.provisioning = texts(value).map(str::to_owned).collect(),
            "bootDelay" => setup.boot_delay = duration()?,
            "readyWithin" => setup.ready_within = duration()?,
            "idleShutdown" => setup.idle_shutdown = duration()?,
            "attempts" => setup.attempts = count()?.max(1),
            "retryDelay" => setup.retry_delay = duration()?,
            "lockAfterFailures" => setup.lock_after_failures = duration()?,
            "cpus" => setup.resources.cpus = (number(value)? * 1000.0) as u64,
            "memory" => setup.resources.memory = parse_bytes(text()?).map_err(fail)?,
            "resources" => {
                for (key, value) in value.as_map().unwrap_or_default() {
                    let name = Name::new(key.as_str().unwrap_or_default());
                    setup.resources.named.insert(name, (number(value)? * 1000.0) as u64);
                }
            }
            "settings" => {
                let entries = value.as_map().unwrap_or_default().iter();
                let pair = |(k, v): &(Node, Node)| Some((k.as_str()?.to_owned(), v.as_str()?.to_owned()));
                setup.settings = entries.filter_map(pair).collect();
            }
            "network" => setup.network = Some(read_network(value)?),
            other => return Err((Some(key.span), unknown("key", other, SETUP_KEYS.iter().copied()))),
        }
    }
    if setup.id.is_empty() {
        return Err((Some(node.span), "a setup needs an `id`".to_owned()));
    }
    Ok(setup)
}

fn read_network(node: &Node) -> Result<Network, Mistake> {
    let get = |key: &str| node.get(key).and_then(Node::as_str).map(str::to_owned);
    match (get("bridge"), get("prefix")) {
        (Some(bridge), Some(prefix))
            if prefix.split('.').filter(|p| p.parse::<u8>().is_ok()).count() == 3 =>
        {
            Ok(Network { bridge, prefix })
        }
        _ => Err((
            Some(node.span),
            "`network` needs a `bridge` and a `prefix` of three numbers such as 10.77.0".to_owned(),
        )),
    }
}

pub(super) fn read_pool(node: &Node) -> Result<Pool, Mistake> {
    let entries = node.as_map().ok_or((Some(node.span), "a pool must be a mapping".to_owned()))?;
    let mut pool = Pool::default();
    for (key, value) in entries {
        let count = || {
            let n = value.as_str().and_then(|s| s.parse::<u32>().ok());
            n.ok_or((Some(value.span), "a limit must be a whole number".to_owned()))
        };
        match key.as_str().unwrap_or_default() {
            "capabilities" => pool.capabilities = texts(value).map(Name::new).collect(),
            "min" => pool.min = count()?,
            "max" => pool.max = Some(count()?),
            other => {
                return Err((
                    Some(key.span),
                    unknown("key", other, ["capabilities", "min", "max"].into_iter()),
                ));
            }
        }
    }
    Ok(pool)
}
