//! A client of a composition over a real connection.

use catena_compose::lock::Session;
use catena_compose::room::{Ask, Event, Place, Request, Said, State};
use futures_util::{SinkExt, StreamExt};
use std::collections::HashSet;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// How long a server may take for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server and how to get in.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) url: String,
    pub(super) token: Option<String>,
}

/// A client that has joined.
pub(super) struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub(super) session: Session,
    requests: u64,
    /// What others have locked, as far as it is known.
    pub(super) taken: HashSet<Place>,
    /// The state that came last, if one came by itself: somebody else has the composition now.
    pub(super) news: Option<Box<State>>,
}

impl Client {
    /// Joins, and comes back to a session if one is given.
    pub(super) async fn join(
        door: &Door,
        composition: &str,
        session: Option<Session>,
        user: &str,
    ) -> Result<(Self, State), String> {
        let session = session.map(|s| format!("&session={}", s.0)).unwrap_or_default();
        let address = format!(
            "{}/compositions/{composition}/live?user={user}{session}",
            door.url.replacen("http", "ws", 1)
        );
        let mut request = address.into_client_request().map_err(|e| e.to_string())?;
        if let Some(token) = &door.token {
            let value =
                format!("Bearer {token}").parse().map_err(|_| "a token that cannot be sent".to_owned())?;
            request.headers_mut().insert("Authorization", value);
        }
        let connected = timeout(PATIENCE, connect_async(request)).await;
        let (socket, _) = connected.map_err(|_| "no answer")?.map_err(|e| e.to_string())?;
        let mut client = Self { socket, session: Session(0), requests: 0, taken: HashSet::new(), news: None };
        let waited = timeout(PATIENCE, client.wait_for_state()).await;
        let state = waited.map_err(|_| "nobody has the composition")??;
        client.session = state.session;
        client.taken = state.locks.iter().map(|l| l.unit.clone()).collect();
        Ok((client, state))
    }

    async fn wait_for_state(&mut self) -> Result<State, String> {
        loop {
            self.hear().await?;
            if let Some(state) = self.news.take() {
                return Ok(*state);
            }
        }
    }

    /// Hears the next thing that is said. Answers are returned, everything else is noted.
    pub(super) async fn hear(&mut self) -> Result<Option<Said>, String> {
        let frame = self.socket.next().await.ok_or("the connection is closed")?;
        let Message::Text(text) = frame.map_err(|e| e.to_string())? else { return Ok(None) };
        let said: Said = serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))?;
        match said {
            Said::Event(Event::Locked(view)) if view.session != self.session => {
                self.taken.insert(view.unit);
            }
            Said::Event(Event::Released { unit, .. }) => {
                self.taken.remove(&unit);
            }
            Said::Event(_) => {}
            Said::Done { re: 0, ok } => self.news = ok.state,
            answer => return Ok(Some(answer)),
        }
        Ok(None)
    }

    /// Sends a request without waiting for what comes of it. Returns its number.
    pub(super) async fn send(&mut self, ask: Ask) -> Result<u64, String> {
        self.requests += 1;
        let request = Request { id: self.requests, ask };
        let text = serde_json::to_string(&request).map_err(|e| e.to_string())?;
        self.socket.send(Message::Text(text.into())).await.map_err(|e| e.to_string())?;
        Ok(self.requests)
    }

    /// Asks for something and waits for the answer.
    pub(super) async fn ask(&mut self, ask: Ask) -> Result<Said, String> {
        let id = self.send(ask).await?;
        let answered = async {
            loop {
                match self.hear().await? {
                    Some(Said::Done { re, ok }) if re == id => return Ok(Said::Done { re, ok }),
                    Some(Said::Refused { re, error }) if re == id || re == 0 => {
                        return Ok(Said::Refused { re, error });
                    }
                    _ => {}
                }
            }
        };
        timeout(PATIENCE, answered).await.map_err(|_| "no answer".to_owned())?
    }

    /// Lets time pass, and hears what happens meanwhile.
    pub(super) async fn pause(&mut self, until: Instant) -> Result<(), String> {
        loop {
            tokio::select! {
                () = sleep_until(until) => return Ok(()),
                heard = self.hear() => {
                    heard?;
                }
            }
        }
    }
}
