//! The bus between machines: NATS, without persistence. What does not arrive is not missed.

use crate::{Bus, Message, Subscription};
use async_nats::connection::State;
use async_nats::{Client, ConnectOptions};
use async_trait::async_trait;
use futures_util::StreamExt;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc::unbounded_channel;

/// How long to wait before the next attempt to connect.
const RECONNECT: Duration = Duration::from_millis(250);
/// A connection that is silent for so long is tried out.
const PING: Duration = Duration::from_secs(3);
/// How long a message may wait for room in the connection's queue.
const PATIENCE: Duration = Duration::from_millis(500);

/// The bus cannot be used as it is configured.
#[derive(Debug, Error)]
#[error("the bus {url} cannot be used: {detail}")]
pub struct BusError {
    /// Where it is.
    pub url: String,
    /// Why not.
    pub detail: String,
}

/// How to connect.
#[derive(Clone, Debug, Default)]
pub struct NatsOptions {
    /// Addresses such as `nats://user:password@host:4222`, separated by commas: servers of one cluster.
    pub url: String,
    /// Stands before every subject, so that several clusters can share a server.
    pub prefix: String,
    /// A file with credentials.
    pub credentials: Option<PathBuf>,
}

/// A bus over NATS.
pub struct NatsBus {
    client: Client,
    prefix: String,
}

impl NatsBus {
    /// Starts to connect, and goes on trying for as long as it takes.
    pub async fn connect(options: &NatsOptions) -> Result<Self, BusError> {
        let fail = |detail: String| BusError { url: hide_password(&options.url), detail };
        let servers = options.url.split(',').map(str::trim).filter(|s| !s.is_empty());
        let servers: Vec<async_nats::ServerAddr> = servers
            .map(|s| s.parse().map_err(|e: std::io::Error| fail(e.to_string())))
            .collect::<Result<_, _>>()?;
        let mut connect = ConnectOptions::new()
            .name("catena")
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_delay_callback(|_| RECONNECT)
            .ping_interval(PING)
            .connection_timeout(Duration::from_secs(5))
            .subscription_capacity(1 << 16);
        if let Some(file) = &options.credentials {
            connect = connect
                .credentials_file(file)
                .await
                .map_err(|e| fail(format!("credentials {}: {e}", file.display())))?;
        }
        let client = connect.connect(servers).await.map_err(|e| fail(e.to_string()))?;
        let prefix = if options.prefix.is_empty() { "catena" } else { &options.prefix };
        Ok(Self { client, prefix: encode(prefix) })
    }

    fn subject(&self, subject: &str) -> String {
        // The first dot separates the kind from the name; a name may be anything.
        match subject.split_once('.') {
            Some((kind, name)) => format!("{}.{}.{}", self.prefix, encode(kind), encode(name)),
            None => format!("{}.{}", self.prefix, encode(subject)),
        }
    }

    async fn send(&self, subject: &str, message: &Message) {
        let Ok(payload) = serde_json::to_vec(message) else { return };
        if payload.len() > self.client.server_info().max_payload {
            // Halves of an assignment are assignments. What is still too large will be found in the store.
            if let Message::Assign { chains, context } = message
                && chains.len() > 1
            {
                for half in chains.chunks(chains.len().div_ceil(2)) {
                    let half = Message::Assign { chains: half.to_vec(), context: context.clone() };
                    Box::pin(self.send(subject, &half)).await;
                }
            }
            return;
        }
        let publish = self.client.publish(subject.to_owned(), payload.into());
        let _ = tokio::time::timeout(PATIENCE, publish).await;
    }
}

#[async_trait]
impl Bus for NatsBus {
    async fn publish(&self, subject: &str, message: Message) {
        // Without a connection messages would pile up and arrive when nobody needs them any more.
        if self.client.connection_state() == State::Connected {
            self.send(&self.subject(subject), &message).await;
        }
    }

    async fn subscribe(&self, subject: &str) -> Subscription {
        let (sender, receiver) = unbounded_channel();
        if let Ok(mut subscriber) = self.client.subscribe(self.subject(subject)).await {
            // When this returns, whatever is published from now on will be heard.
            let _ = tokio::time::timeout(Duration::from_secs(2), self.client.flush()).await;
            tokio::spawn(async move {
                loop {
                    tokio::select! {
                        message = subscriber.next() => {
                            let Some(message) = message else { return };
                            // What cannot be read is not for us: perhaps from a newer version.
                            if let Ok(message) = serde_json::from_slice(&message.payload)
                                && sender.send(message).is_err()
                            {
                                return;
                            }
                        }
                        () = sender.closed() => return,
                    }
                }
            });
        }
        Subscription::new(receiver)
    }
}

/// Writes anything as one token of a subject.
fn encode(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02x}");
        }
    }
    out
}

fn hide_password(url: &str) -> String {
    url.split(',').map(|u| u.rsplit('@').next().unwrap_or(u)).collect::<Vec<_>>().join(",")
}
