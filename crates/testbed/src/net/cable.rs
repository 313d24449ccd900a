//! A cable that this process is a part of: what passes it arrives late, or not at all.
//!
//! This is for kernels without netem. A port of a switch is taken out of its bridge; instead, two TAP devices connect
//! them, and threads carry frames from one to the other.

use super::link::{BRIDGE, Trouble};
use super::namespace::Namespace;
use crate::server::TestbedError;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// What is on its way at most, in each direction. What comes then is lost, as it would be in front of any link.
const FRAMES: usize = 20_000;
/// More than any frame has.
const LARGEST: usize = 1 << 16;

pub(super) struct Cable {
    switch: Arc<Namespace>,
    port: String,
    trouble: Arc<Mutex<Trouble>>,
    threads: Vec<JoinHandle<()>>,
}

impl Cable {
    /// Puts a cable between a port of a switch and its bridge.
    pub(super) fn insert(switch: Arc<Namespace>, port: &str, trouble: Trouble) -> Result<Self, TestbedError> {
        let trouble = Arc::new(Mutex::new(trouble));
        let mut cable = Self { switch, port: port.to_owned(), trouble, threads: Vec::new() };
        let [bridge, near, far] = cable.devices();
        let open = || Ok::<_, io::Error>([tap(&near)?, tap(&far)?]);
        let [near_end, far_end] = cable.switch.enter(open)??.map(Arc::new);
        let switch = &cable.switch;
        for device in [&near, &far] {
            switch.ip(&format!("link set {device} addrgenmode none"))?;
        }
        switch.ip(&format!("link add {bridge} type bridge mcast_snooping 0"))?;
        switch.ip(&format!("link set {bridge} addrgenmode none up"))?;
        switch.ip(&format!("link set {near} master {bridge} up"))?;
        switch.ip(&format!("link set {far} master {BRIDGE} up"))?;
        cable.carry(near_end.clone(), far_end.clone())?;
        cable.carry(far_end, near_end)?;
        cable.switch.ip(&format!("link set {port} master {bridge}"))?;
        Ok(cable)
    }

    pub(super) fn set_trouble(&self, trouble: Trouble) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// The bridge of the port, and the ends of the cable: at the port, and at the switch.
    fn devices(&self) -> [String; 3] {
        ["b", "n", "f"].map(|end| format!("{}{end}", self.port))
    }

    /// Carries frames in one direction.
    fn carry(&mut self, from: Arc<File>, to: Arc<File>) -> io::Result<()> {
        let (sender, receiver) = sync_channel(FRAMES);
        let trouble = self.trouble.clone();
        let thread =
            |work: Box<dyn FnOnce() + Send>| thread::Builder::new().name("cable".to_owned()).spawn(work);
        self.threads.push(thread(Box::new(move || take(&from, &sender, &trouble)))?);
        self.threads.push(thread(Box::new(move || give(&to, &receiver)))?);
        Ok(())
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        let _ = self.switch.ip(&format!("link set {} master {BRIDGE}", self.port));
        // Threads notice that what they read from is gone.
        for device in self.devices() {
            let _ = self.switch.ip(&format!("link del {device}"));
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Takes what enters a cable, and decides when it leaves it.
fn take(mut end: &File, cable: &SyncSender<(Instant, Vec<u8>)>, trouble: &Mutex<Trouble>) {
    let mut frame = vec![0; LARGEST];
    let (random, mut count) = (RandomState::new(), 0u64);
    while let Ok(length) = end.read(&mut frame) {
        let Trouble { delay, loss } = *trouble.lock().unwrap_or_else(PoisonError::into_inner);
        count += 1;
        let chance = random.hash_one(count) as f64 / u64::MAX as f64;
        if chance >= loss {
            let _ = cable.try_send((Instant::now() + delay, frame[..length].to_vec()));
        }
    }
}

/// Gives what leaves a cable to whom it belongs.
fn give(mut end: &File, cable: &Receiver<(Instant, Vec<u8>)>) {
    for (due, frame) in cable {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // Nobody may be there to take it.
        let _ = end.write(&frame);
    }
}

/// The kernel's `struct ifreq`, as far as it is used here.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: i16,
    unused: [u8; 22],
}

/// A network device of the namespace that this thread is in. Frames are read from and written to it. It goes away
/// with the file.
#[expect(unsafe_code, reason = "there is no other way to make such a device one's own")]
fn tap(name: &str) -> io::Result<File> {
    use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
    const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);
    const IFF_TAP: i16 = 0x0002;
    const IFF_NO_PI: i16 = 0x1000;
    let file = File::options().read(true).write(true).open("/dev/net/tun")?;
    let mut request = Request { name: [0; 16], flags: IFF_TAP | IFF_NO_PI, unused: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the kernel reads and writes a `struct ifreq`, which has the size and the layout of `Request`.
    unsafe { ioctl(&file, Updater::<TUNSETIFF, Request>::new(&mut request))? };
    Ok(file)
}
