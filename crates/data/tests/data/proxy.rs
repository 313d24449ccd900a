//! Somebody between an agent and those who ask it, who plays tricks.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What is done to answers.
#[derive(Clone, Debug)]
pub(crate) enum Trick {
    /// A bit of a byte of the whole object is turned.
    Flip(u64),
    /// The outline is somebody else's.
    Outline,
    /// The object is said to have another size.
    Size,
    /// After so many bytes of an answer, nothing comes any more.
    Stall(usize),
    /// After so many bytes of an answer, the connection ends.
    CutOff(usize),
    /// After so many bytes of all answers, every connection ends.
    Die(u64),
    /// A byte comes every few milliseconds.
    Drip,
    /// Everything is answered with this.
    Say(&'static str),
}

/// A proxy in front of an agent. It ends with the test.
pub(crate) struct Proxy {
    pub(crate) url: String,
    given: Arc<AtomicU64>,
}

impl Proxy {
    pub(crate) fn new(agent: &str, trick: Trick) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let agent = agent.trim_start_matches("http://").to_owned();
        let given = Arc::new(AtomicU64::new(0));
        let lock = Arc::new(Mutex::new(()));
        let counter = Arc::clone(&given);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (agent, trick) = (agent.clone(), trick.clone());
                let (given, lock) = (Arc::clone(&counter), Arc::clone(&lock));
                thread::spawn(move || serve(stream, &agent, &trick, &given, &lock));
            }
        });
        Self { url, given }
    }

    /// How many bytes were given to clients.
    pub(crate) fn given(&self) -> u64 {
        self.given.load(Ordering::SeqCst)
    }
}

/// Reads a head and the body that its length tells of.
fn message(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let mut body = vec![0; header(&head, "content-length").map_or(0, |l| l.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn header(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|l| l.split_once(": "));
    lines.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.to_owned())
}

fn serve(
    mut client: TcpStream,
    agent: &str,
    trick: &Trick,
    given: &AtomicU64,
    lock: &Mutex<()>,
) -> Option<()> {
    loop {
        let (request, body) = message(&mut client)?;
        if let Trick::Say(answer) = trick {
            client.write_all(answer.as_bytes()).ok()?;
            return None;
        }
        let mut upstream = TcpStream::connect(agent).ok()?;
        upstream.write_all(request.as_bytes()).ok()?;
        upstream.write_all(&body).ok()?;
        let (mut head, mut answer) = message(&mut upstream)?;
        let outline = request.contains("/outline ");
        let doubt = request.contains("/doubt ");
        match trick {
            _ if doubt => {}
            Trick::Outline if outline => {
                if let Some(byte) = answer.get_mut(5) {
                    *byte ^= 1;
                }
            }
            Trick::Flip(at) if !outline => {
                let start = header(&head, "content-range").map_or(0, |r| {
                    r.trim_start_matches("bytes ").split('-').next().unwrap().parse().unwrap()
                });
                let index = at.checked_sub(start).unwrap_or(u64::MAX);
                if let Some(byte) = answer.get_mut(index as usize) {
                    *byte ^= 4;
                }
            }
            Trick::Size if !outline => {
                let range = header(&head, "content-range").unwrap_or_default();
                head = head.replace(&range, &format!("{range}7"));
            }
            Trick::Stall(after) if answer.len() > *after => {
                client.write_all(head.as_bytes()).ok()?;
                client.write_all(&answer[..*after]).ok()?;
                // Until the client has lost its patience.
                let _ = client.read(&mut [0]);
                return None;
            }
            Trick::CutOff(after) if answer.len() > *after && !outline => {
                client.write_all(head.as_bytes()).ok()?;
                client.write_all(&answer[..*after]).ok()?;
                return None;
            }
            Trick::Die(after) if !outline => {
                let _one = lock.lock().unwrap();
                let left = after.saturating_sub(given.load(Ordering::SeqCst)) as usize;
                let part = left.min(answer.len());
                given.fetch_add(part as u64, Ordering::SeqCst);
                client.write_all(head.as_bytes()).ok()?;
                client.write_all(&answer[..part]).ok()?;
                if part < answer.len() {
                    return None;
                }
                continue;
            }
            Trick::Drip if !outline => {
                client.write_all(head.as_bytes()).ok()?;
                for byte in answer {
                    client.write_all(&[byte]).ok()?;
                    thread::sleep(Duration::from_millis(5));
                }
                return None;
            }
            _ => {}
        }
        given.fetch_add(answer.len() as u64, Ordering::SeqCst);
        client.write_all(head.as_bytes()).ok()?;
        client.write_all(&answer).ok()?;
    }
}
