//! Sources that lie, stall and die; disks that rot and fill up; processes that are killed.

use super::proxy::{Proxy, Trick};
use super::{Machine, agent, content, inside, patience, this_test};
use catena_data::{
    AgentSource, Artifact, ContentId, DataError, DirectoryRef, Fault, FaultKind, FetchError, FetchOptions,
    Holdings, Put, Source, fetch,
};
use std::fs::{self, File, FileTimes, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

fn impatient(url: &str) -> Arc<dyn Source> {
    Arc::new(AgentSource::new(url, None, patience()))
}

/// Fetches a file of 8 MiB from a source with a trick, first alone and then together with an honest one.
fn with_trick(trick: Trick, kind: FaultKind, said: &str) {
    let bytes = content(10, (8 << 20) + 3);
    let (there, artifact) = Machine::holding(&bytes);
    let proxy = Proxy::new(&there.server.url(), trick);
    let blamed = |faults: &[Fault]| {
        let found = faults.iter().find(|f| f.kind == kind && f.what.contains(said));
        assert!(found.is_some_and(|f| f.source == proxy.url && f.id == artifact.id()), "{faults:?}");
    };
    let here = Machine::new();
    match here.fetch(&artifact, &[impatient(&proxy.url)]) {
        Err(FetchError::Nowhere { faults, .. }) => blamed(&faults),
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("it was taken"),
    }
    assert!(!here.holdings.has(&artifact.id()));
    let fetched = here.fetch(&artifact, &[impatient(&proxy.url), agent(&there.server.url())]).unwrap();
    assert_eq!(here.content(&artifact), bytes);
    // Perhaps the honest one was quicker. It is never blamed.
    assert!(fetched.faults.iter().all(|f| f.source == proxy.url), "{:?}", fetched.faults);
}

#[test]
fn a_turned_bit_is_found_by_its_block_and_fetched_elsewhere() {
    with_trick(Trick::Flip(5 << 20), FaultKind::Lied, "block 5 ");
}

#[test]
fn somebody_elses_outline_is_not_believed() {
    with_trick(Trick::Outline, FaultKind::Lied, "outline");
}

#[test]
fn another_size_is_not_believed() {
    with_trick(Trick::Size, FaultKind::Lied, "83886117");
}

#[test]
fn a_source_that_stalls_is_left() {
    with_trick(Trick::Stall(300_000), FaultKind::Stalled, "");
}

#[test]
fn a_source_that_drips_is_left() {
    with_trick(Trick::Drip, FaultKind::Stalled, "");
}

#[test]
fn an_answer_that_ends_too_early_is_not_taken_for_the_whole() {
    with_trick(Trick::CutOff(200_000), FaultKind::CutOff, "");
}

#[test]
fn nonsense_is_not_taken_for_an_answer() {
    with_trick(Trick::Say("HELO\r\n\r\n"), FaultKind::Unavailable, "");
    with_trick(
        Trick::Say("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
        FaultKind::Unavailable,
        "302",
    );
    with_trick(Trick::Say("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"), FaultKind::Unavailable, "500");
}

#[test]
fn a_small_file_is_checked_too() {
    let there = Machine::new();
    fs::create_dir(there.path("tree")).unwrap();
    for n in 0..20 {
        fs::write(there.path("tree").join(n.to_string()), content(n, 5000)).unwrap();
    }
    let (artifact, _pin) = there.holdings.put(&there.path("tree"), Put::Copy).unwrap();
    for (trick, kind) in [
        (Trick::Flip(700), FaultKind::Lied),
        (Trick::CutOff(700), FaultKind::CutOff),
        (Trick::Stall(700), FaultKind::Stalled),
    ] {
        let proxy = Proxy::new(&there.server.url(), trick);
        let here = Machine::new();
        let sources = [impatient(&proxy.url), agent(&there.server.url())];
        let fetched = here.fetch(&artifact, &sources).unwrap();
        assert!(
            fetched.faults.iter().any(|f| f.kind == kind && f.source == proxy.url),
            "{:?}",
            fetched.faults
        );
        assert!(here.holdings.holds(&artifact));
        assert!(here.holdings.verify_all().unwrap().is_empty());
    }
}

#[test]
fn a_fetch_goes_on_where_it_was_cut_off() {
    let bytes = content(11, (32 << 20) + 77);
    let (there, artifact) = Machine::holding(&bytes);
    let here = Machine::new();
    for after in [3_000_000, 11_000_000] {
        let proxy = Proxy::new(&there.server.url(), Trick::Die(after));
        assert!(here.fetch(&artifact, &[impatient(&proxy.url)]).is_err());
    }
    let proxy = Proxy::new(&there.server.url(), Trick::Die(u64::MAX));
    let fetched = here.fetch(&artifact, &[impatient(&proxy.url)]).unwrap();
    assert_eq!(here.content(&artifact), bytes);
    let moved: u64 = fetched.bytes.values().sum();
    assert!(moved <= bytes.len() as u64 - 8_000_000, "{moved} bytes were moved again");
    assert!(proxy.given() < moved + 2000);
}

#[test]
fn what_was_left_of_an_earlier_fetch_is_checked() {
    let bytes = content(12, 8 << 20);
    let (there, artifact) = Machine::holding(&bytes);
    let here = Machine::new();
    let partial = here.path("holdings/partial").join(artifact.id().to_string());
    let mut wrong = bytes.clone();
    wrong[3 << 20] ^= 1;
    wrong.extend_from_slice(b"and more");
    fs::write(&partial, &wrong).unwrap();
    let fetched = here.fetch(&artifact, &[agent(&there.server.url())]).unwrap();
    assert_eq!(here.content(&artifact), bytes);
    assert_eq!(fetched.bytes.values().sum::<u64>(), 1 << 20, "only the wrong block is fetched");
    assert!(!partial.exists());
}

/// Turns a bit of an object behind everybody's back, as a disk would.
fn rot(path: &Path, at: u64) {
    let before = fs::metadata(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    file.set_times(FileTimes::new().set_modified(before.modified().unwrap())).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
}

#[test]
fn what_has_rotted_on_a_disk_is_found_by_the_receiver_and_removed_by_the_holder() {
    let bytes = content(13, 6 << 20);
    let (rotten, artifact) = Machine::holding(&bytes);
    let (sound, _) = Machine::holding(&bytes);
    rot(&rotten.object(&artifact), 2_500_000);
    let here = Machine::new();
    // One stream each, so that nobody is done before the block is met.
    let sources = [agent(&rotten.server.url()), agent(&sound.server.url())];
    match fetch(&here.holdings, &artifact, &sources[..1], FetchOptions { streams: 1, tries: 1 }) {
        Err(FetchError::Nowhere { faults, .. }) => assert!(faults[0].what.contains("block 2 "), "{faults:?}"),
        _ => panic!("it was taken"),
    }
    for _ in 0..1000 {
        if !rotten.holdings.has(&artifact.id()) {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert!(!rotten.holdings.has(&artifact.id()), "the holder has looked and removed it");
    assert_eq!(rotten.holdings.take_corruptions().len(), 1);
    assert!(!rotten.object(&artifact).exists());
    drop(here.fetch(&artifact, &sources).unwrap());
    assert_eq!(here.content(&artifact), bytes);
}

#[test]
fn a_directory_that_would_write_elsewhere_is_refused() {
    let there = Machine::new();
    let here = Machine::new();
    let id = ContentId::of(b"x");
    for lines in [
        format!("f {id} 1 ../out\0"),
        format!("f {id} 1 /tmp/out\0"),
        "l a\0/etc\0".to_owned(),
        "l a\0../..\0".to_owned(),
        format!("l a\0b\0f {id} 1 a/out\0"),
        "l a/b/s\0../..\0l t\0a/b/s/../..\0".to_owned(),
    ] {
        let bytes = format!("catena directory 1\n{lines}");
        drop(there.holdings.put_bytes(bytes.as_bytes()).unwrap());
        let directory = DirectoryRef {
            id: ContentId::of(bytes.as_bytes()),
            size: bytes.len() as u64,
            files: 1,
            bytes: 1,
        };
        let artifact = Artifact::Directory(directory);
        let refused = here.fetch(&artifact, &[agent(&there.server.url())]);
        assert!(matches!(refused, Err(FetchError::Data(DataError::Manifest { .. }))), "{lines:?}");
        let refused = here.holdings.place(&artifact, &here.path("placed"), catena_data::Place::Own);
        assert!(matches!(refused, Err(DataError::Manifest { .. })), "{lines:?}");
        assert!(!here.path("placed").exists());
    }
}

#[test]
fn a_full_disk_is_said_and_leaves_no_halves() {
    let name = "trouble::a_full_disk_is_said_and_leaves_no_halves";
    if let Some(disk) = inside() {
        return on_a_small_disk(&disk);
    }
    let disk = tempfile::tempdir().unwrap();
    let again = this_test(name, disk.path());
    let script = "mount -t tmpfs -o size=24m none \"$CATENA_DATA_INSIDE\" && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script]).arg(again.get_program()).args(again.get_args());
    let done = command.env("CATENA_DATA_INSIDE", disk.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn on_a_small_disk(disk: &Path) {
    let free = || {
        let stat = rustix::fs::statvfs(disk).unwrap();
        stat.f_bavail * stat.f_frsize
    };
    let holdings = Holdings::open(&disk.join("holdings"), None).unwrap();
    let outside = tempfile::tempdir().unwrap();
    let large = outside.path().join("large");
    fs::write(&large, content(20, 40 << 20)).unwrap();
    let (there, artifact) = Machine::holding(&content(20, 40 << 20));
    let before = free();
    let no_halves = |free_before: u64| {
        for part in ["new", "partial"] {
            assert_eq!(fs::read_dir(disk.join("holdings").join(part)).unwrap().count(), 0, "{part}");
        }
        assert!(free() + (64 << 10) >= free_before, "{} of {free_before} bytes are free", free());
    };
    let full = holdings.put(&large, Put::Copy);
    assert!(matches!(full, Err(DataError::DiskFull { needed, .. }) if needed == 40 << 20));
    no_halves(before);
    let full = fetch(&holdings, &artifact, &[agent(&there.server.url())], FetchOptions::default());
    assert!(matches!(full, Err(FetchError::Data(DataError::DiskFull { .. }))));
    no_halves(before);
    // What nobody needs makes room for what somebody needs.
    let old = outside.path().join("old");
    fs::write(&old, content(21, 14 << 20)).unwrap();
    let (old, pin) = holdings.put(&old, Put::Copy).unwrap();
    let new = outside.path().join("new");
    fs::write(&new, content(22, 14 << 20)).unwrap();
    let full = holdings.put(&new, Put::Copy);
    assert!(matches!(full, Err(DataError::DiskFull { .. })), "what is pinned stays");
    assert!(holdings.has(&old.id()));
    drop(pin);
    let (new, _pin) = holdings.put(&new, Put::Copy).unwrap();
    assert!(!holdings.has(&old.id()) && holdings.has(&new.id()));
    assert!(holdings.verify_all().unwrap().is_empty());
}

#[test]
fn a_killed_process_leaves_nothing_that_is_taken_for_whole() {
    let name = "trouble::a_killed_process_leaves_nothing_that_is_taken_for_whole";
    if let Some(directory) = inside() {
        return put_and_fetch_for_ever(&directory);
    }
    let directory = tempfile::tempdir().unwrap();
    let (there, artifact) = Machine::holding(&content(30, 64 << 20));
    let source = directory.path().join("source");
    fs::write(&source, format!("{} {}", there.server.url(), serde_json::to_string(&artifact).unwrap()))
        .unwrap();
    let has_objects = || {
        fs::read_dir(directory.path().join("holdings/objects"))
            .is_ok_and(|mut entries| entries.next().is_some())
    };
    let mut found = 0;
    for round in 0..8 {
        let mut child = this_test(name, directory.path()).stdout(Stdio::null()).spawn().unwrap();
        while !has_objects() {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(15 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let holdings = Holdings::open(&directory.path().join("holdings"), None).unwrap();
        assert_eq!(fs::read_dir(directory.path().join("holdings/new")).unwrap().count(), 0);
        assert_eq!(holdings.verify_all().unwrap(), [], "in round {round}");
        found += holdings.usage().objects;
        holdings.remove(&artifact.id()).unwrap();
    }
    assert!(found > 0, "it has done something");
}

fn put_and_fetch_for_ever(directory: &Path) {
    let holdings = Holdings::open(&directory.join("holdings"), None).unwrap();
    let source = fs::read_to_string(directory.join("source")).unwrap();
    let (url, artifact) = source.split_once(' ').unwrap();
    let artifact: Artifact = serde_json::from_str(artifact).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                drop(fetch(&holdings, &artifact, &[agent(url)], FetchOptions::default()).unwrap());
                holdings.remove(&artifact.id()).unwrap();
            }
        });
        for number in 0_u64.. {
            let path = directory.join("file");
            // What a process before this one has given away is not ours to write to.
            let _ = fs::remove_file(&path);
            fs::write(&path, content(number % 50, 3 << 20)).unwrap();
            drop(holdings.put(&path, Put::Link).unwrap());
            fs::remove_file(&path).unwrap();
        }
    });
}

#[test]
fn holdings_belong_to_one_process() {
    let machine = Machine::new();
    let again = Holdings::open(&machine.path("holdings"), None);
    assert!(matches!(again, Err(DataError::InUse(_))));
    assert!(File::open(machine.path("holdings/lock")).is_ok());
}
