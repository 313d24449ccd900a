//! Lets programs on this machine reach a server on a host of a net.

use crate::place::Place;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Takes connections on the loopback device of the machine, and passes them on to the same port there.
pub(crate) struct Relay {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    server: Place,
    port: u16,
    stop: AtomicBool,
    /// Both ends of what is open.
    open: Mutex<HashMap<u64, [TcpStream; 2]>>,
}

impl Relay {
    pub(crate) fn start(server: Place, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let shared = Shared { server, port, stop: AtomicBool::new(false), open: Mutex::default() };
        let shared = Arc::new(shared);
        let accepting = shared.clone();
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(move || {
            for (number, near) in (0..).zip(listener.incoming().flatten()) {
                if accepting.stop.load(Ordering::SeqCst) {
                    return;
                }
                let shared = accepting.clone();
                thread::spawn(move || shared.pass(number, near));
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, [TcpStream; 2]>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on what both ends say, until both have said everything.
    fn pass(&self, number: u64, near: TcpStream) {
        let Ok(far) = self.server.connect(self.port) else { return };
        let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else { return };
        // Whoever stops it looks there after it has said so.
        self.open().insert(number, [near_too, far_too]);
        if !self.stop.load(Ordering::SeqCst) {
            thread::scope(|s| {
                s.spawn(|| copy(&near, &far));
                copy(&far, &near);
            });
        }
        self.open().remove(&number);
    }
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for end in self.shared.open().values().flatten() {
            let _ = end.shutdown(Shutdown::Both);
        }
        // Wakes the one who waits for connections.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.shared.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
