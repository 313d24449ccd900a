//! The workbench: its address, and a browser that shows it.

use catena_bus::{Bus, LocalBus, Message, subject};
use catena_model::Library;
use catena_model::chain::RunId;
use catena_server::{Access, HttpSetup, Places, Storage, TokenRole, hash_token, new_token, serve_beside};
use catena_store::{Store, Token};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// What the token of those who watch a run is called.
const WATCHER: &str = "watcher";
/// How much waiting counts as much as one point of priority in runs of this machine.
const AGING: std::time::Duration = std::time::Duration::from_mins(10);

/// Where the workbench is, at some place in it; signed in if there is a token. What stands behind the `#` is not sent.
pub(crate) fn address(listen: SocketAddr, place: &str, token: Option<&str>) -> String {
    let host = if listen.ip().is_unspecified() {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), listen.port())
    } else {
        listen
    };
    let token = token.map(|t| format!("#token={t}")).unwrap_or_default();
    format!("http://{host}/ui/{place}{token}")
}

/// Says where the workbench is and opens it. Where there is no browser, saying it has to do.
pub(crate) fn open(address: &str) {
    eprintln!("workbench: {address}");
    let mut browser = Command::new(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
    let quiet = browser.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = quiet.spawn() {
        // It may live as long as the browser.
        let wait = move || child.wait();
        let _ = std::thread::Builder::new().name("browser".to_owned()).spawn(wait);
    }
}

/// Lets people watch a run of this process.
pub(crate) struct Window {
    stop: watch::Sender<bool>,
    /// Events of the run.
    pub(crate) events: mpsc::UnboundedSender<serde_json::Value>,
    served: tokio::task::JoinHandle<Result<(), catena_store::StoreError>>,
}

impl Window {
    /// Opens it. Who has the address may look at everything and change nothing.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        bus: Arc<LocalBus>,
        state: &Path,
        directory: PathBuf,
        run: RunId,
    ) -> Result<Self, String> {
        if let Some(reason) = catena_server::workbench_missing() {
            return Err(format!("--open: this catena was built without its workbench: {reason}"));
        }
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("--open: {e}"))?;
        let listen = listener.local_addr().map_err(|e| format!("--open: {e}"))?;
        let token = new_token().map_err(|e| format!("a token cannot be made: {e}"))?;
        let kept = Token {
            name: WATCHER.to_owned(),
            role: TokenRole::Viewer.name().to_owned(),
            hash: hash_token(&token),
            created: store.now().await.map_err(|e| e.to_string())?,
            expires: None,
        };
        store.put_token(&kept).await.map_err(|e| e.to_string())?;
        let setup = HttpSetup {
            listener,
            max_request: 1 << 20,
            access: Access::Tokens,
            services: Vec::new(),
            macros: Vec::new(),
            library: Library::default(),
            setups: Vec::new(),
            pools: Vec::new(),
            readable: vec![directory],
            aging: AGING,
        };
        let (stop, stopped) = watch::channel(false);
        let places = Arc::new(Places::new(state.to_path_buf(), Storage::Shared));
        let (events, mut told) = mpsc::unbounded_channel();
        let to: Arc<dyn Bus> = bus.clone();
        tokio::spawn(async move {
            while let Some(event) = told.recv().await {
                to.publish(subject::EVENTS, Message::Event(event)).await;
            }
        });
        let served = tokio::spawn(serve_beside(store, bus, places, setup, stopped));
        open(&address(listen, &format!("runs/{run}"), Some(&token)));
        Ok(Self { stop, events, served })
    }

    /// Keeps it open until somebody wants it to end.
    pub(crate) async fn stay(self, wish: &mut watch::Receiver<catena_server::StopWish>) {
        eprintln!("the workbench stays open; press Ctrl-C to end");
        let _ = wish.changed().await;
        self.close().await;
    }

    pub(crate) async fn close(self) {
        let _ = self.stop.send(true);
        let _ = self.served.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_in_the_part_of_the_address_that_is_not_sent() {
        let listen: SocketAddr = "0.0.0.0:8080".parse().unwrap();
        assert_eq!(address(listen, "runs/1", Some("t")), "http://127.0.0.1:8080/ui/runs/1#token=t");
        assert_eq!(address("[::1]:80".parse().unwrap(), "", None), "http://[::1]:80/ui/");
    }
}
