//! Clusters as people describe them, in YAML.

use super::{Cluster, Inputs, Kind, Storage};
use crate::time::{Nanos, nanos};
use catena_model::{Diagnostics, Name, Node, Span, nearest, parse_bytes, parse_duration, parse_yaml};

/// What is wrong, and where.
type Mistake = (Span, String);

/// Reads a cluster. Otherwise says everything that is wrong, each with its line and column.
pub fn read_cluster(text: &str) -> Result<Cluster, Vec<String>> {
    let mut diags = Diagnostics::default();
    let nodes = parse_yaml(text, 0, &mut diags);
    let mut reader = Reader { mistakes: diags.iter().map(|d| (d.span, d.message.clone())).collect() };
    let mut cluster = Cluster::default();
    if let Some(root) = nodes.first() {
        reader.cluster(root, &mut cluster);
    } else if reader.mistakes.is_empty() {
        return Err(vec!["1:1: the file is empty; a cluster needs `nodes`".to_owned()]);
    }
    let place = |(at, what): &Mistake| format!("{}:{}: {what}", at.line, at.column);
    if reader.mistakes.is_empty() { Ok(cluster) } else { Err(reader.mistakes.iter().map(place).collect()) }
}

struct Reader {
    mistakes: Vec<Mistake>,
}

impl Reader {
    fn wrong(&mut self, node: &Node, what: impl Into<String>) {
        self.mistakes.push((node.span, what.into()));
    }

