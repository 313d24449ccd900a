//! Talks to a server.

use crate::arguments::Arguments;
use async_trait::async_trait;
use catena_bus::AgentState;
use catena_server::{Answer, Desk};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Write;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body};

/// Where the owner of a state directory finds a token for the instance that uses it.
pub(crate) fn token_file(state: &Path) -> PathBuf {
    state.join("token")
}

/// A server.
#[derive(Clone)]
pub(crate) struct Server {
    url: String,
    token: Option<String>,
    agent: Agent,
}

impl Server {
    /// The server that was named, if one was.
    pub(crate) fn find(arguments: &Arguments) -> Option<Self> {
        let url = arguments.server.as_ref()?;
        let kept = || std::fs::read_to_string(token_file(&arguments.state)).ok().map(|t| t.trim().to_owned());
        Some(Self::of(url, arguments.token.clone().or_else(kept)))
    }

    /// The server that was named, or else a word about how to name one.
    pub(crate) fn expect(arguments: &Arguments) -> Result<Self, String> {
        Self::find(arguments)
            .ok_or_else(|| "this needs a server: name it with --server URL or as CATENA_SERVER".to_owned())
    }

    /// The server at an address.
    pub(crate) fn of(url: &str, token: Option<String>) -> Self {
        Self::with_patience(url, token, None)
    }

    /// The server at an address that has so much time for each answer.
    fn with_patience(url: &str, token: Option<String>, patience: Option<Duration>) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_global(patience)
            .build();
        Self { url: url.trim_end_matches('/').to_owned(), token, agent: config.into() }
    }

    /// Sends content of any length.
    pub(crate) fn put(&self, path: &str, mut body: impl Read) -> Result<(), String> {
        let body = ureq::SendBody::from_reader(&mut body);
        self.exchange("PUT", path, "application/octet-stream", body).map(|_| ())
    }

    fn request(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<Response<Body>, String> {
        self.exchange(method, path, kind, body)
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: impl ureq::AsSendBody,
    ) -> Result<Response<Body>, String> {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let request =
            request.header("Content-Type", kind).body(body).map_err(|e| format!("{}: {e}", self.url))?;
        let mut response =
            self.agent.run(request).map_err(|e| format!("{} cannot be reached: {e}", self.url))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = response.body_mut().read_to_string().unwrap_or_default();
        let problem: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let error = problem.as_ref().and_then(|p| p["error"].as_str()).map(str::to_owned);
        Err(error.unwrap_or_else(|| format!("{} answers {status}", self.url)))
    }

    fn read<T: DeserializeOwned>(&self, mut response: Response<Body>) -> Result<T, String> {
        let read = response.body_mut().with_config().limit(u64::MAX).read_json();
        read.map_err(|e| format!("{} has sent something that cannot be read: {e}", self.url))
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, String> {
        self.request("GET", path, "application/json", &[]).and_then(|r| self.read(r))
    }

    /// Sends something as JSON.
    pub(crate) fn send<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: &impl Serialize,
    ) -> Result<T, String> {
        let body = serde_json::to_vec(body).map_err(|e| e.to_string())?;
        self.request(method, path, kind, &body).and_then(|r| self.read(r))
    }

    /// Asks for something to be done.
    pub(crate) fn post(&self, path: &str) -> Result<(), String> {
        self.request("POST", path, "application/json", b"{}").map(|_| ())
    }

    pub(crate) fn delete(&self, path: &str) -> Result<(), String> {
        self.request("DELETE", path, "application/json", &[]).map(|_| ())
    }

    /// What a path holds, piece by piece.
    pub(crate) fn stream(&self, path: &str) -> Result<impl Read + use<>, String> {
        self.request("GET", path, "application/json", &[]).map(|r| r.into_body().into_reader())
    }

    /// Events until there are no more, or `each` has had enough.
    pub(crate) fn events(
        &self,
        path: &str,
        mut each: impl FnMut(serde_json::Value) -> bool,
    ) -> Result<(), String> {
        let lines = BufReader::new(self.stream(path)?).lines();
        for line in lines {
            let line = line.map_err(|e| format!("{}: {e}", self.url))?;
            let event = line.strip_prefix("data:").and_then(|d| serde_json::from_str(d.trim()).ok());
            if event.is_some_and(|event| !each(event)) {
                break;
            }
        }
        Ok(())
    }
}

/// Writes anything as part of an address.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// A desk behind an HTTP interface, for agents without access to the store.
pub(crate) struct HttpDesk {
    server: Server,
}

impl HttpDesk {
    pub(crate) fn new(url: &str, token: Option<String>) -> Self {
        Self { server: Server::with_patience(url, token, Some(Duration::from_secs(30))) }
    }
}

#[async_trait]
impl Desk for HttpDesk {
    async fn visit(&self, agent: &AgentState) -> Result<Answer, String> {
        let (server, agent) = (self.server.clone(), agent.clone());
        let visit =
            move || server.send("POST", &format!("/agents/{}/visit", agent.id), "application/json", &agent);
        tokio::task::spawn_blocking(visit).await.map_err(|e| e.to_string())?
    }
}
