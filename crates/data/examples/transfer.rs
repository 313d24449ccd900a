//! How fast a file gets from one agent to another over the loopback device, beside what the system can do at best.
//!
//! `cargo run --release -p catena-data --example transfer [-- <megabytes> [<directory>]]`
//!
//! Every way is measured in turn, several times; the middle counts. Ratios are to a raw copy: one thread sends the file
//! with `sendfile`, another writes what it receives, and nobody looks at it.

use catena_data::{
    AgentSource, Artifact, FetchOptions, Holdings, Patience, Place, Put, ServeOptions, Server, Source, fetch,
};
use std::error::Error;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Seconds on the clock.
type Measured = Result<f64, Box<dyn Error>>;

const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let megabytes: u64 = arguments.next().map_or(Ok(1024), |a| a.parse())?;
    let base = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    let directory = tempfile::Builder::new().prefix("catena-transfer-").tempdir_in(base)?;
    let at = |name: &str| directory.path().join(name);
    let size = megabytes * 1_000_000;
    fill(&at("file"), size)?;

    let holdings = Holdings::open(&at("sender"), None)?;
    let (file, _pin) = holdings.put(&at("file"), Put::Copy)?;
    many_small(&at("tree"))?;
    let (tree, _pin) = holdings.put(&at("tree"), Put::Copy)?;
    let server = Server::start(&holdings, ([127, 0, 0, 1], 0).into(), ServeOptions::default())?;
    let object = at("file");

    type Way<'w> = (&'static str, Box<dyn FnMut() -> Measured + 'w>);
    let mut ways: Vec<Way<'_>> = vec![
        ("raw socket, not verified", Box::new(|| raw(&object, &at("raw")))),
        ("cp", Box::new(|| cp(&object, &at("cp")))),
        ("hash in place", Box::new(|| hash(&holdings, &file))),
        ("agent to agent, verified", Box::new(|| transfer(&server, &file, &at("receiver")))),
    ];
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    let mut busy: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for ((way, seconds), busy) in ways.iter_mut().zip(&mut seconds).zip(&mut busy) {
            let before = processor_seconds();
            seconds.push((way.1)()?);
            busy.push(processor_seconds() - before);
        }
    }
    let middle = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    println!(
        "\n### {megabytes} MB over loopback\n\n| | seconds | GB/s | × raw socket | processor seconds |\n|---|---|---|---|---|"
    );
    let base = middle(&mut seconds[0]);
    for (((name, _), times), busy) in ways.iter().zip(&mut seconds).zip(&mut busy) {
        let (time, busy) = (middle(times), middle(busy));
        let speed = size as f64 / time / 1e9;
        println!("| {name} | {time:.2} | {speed:.2} | {:.2} | {busy:.2} |", time / base);
    }
    drop(ways);
    let before = server.requests();
    let started = Instant::now();
    let receiver = Holdings::open(&at("small"), None)?;
    let source: Arc<dyn Source> = Arc::new(AgentSource::new(&server.url(), None, Patience::default()));
    let _fetched = fetch(&receiver, &tree, &[source], FetchOptions::default())?;
    let fetched = started.elapsed().as_secs_f64();
    receiver.place(&tree, &at("placed"), Place::Shared)?;
    let placed = started.elapsed().as_secs_f64() - fetched;
    println!(
        "\nA directory of 10,000 files: fetched in {fetched:.2} s with {} requests, placed in {placed:.2} s.",
        server.requests() - before
    );
    Ok(())
}

/// What this process and its children have used of the processors, which tells more than the clock if others run.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split(' ');
    let ticks: f64 = fields.skip(12).take(4).filter_map(|f| f.parse::<f64>().ok()).sum();
    ticks / 100.0
}

fn fill(path: &Path, size: u64) -> std::io::Result<()> {
    let mut content = blake3::Hasher::new().update(b"a file to be moved").finalize_xof();
    let mut file = File::create(path)?;
    std::io::copy(&mut Read::by_ref(&mut content).take(size), &mut file)?;
    // Not to be written by the system while others are measured.
    file.sync_all()
}

fn many_small(directory: &Path) -> std::io::Result<()> {
    for group in 0..100 {
        fs::create_dir_all(directory.join(group.to_string()))?;
        for file in 0..100 {
            let content = format!("{group} {file}\n").repeat(100);
            fs::write(directory.join(format!("{group}/{file}")), content)?;
        }
    }
    Ok(())
}

fn cp(from: &Path, to: &Path) -> Measured {
    let started = Instant::now();
    let status = Command::new("cp").args(["--reflink=never"]).arg(from).arg(to).status()?;
    let seconds = started.elapsed().as_secs_f64();
    fs::remove_file(to)?;
    if status.success() { Ok(seconds) } else { Err("cp has failed".into()) }
}

fn hash(holdings: &Holdings, file: &Artifact) -> Measured {
    let started = Instant::now();
    holdings.verify(&file.id())?;
    Ok(started.elapsed().as_secs_f64())
}

fn raw(from: &Path, to: &Path) -> Measured {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    let from = from.to_path_buf();
    let started = Instant::now();
    let sender = thread::spawn(move || -> std::io::Result<()> {
        let (stream, _) = listener.accept()?;
        let file = File::open(from)?;
        while rustix::fs::sendfile(&stream, &file, None, 1 << 20)? > 0 {}
        Ok(())
    });
    let mut stream = TcpStream::connect(address)?;
    let mut file = File::create(to)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        file.write_all(&buffer[..n])?;
    }
    sender.join().map_err(|_| "the sender has panicked")??;
    let seconds = started.elapsed().as_secs_f64();
    fs::remove_file(to)?;
    Ok(seconds)
}

fn transfer(server: &Server, file: &Artifact, to: &Path) -> Measured {
    let holdings = Holdings::open(to, None)?;
    let source: Arc<dyn Source> = Arc::new(AgentSource::new(&server.url(), None, Patience::default()));
    let started = Instant::now();
    let fetched = fetch(&holdings, file, &[source], FetchOptions::default())?;
    let seconds = started.elapsed().as_secs_f64();
    drop(fetched);
    drop(holdings);
    fs::remove_dir_all(to)?;
    Ok(seconds)
}