    /// Hands the entries of a mapping to `read`, which returns whether it knows the key.
    fn entries(&mut self, node: &Node, known: &[&str], mut read: impl FnMut(&mut Self, &str, &Node)) {
        let Some(entries) = node.as_map() else {
            return self.wrong(node, format!("expected a mapping with {}", known.join(", ")));
        };
        for (key, value) in entries {
            let name = key.as_str().unwrap_or_default();
            if known.contains(&name) {
                read(self, name, value);
            } else {
                let near = nearest(name, known.iter().copied());
                let hint = near.map_or_else(
                    || format!("known are {}", known.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                self.wrong(key, format!("unknown key `{name}`; {hint}"));
            }
        }
    }

    fn value<T>(&mut self, node: &Node, wanted: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let value = node.as_str().map(str::trim).and_then(read);
        if value.is_none() {
            self.wrong(node, format!("expected {wanted}"));
        }
        value
    }

    fn number(&mut self, node: &Node, wanted: &str, fits: impl Fn(f64) -> bool, to: &mut f64) {
        let read = |s: &str| s.parse().ok().filter(|n: &f64| n.is_finite() && fits(*n));
        if let Some(n) = self.value(node, wanted, read) {
            *to = n;
        }
    }

    /// A part of a whole: `0.05` or `5 %`.
    fn fraction(&mut self, node: &Node, to: &mut f64) {
        let read = |s: &str| {
            let (number, of) = s.strip_suffix('%').map_or((s, 1.0), |s| (s.trim_end(), 100.0));
            number.parse::<f64>().ok().map(|n| n / of).filter(|n| (0.0..1.0).contains(n))
        };
        if let Some(n) = self.value(node, "a fraction such as 0.05 or 5 %, less than 1", read) {
            *to = n;
        }
    }

    fn count(&mut self, node: &Node, to: &mut u32) {
        let read = |s: &str| s.parse().ok().filter(|n| *n <= 10_000_000);
        if let Some(n) = self.value(node, "a whole number of nodes", read) {
            *to = n;
        }
    }

    fn duration(&mut self, node: &Node, to: &mut Nanos) {
        if let Some(d) = self.value(node, "a duration such as 90 s or 10 min", |s| parse_duration(s).ok()) {
            *to = nanos(d.as_secs_f64());
        }
    }

    /// Bytes per second: `125 MB` or `125 MB/s`.
    fn rate(&mut self, node: &Node, to: &mut f64) {
        let read = |s: &str| parse_bytes(s.trim_end_matches("/s").trim_end()).ok().filter(|b| *b > 0);
        if let Some(rate) = self.value(node, "bytes per second such as 125 MB/s", read) {
            *to = rate as f64;
        }
    }

    fn cluster(&mut self, root: &Node, cluster: &mut Cluster) {
        let mut kinds = None;
        let mut inputs = None;
        let keys = ["nodes", "storage", "network", "inputs", "ahead", "scheduling", "tasks", "chance"];
        self.entries(root, &keys, |r, key, value| match key {
            "nodes" => kinds = Some(r.kinds(value)),
            "storage" => r.storage(value, cluster),
            "network" => r.network(value, cluster),
            "inputs" => {
                r.inputs(value, cluster);
                inputs = Some(value.span);
            }
            "ahead" => {
                let read = |s: &str| s.parse().ok().filter(|n| *n <= 10_000);
                cluster.ahead = r.value(value, "a whole number of tasks per processor", read).unwrap_or(0);
            }
            "scheduling" => r.duration(value, &mut cluster.scheduling),
            "tasks" => r.tasks(value, cluster),
            _ => r.chance(value, cluster),
        });
        if let (Some(at), Inputs::Home(_)) = (inputs, cluster.inputs)
            && (cluster.storage != Storage::Local || !cluster.network.is_fair)
        {
            let what = "inputs come from home only with `storage: local` and `network: {sharing: fair}`";
            self.mistakes.push((at, what.to_owned()));
        }
        match kinds {
            Some(kinds) => cluster.kinds = kinds,
            None if root.as_map().is_some() => self.wrong(root, "a cluster needs `nodes`"),
            None => {}
        }
    }

    fn kinds(&mut self, node: &Node) -> Vec<Kind> {
        let kinds: Vec<Kind> = match node.as_seq() {
            Some([]) => {
                self.wrong(node, "there must be at least one kind of node");
                Vec::new()
            }
            Some(items) => items.iter().map(|item| self.kind(item)).collect(),
            None => vec![self.kind(node)],
        };
        for (i, kind) in kinds.iter().enumerate() {
            if kinds[..i].iter().any(|k| k.id == kind.id) {
                let what =
                    format!("there are two kinds of nodes `{}`; give each an `id` of its own", kind.id);
                self.wrong(node.as_seq().and_then(|items| items.get(i)).unwrap_or(node), what);
            }
        }
        kinds
    }

    fn kind(&mut self, node: &Node) -> Kind {
        let mut kind = Kind::new(1);
        let mut max = None;
        let keys = ["id", "count", "max", "cpus", "memory", "speed", "capabilities", "price", "boot", "idle"];
        self.entries(node, &keys, |r, key, value| match key {
            "id" => kind.id = r.value(value, "a name", |s| Some(Name::new(s))).unwrap_or_default(),
            "count" => r.count(value, &mut kind.count),
            "max" => {
                let mut limit = 0;
                r.count(value, &mut limit);
                max = Some((limit, value.span));
            }
            "cpus" => {
                let mut cpus = 1.0;
                r.number(value, "a number of processors, at least 1", |n| (1.0..1e6).contains(&n), &mut cpus);
                kind.resources.cpus = (cpus * 1000.0) as u64;
            }
            "memory" => {
                let memory = r.value(value, "a size such as 16 GiB", |s| parse_bytes(s).ok());
                kind.resources.memory = memory.unwrap_or(u64::MAX);
            }
            "speed" => r.number(value, "a speed above 0", |n| n > 0.0, &mut kind.speed),
            "capabilities" => {
                let items = value.as_seq().unwrap_or(std::slice::from_ref(value));
                let name = |n: &Node| r.value(n, "a name", |s| Some(Name::new(s)));
                kind.capabilities = items.iter().filter_map(name).collect();
            }
            "price" => r.number(value, "a price per hour", |n| n >= 0.0, &mut kind.price),
            "boot" => r.duration(value, &mut kind.boot),
            _ => r.duration(value, &mut kind.idle),
        });
        kind.max = max.map_or(kind.count, |(max, _)| max);
        if let Some((_, at)) = max.filter(|(max, _)| *max < kind.count) {
            self.mistakes.push((at, "`max` is less than `count`".to_owned()));
        } else if kind.max == 0 {
            self.wrong(node, "there are no nodes of this kind: set `count` or `max`");
        }
        kind
    }

    fn storage(&mut self, node: &Node, cluster: &mut Cluster) {
        let mut rate = 1e9;
        let mut mode = node.as_str().map(|s| (s.to_owned(), node.span));
        if mode.is_none() {
            self.entries(node, &["mode", "bandwidth"], |r, key, value| match key {
                "mode" => mode = value.as_str().map(|s| (s.to_owned(), value.span)),
                _ => r.rate(value, &mut rate),
            });
        }
        match mode.as_ref().map(|(mode, _)| mode.as_str()) {
            Some("shared") => cluster.storage = Storage::Shared(rate),
            Some("local") => cluster.storage = Storage::Local,
            _ => {
                let at = mode.map_or(node.span, |(_, at)| at);
                self.mistakes.push((at, "expected the storage mode `shared` or `local`".to_owned()));
            }
        }
    }

    fn network(&mut self, node: &Node, cluster: &mut Cluster) {
        let network = &mut cluster.network;
        self.entries(node, &["bandwidth", "latency", "sharing", "at_once"], |r, key, value| match key {
            "bandwidth" => r.rate(value, &mut network.bandwidth),
            "latency" => r.duration(value, &mut network.latency),
            "at_once" => {
                let read = |s: &str| s.parse().ok().filter(|n| *n > 0);
                network.at_once = r.value(value, "a whole number of tasks, at least 1", read);
            }
            _ => match value.as_str() {
                Some("fair") => network.is_fair = true,
                Some("none") => network.is_fair = false,
                _ => r.wrong(value, "expected `fair` or `none`"),
            },
        });
    }

    /// `outside`, `home`, or `home` with a bandwidth of its own.
    fn inputs(&mut self, node: &Node, cluster: &mut Cluster) {
        let (mut rate, mut from) = (0.0, node.as_str().map(|s| (s.to_owned(), node.span)));
        if node.as_map().is_some() {
            self.entries(node, &["from", "bandwidth"], |r, key, value| match key {
                "from" => from = value.as_str().map(|s| (s.to_owned(), value.span)),
                _ => r.rate(value, &mut rate),
            });
        }
        match from.as_ref().map(|(from, _)| from.as_str()) {
            Some("outside") => cluster.inputs = Inputs::Outside,
            Some("home") => cluster.inputs = Inputs::Home((rate > 0.0).then_some(rate)),
            _ => {
                let at = from.map_or(node.span, |(_, at)| at);
                self.mistakes.push((at, "expected that inputs come from `outside` or `home`".to_owned()));
            }
        }
    }

    fn tasks(&mut self, node: &Node, cluster: &mut Cluster) {
        let Cluster { shortest, uniform, .. } = cluster;
        self.entries(node, &["shortest", "cpus"], |r, key, value| match key {
            "shortest" => r.duration(value, shortest),
            _ => match value.as_str() {
                Some("1") => *uniform = true,
                Some("recorded") => *uniform = false,
                _ => r.wrong(value, "expected 1 or `recorded`"),
            },
        });
    }

    fn chance(&mut self, node: &Node, cluster: &mut Cluster) {
        let chance = &mut cluster.chance;
        let keys = ["spread", "stragglers", "factor", "failures", "lifetime", "repair"];
        chance.factor = 5.0;
        self.entries(node, &keys, |r, key, value| match key {
            "spread" => r.fraction(value, &mut chance.spread),
            "stragglers" => r.fraction(value, &mut chance.stragglers),
            "factor" => r.number(value, "a factor of at least 1", |n| n >= 1.0, &mut chance.factor),
            "failures" => r.fraction(value, &mut chance.failures),
            "lifetime" => {
                let mut lifetime = 0;
                r.duration(value, &mut lifetime);
                chance.lifetime = Some(lifetime.max(1));
            }
            _ => r.duration(value, &mut chance.repair),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_cluster_is_read() {
        let cluster = read_cluster(
            "nodes:\n  - {id: small, count: 4, cpus: 2, memory: 8 GiB, speed: 1.5, price: 0.1}\n  \
             - {id: large, count: 0, max: 10, cpus: 16, capabilities: [gpu], boot: 90 s, idle: 5 min}\n\
             storage: local\nnetwork: {bandwidth: 125 MB/s, latency: 1 ms, sharing: fair}\n\
             tasks: {shortest: 50 ms, cpus: recorded}\n\
             chance: {spread: 30 %, stragglers: 0.05, factor: 5, failures: 1%, lifetime: 24 h, repair: 10 min}\n",
        )
        .unwrap();
        assert_eq!((cluster.kinds[0].resources.cpus, cluster.kinds[0].max), (2000, 4));
        assert_eq!((cluster.kinds[1].count, cluster.kinds[1].boot), (0, nanos(90.0)));
        assert!(cluster.network.is_fair && cluster.storage == Storage::Local);
        assert!(
            (cluster.chance.spread - 0.3).abs() < 1e-12 && (cluster.chance.failures - 0.01).abs() < 1e-12
        );
    }

    #[test]
    fn nodes_may_hold_tasks_in_advance_and_get_inputs_from_home() {
        let text = "nodes: {count: 2}\nstorage: local\nnetwork: {sharing: fair, at_once: 1}\nahead: 3\nscheduling: 5 ms\n";
        let read = |inputs: &str| read_cluster(&format!("{text}inputs: {inputs}\n"));
        let cluster = read("home").unwrap();
        assert_eq!((cluster.ahead, cluster.scheduling), (3, nanos(0.005)));
        assert_eq!(cluster.network.at_once, Some(1));
        assert_eq!(cluster.inputs, Inputs::Home(None));
        let slow = read("{from: home, bandwidth: 12.5 MB/s}").unwrap();
        assert_eq!(slow.inputs, Inputs::Home(Some(1.25e7)));
        assert_eq!(read("outside").unwrap().inputs, Inputs::Outside);
        assert_eq!(read_cluster(text).unwrap().inputs, Inputs::Outside);
        assert!(read("{from: afar}").unwrap_err()[0].starts_with("6:16: expected"));
        let shared = read_cluster("nodes: {count: 2}\ninputs: home\nahead: -1").unwrap_err();
        assert!(shared[0].starts_with("3:8: ") && shared[1].starts_with("2:9: "), "{shared:?}");
    }

    #[test]
    fn one_kind_of_nodes_needs_no_list() {
        let cluster =
            read_cluster("nodes: {count: 8, cpus: 4}\nstorage: {mode: shared, bandwidth: 2 GB}").unwrap();
        assert_eq!((cluster.nodes(), cluster.storage), (8, Storage::Shared(2e9)));
    }

    #[test]
    fn all_mistakes_are_named_with_their_places() {
        let mistakes = read_cluster(
            "nodes:\n  - {cout: 4, speed: 0}\n  - {count: 5, max: 2}\nstorage: cloud\nnetwork: {latency: fast}\nchance: {spread: 130 %}\n",
        )
        .unwrap_err();
        let starts = [
            "2:6: unknown key `cout`; did you mean `count`?",
            "2:22:",
            "3:21:",
            "3:5: there are two",
            "4:10:",
            "5:20:",
            "6:18:",
        ];
        assert_eq!(mistakes.len(), starts.len(), "{mistakes:#?}");
        for (mistake, start) in mistakes.iter().zip(starts) {
            assert!(mistake.starts_with(start), "{mistake} {start}");
        }
        assert!(
            read_cluster("").is_err()
                && read_cluster("- a").is_err()
                && read_cluster("storage: local").is_err()
        );
    }
}
