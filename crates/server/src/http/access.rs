//! Who may do what.

use super::{Front, Problem};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::fmt::Write;
use std::io::Read;
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
    let mut bytes = [0u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let mut token = String::from("catena-");
    for byte in bytes {
        let _ = write!(token, "{byte:02x}");
    }
    Ok(token)
}

/// What is kept of a token.
pub fn hash_token(token: &str) -> String {
    blake3::hash(token.as_bytes()).to_hex().to_string()
}

/// What a request needs. What is not named here needs more than anybody has by accident.
fn needed(method: &Method, path: &str) -> Option<TokenRole> {
    if matches!(path, "/health" | "/openapi.json" | "/docs") {
        return None;
    }
    if path.starts_with("/agents/") && path.ends_with("/visit") {
        return Some(TokenRole::Agent);
    }
    Some(match *method {
        Method::GET | Method::HEAD => TokenRole::Viewer,
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
    let role = match front.setup.access {
        Access::Open if is_local(&request) => Some(TokenRole::Operator),
        Access::Open => None,
        Access::Tokens => match identify(&front, bearer(&request)).await {
            Ok(role) => role,
            Err(problem) => return problem.into_response(),
        },
    };
    let Some(role) = role else {
        let problem = Problem::new(
            StatusCode::UNAUTHORIZED,
            "this needs a token: `Authorization: Bearer …`; make one with `catena token create`",
        );
        return ([(header::WWW_AUTHENTICATE, "Bearer")], problem).into_response();
    };
    if !role.may(needed) {
        let error =
            format!("this needs the role {}, but the token has the role {}", needed.name(), role.name());
        return Problem::new(StatusCode::FORBIDDEN, error).into_response();
    }
    request.extensions_mut().insert(role);
    next.run(request).await
}

/// The token that a request carries.
fn bearer(request: &Request) -> Option<String> {
    let header = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    header.strip_prefix("Bearer ").map(str::to_owned)
}

/// The role of a token, if it is a good one.
async fn identify(front: &Front, token: Option<String>) -> Result<Option<TokenRole>, Problem> {
    let Some(token) = token else { return Ok(None) };
    let hash = hash_token(token.trim());
    let now = front.member.now();
    let tokens = front.member.store.tokens().await?;
    let found = tokens.iter().find(|t| t.hash == hash && t.expires.is_none_or(|e| e > now));
    Ok(found.and_then(|t| t.role.parse().ok()))
}

/// Whether a request names this machine: pages of others must not reach it through a name of theirs.
fn is_local(request: &Request) -> bool {
    let host = request.headers().get(header::HOST).and_then(|h| h.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
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
    fn each_role_may_what_it_should() {
        use TokenRole::{Agent, Editor, Operator, Viewer};
        assert!(Operator.may(Viewer) && Operator.may(Editor) && Operator.may(Agent));
        assert!(Editor.may(Viewer) && !Editor.may(Operator) && !Editor.may(Agent));
        assert!(!Viewer.may(Editor) && !Agent.may(Viewer) && Agent.may(Agent));
        assert_eq!(needed(&Method::DELETE, "/runs/1"), Some(Operator));
        assert_eq!(needed(&Method::PATCH, "/anything"), Some(Operator));
        assert_eq!(needed(&Method::POST, "/agents/a/visit"), Some(Agent));
        assert_eq!(needed(&Method::POST, "/agents/a/shutdown"), Some(Operator));
    }
}
