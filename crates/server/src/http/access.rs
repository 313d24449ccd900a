//! Who may do what.

use super::{Front, Problem};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use catena_data::random_hex;
use std::str::FromStr;
use std::sync::Arc;

/// What the bearer of a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRole {
    /// Look at everything.
    Viewer,
    /// Also submit, stop and change runs.
    Editor,
    /// Also delete runs and end agents.
    Operator,
    /// Ask for work as an agent, and nothing else.
    Agent,
}

impl TokenRole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Editor, Self::Operator, Self::Agent];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Operator => "operator",
            Self::Agent => "agent",
        }
    }

    /// Whether it includes another one.
    fn may(self, needed: Self) -> bool {
        match needed {
            Self::Viewer => self != Self::Agent,
            Self::Editor => matches!(self, Self::Editor | Self::Operator),
            Self::Operator => self == Self::Operator,
            Self::Agent => matches!(self, Self::Agent | Self::Operator),
        }
    }
}

impl FromStr for TokenRole {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|r| r.name() == name);
        found.ok_or_else(|| {
            format!("unknown role `{name}`; known are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// Who makes a request.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// The name of the token; where none are asked for, the name the caller gives.
    pub(super) name: String,
    /// What the caller may do.
    pub(super) role: TokenRole,
}

/// Whether tokens are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody may do everything: only on the loopback device.
    Open,
    /// Only who has a token.
    Tokens,
}

/// A new token: 32 random bytes in letters.
pub fn new_token() -> std::io::Result<String> {
    Ok(format!("catena-{}", random_hex(32)?))
}

/// What is kept of a token.
pub fn hash_token(token: &str) -> String {
    blake3::hash(token.as_bytes()).to_hex().to_string()
}

/// What a request needs. What is not named here needs more than anybody has by accident.
fn needed(method: &Method, path: &str) -> Option<TokenRole> {
    if matches!(path, "/" | "/health" | "/openapi.json" | "/docs" | "/ui") || path.starts_with("/ui/") {
        return None;
    }
    if path.starts_with("/agents/") && path.ends_with("/visit") {
        return Some(TokenRole::Agent);
    }
    Some(match *method {
        Method::GET | Method::HEAD => TokenRole::Viewer,
        // What only answers changes nothing.
        Method::POST if matches!(path, "/check" | "/simulate") => TokenRole::Viewer,
        Method::POST if path.starts_with("/agents/") => TokenRole::Operator,
        Method::POST | Method::PUT => TokenRole::Editor,
        _ => TokenRole::Operator,
    })
}

/// Lets only those through who may.
pub(super) async fn guard(State(front): State<Arc<Front>>, mut request: Request, next: Next) -> Response {
    let Some(needed) = needed(request.method(), request.uri().path()) else {
        return next.run(request).await;
    };
    let caller = match front.setup.access {
        Access::Open if is_local(&request) => {
            let name = asked(&request, "user").unwrap_or_else(|| "local".to_owned());
            Some(Caller { name, role: TokenRole::Operator })
        }
        Access::Open => None,
        Access::Tokens => match identify(&front, bearer(&request)).await {
            Ok(caller) => caller,
            Err(problem) => return problem.into_response(),
        },
    };
    let Some(caller) = caller else {
        let problem = Problem::new(
            StatusCode::UNAUTHORIZED,
            "this needs a token: `Authorization: Bearer …`; make one with `catena token create`",
        );
        return ([(header::WWW_AUTHENTICATE, "Bearer")], problem).into_response();
    };
    let role = caller.role;
    if !role.may(needed) {
        let error =
            format!("this needs the role {}, but the token has the role {}", needed.name(), role.name());
        return Problem::new(StatusCode::FORBIDDEN, error).into_response();
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// The token that a request carries. A browser that opens a WebSocket can only put it into the address.
fn bearer(request: &Request) -> Option<String> {
    let header = request.headers().get(header::AUTHORIZATION).and_then(|h| h.to_str().ok());
    let carried = header.and_then(|h| h.strip_prefix("Bearer ")).map(str::to_owned);
    let is_live = request.uri().path().ends_with("/live");
    carried.or_else(|| asked(request, "token").filter(|_| is_live))
}

/// Something in the query of a request.
fn asked(request: &Request, key: &str) -> Option<String> {
    let pairs = request.uri().query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(k, _)| *k == key).map(|(_, v)| v.replace("%20", " "))
}

/// Whose token it is, if it is a good one.
async fn identify(front: &Front, token: Option<String>) -> Result<Option<Caller>, Problem> {
    let Some(token) = token else { return Ok(None) };
    let hash = hash_token(token.trim());
    let now = front.member.now();
    let tokens = front.member.store.tokens().await?;
    let found = tokens.iter().find(|t| t.hash == hash && t.expires.is_none_or(|e| e > now));
    Ok(found.and_then(|t| Some(Caller { name: t.name.clone(), role: t.role.parse().ok()? })))
}

/// Whether a request names this machine: pages of others must not reach it through a name of theirs.
fn is_local(request: &Request) -> bool {
    let host = request.headers().get(header::HOST).and_then(|h| h.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    // A page of somebody else may open a WebSocket to any address, but it cannot hide where it comes from.
    let origin = request.headers().get(header::ORIGIN).map(|o| o.to_str().unwrap_or_default());
    let is_ours = origin.is_none_or(|o| o.split_once("://").is_some_and(|(_, from)| from == host));
    is_ours && matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_are_kept_as_hashes() {
        let (a, b) = (new_token().unwrap(), new_token().unwrap());
        assert_ne!(a, b);
        assert!(a.len() > 64 && !hash_token(&a).contains(&a[7..20]));
    }

    #[test]
    fn pages_of_others_do_not_reach_an_open_server() {
        let from = |origin: Option<&str>| {
            let mut request = Request::builder().header("Host", "localhost:8080");
            if let Some(origin) = origin {
                request = request.header("Origin", origin);
            }
            is_local(&request.body(axum::body::Body::empty()).unwrap())
        };
        assert!(from(None) && from(Some("http://localhost:8080")));
        assert!(
            !from(Some("http://elsewhere.example"))
                && !from(Some("http://localhost:9999"))
                && !from(Some("null"))
        );
    }

    #[test]
    fn each_role_may_what_it_should() {
        use TokenRole::{Agent, Editor, Operator, Viewer};
        assert!(Operator.may(Viewer) && Operator.may(Editor) && Operator.may(Agent));
        assert!(Editor.may(Viewer) && !Editor.may(Operator) && !Editor.may(Agent));
        assert!(!Viewer.may(Editor) && !Agent.may(Viewer) && Agent.may(Agent));
        assert_eq!(needed(&Method::DELETE, "/runs/1"), Some(Operator));
        assert_eq!(needed(&Method::POST, "/check"), Some(Viewer));
        assert_eq!(needed(&Method::POST, "/checks"), Some(Editor));
        assert_eq!((needed(&Method::GET, "/ui/runs/1"), needed(&Method::GET, "/")), (None, None));
        assert_eq!(needed(&Method::GET, "/uis"), Some(Viewer));
        assert_eq!(needed(&Method::PATCH, "/anything"), Some(Operator));
        assert_eq!(needed(&Method::POST, "/agents/a/visit"), Some(Agent));
        assert_eq!(needed(&Method::POST, "/agents/a/shutdown"), Some(Operator));
    }
}
