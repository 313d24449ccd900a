//! What a machine holds: put, placed, pinned, removed, found damaged.

use super::{Machine, content, listing};
use catena_data::{DataError, Holdings, ManifestError, Place, Put};
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn a_file_that_is_given_away_becomes_the_object() {
    let machine = Machine::new();
    let path = machine.path("file");
    fs::write(&path, b"result").unwrap();
    let (artifact, _pin) = machine.holdings.put(&path, Put::Link).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), fs::metadata(machine.object(&artifact)).unwrap().ino());
    assert_eq!(mode(&path), 0o444);
}

#[test]
fn a_file_of_somebody_else_stays_as_it_is() {
    let machine = Machine::new();
    let path = machine.path("file");
    fs::write(&path, b"mine").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let (artifact, _pin) = machine.holdings.put(&path, Put::Copy).unwrap();
    assert_eq!(mode(&path), 0o640);
    fs::write(&path, b"changed").unwrap();
    assert_eq!(machine.content(&artifact), b"mine");
    machine.holdings.verify(&artifact.id()).unwrap();
}

#[test]
fn a_placed_file_is_shared_or_ones_own() {
    let (machine, artifact) = Machine::holding(b"input");
    machine.holdings.place(&artifact, &machine.path("a/shared"), Place::Shared).unwrap();
    machine.holdings.place(&artifact, &machine.path("a/own"), Place::Own).unwrap();
    let ino = |path: &Path| fs::metadata(path).unwrap().ino();
    assert_eq!(ino(&machine.path("a/shared")), ino(&machine.object(&artifact)));
    assert_eq!(mode(&machine.path("a/shared")), 0o444);
    fs::write(machine.path("a/own"), b"other").unwrap();
    assert_eq!(machine.content(&artifact), b"input");
    let again = machine.holdings.place(&artifact, &machine.path("a/own"), Place::Own);
    assert!(matches!(again, Err(DataError::Io { .. })), "nothing is replaced");
    assert_eq!(fs::read_dir(machine.path("a")).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn a_directory_comes_back_with_programs_links_and_empty_directories() {
    let machine = Machine::new();
    let tree = machine.path("tree");
    fs::create_dir_all(tree.join("a/empty")).unwrap();
    fs::create_dir_all(tree.join("bin")).unwrap();
    fs::write(tree.join("a/file"), b"data").unwrap();
    fs::write(tree.join("bin/tool"), b"#!/bin/sh\n").unwrap();
    fs::set_permissions(tree.join("bin/tool"), Permissions::from_mode(0o755)).unwrap();
    symlink("../a/file", tree.join("bin/link")).unwrap();
    symlink("nowhere", tree.join("dangling")).unwrap();
    let before = listing(&tree);
    for (name, put, place) in [("s", Put::Copy, Place::Shared), ("o", Put::Link, Place::Own)] {
        let (artifact, _pin) = machine.holdings.put(&tree, put).unwrap();
        machine.holdings.place(&artifact, &machine.path(name), place).unwrap();
        assert_eq!(listing(&machine.path(name)), before);
        assert_eq!(mode(&machine.path(name).join("bin/tool")) & 0o111, 0o111);
    }
    assert_eq!(mode(&tree.join("bin/tool")), 0o755, "a program is not made unusable");
}

#[test]
fn a_link_out_of_a_directory_is_refused_before_anything_is_changed() {
    let machine = Machine::new();
    let tree = machine.path("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), b"data").unwrap();
    for target in ["/etc/passwd", "../secret", "x/../../secret"] {
        symlink(target, tree.join("link")).unwrap();
        match machine.holdings.put(&tree, Put::Link) {
            Err(DataError::Manifest { error: ManifestError::LeadsOut { path, target: named }, .. }) => {
                assert_eq!((path.as_str(), named.as_str()), ("link", target));
            }
            _ => panic!("{target} was taken"),
        }
        let alone = machine.holdings.put(&tree.join("link"), Put::Copy);
        assert!(matches!(alone, Err(DataError::Manifest { .. })));
        assert!(machine.holdings.put_file(&tree.join("link"), Put::Copy).is_err());
        fs::remove_file(tree.join("link")).unwrap();
    }
    assert_eq!(mode(&tree.join("file")) & 0o200, 0o200);
    assert_eq!(machine.holdings.usage().objects, 0);
}

#[test]
fn pipes_and_sockets_are_refused_without_waiting_for_them() {
    let machine = Machine::new();
    let tree = machine.path("tree");
    fs::create_dir(&tree).unwrap();
    assert!(Command::new("mkfifo").arg(tree.join("pipe")).status().unwrap().success());
    assert!(matches!(machine.holdings.put(&tree, Put::Link), Err(DataError::Special(_))));
    assert!(matches!(machine.holdings.put(&tree.join("pipe"), Put::Link), Err(DataError::Special(_))));
}

#[test]
fn who_writes_through_a_shared_file_is_found_out() {
    let (machine, artifact) = Machine::holding(b"input");
    let placed = machine.path("placed");
    machine.holdings.place(&artifact, &placed, Place::Shared).unwrap();
    // The owner can, if it insists.
    fs::set_permissions(&placed, Permissions::from_mode(0o644)).unwrap();
    OpenOptions::new().append(true).open(&placed).unwrap().write_all(b"!").unwrap();
    let used = machine.holdings.place(&artifact, &machine.path("again"), Place::Shared);
    assert!(matches!(used, Err(DataError::Corrupt(_))));
    assert!(!machine.path("again").exists() && !machine.holdings.has(&artifact.id()));
    assert_eq!(machine.holdings.usage().bytes, 0);
    let found = machine.holdings.take_corruptions();
    assert_eq!((found.len(), found[0].id), (1, artifact.id()));
}

#[test]
fn a_file_that_was_only_touched_is_still_good() {
    let (machine, artifact) = Machine::holding(b"input");
    let file = fs::File::open(machine.object(&artifact)).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    machine.holdings.open_object(&artifact.id()).unwrap();
    assert!(machine.holdings.take_corruptions().is_empty());
}

#[test]
fn an_object_that_has_vanished_is_reported() {
    let (machine, artifact) = Machine::holding(b"input");
    fs::remove_file(machine.object(&artifact)).unwrap();
    assert!(matches!(machine.holdings.open_object(&artifact.id()), Err(DataError::Corrupt(_))));
    assert!(!machine.holdings.holds(&artifact));
}

/// Holdings with room for three files of 10 kB, and a way to put some.
fn small_room(directory: &Path) -> (Holdings, impl Fn(&Holdings, u64) -> catena_data::Artifact) {
    let file = directory.join("file");
    let put = move |holdings: &Holdings, seed| {
        fs::write(&file, content(seed, 10_000)).unwrap();
        holdings.put(&file, Put::Copy).unwrap().0
    };
    (Holdings::open(&directory.join("small"), Some(35_000)).unwrap(), put)
}

#[test]
fn what_was_not_used_for_longest_makes_room() {
    let directory = tempfile::tempdir().unwrap();
    let (holdings, put) = small_room(directory.path());
    let first: Vec<_> = (0..3).map(|n| put(&holdings, n)).collect();
    drop(holdings.open_object(&first[0].id()).unwrap());
    let new = put(&holdings, 3);
    assert!(holdings.has(&first[0].id()) && holdings.has(&first[2].id()) && holdings.has(&new.id()));
    assert!(!holdings.has(&first[1].id()));
    assert_eq!(holdings.usage().bytes, 30_000);
    // Also after a restart it is known what was used when.
    drop(holdings.open_object(&first[0].id()).unwrap());
    drop(holdings);
    let holdings = Holdings::open(&directory.path().join("small"), Some(35_000)).unwrap();
    put(&holdings, 4);
    assert!(holdings.has(&first[0].id()) && !holdings.has(&first[2].id()));
}

#[test]
fn what_is_pinned_or_kept_stays() {
    let directory = tempfile::tempdir().unwrap();
    let (holdings, put) = small_room(directory.path());
    let first: Vec<_> = (0..3).map(|n| put(&holdings, n)).collect();
    let pin = holdings.pin(&first[0]).unwrap();
    holdings.keep("run 1", &first[1]).unwrap();
    holdings.keep("run 2", &first[1]).unwrap();
    let new = put(&holdings, 3);
    assert!(holdings.has(&first[0].id()) && holdings.has(&first[1].id()) && !holdings.has(&first[2].id()));
    let second = holdings.pin(&new).unwrap();
    fs::write(directory.path().join("file"), content(4, 10_000)).unwrap();
    let full = holdings.put(&directory.path().join("file"), Put::Copy);
    assert!(matches!(full, Err(DataError::NoRoom { needed: 10_000, quota: 35_000, in_use: 30_000 })));
    assert_eq!(holdings.usage().pinned, 30_000);
    assert!(holdings.release("run 1").unwrap() && !holdings.release("run 1").unwrap());
    drop((pin, second, holdings));
    let holdings = Holdings::open(&directory.path().join("small"), Some(35_000)).unwrap();
    assert_eq!(holdings.usage().pinned, 10_000, "what is kept is kept after a restart");
    for n in 5..8 {
        put(&holdings, n);
    }
    assert!(holdings.has(&first[1].id()));
    holdings.release("run 2").unwrap();
    for n in 8..11 {
        put(&holdings, n);
    }
    assert!(!holdings.has(&first[1].id()));
}

#[test]
fn a_directory_is_pinned_with_all_that_is_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let (holdings, put) = small_room(directory.path());
    let tree = directory.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("a"), content(1, 10_000)).unwrap();
    fs::write(tree.join("b"), content(2, 10_000)).unwrap();
    let (artifact, pin) = holdings.put(&tree, Put::Copy).unwrap();
    put(&holdings, 3);
    put(&holdings, 4);
    assert!(holdings.holds(&artifact));
    drop(pin);
    put(&holdings, 5);
    assert!(!holdings.holds(&artifact));
}

#[test]
fn objects_of_an_earlier_process_are_known_and_rubbish_is_cleared() {
    let (machine, artifact) = Machine::holding(&content(1, 3 << 20));
    let object = machine.object(&artifact);
    let Machine { directory, holdings, server } = machine;
    drop((server, holdings));
    let base = directory.path().join("holdings");
    fs::write(base.join("new/17"), b"half").unwrap();
    let id = artifact.id().to_string();
    let outline = base.join("outlines").join(&id[..2]).join(&id[2..]);
    assert!(outline.exists());
    let orphan = outline.with_file_name(id[2..].replace('0', "1").replace('2', "3"));
    fs::write(&orphan, b"orphan").unwrap();
    fs::write(base.join("objects").join(&id[..2]).join("note.txt"), b"not an object").unwrap();
    let holdings = Holdings::open(&base, None).unwrap();
    assert!(holdings.holds(&artifact) && !base.join("new/17").exists() && !orphan.exists());
    // Written to while nobody looked: found on the next use, without anybody asking for it.
    drop(holdings);
    fs::set_permissions(&object, Permissions::from_mode(0o644)).unwrap();
    fs::write(&object, content(2, 3 << 20)).unwrap();
    let holdings = Holdings::open(&base, None).unwrap();
    assert!(matches!(holdings.open_object(&artifact.id()), Err(DataError::Corrupt(_))));
}

#[test]
fn after_a_crash_of_the_machine_everything_is_looked_at_before_it_is_used() {
    let (machine, artifact) = Machine::holding(b"content");
    let object = machine.object(&artifact);
    let Machine { directory, holdings, server } = machine;
    drop((server, holdings));
    let base = directory.path().join("holdings");
    // The name was written, the content was not; its size and times look right.
    let times = fs::metadata(&object).unwrap().modified().unwrap();
    fs::set_permissions(&object, Permissions::from_mode(0o644)).unwrap();
    let file = OpenOptions::new().write(true).open(&object).unwrap();
    (&file).write_all(&[0; 7]).unwrap();
    file.set_modified(times).unwrap();
    let index = fs::read_to_string(base.join("index")).unwrap();
    let (_, lines) = index.split_once('\n').unwrap();
    fs::write(base.join("index"), format!("another boot\n{lines}")).unwrap();
    let holdings = Holdings::open(&base, None).unwrap();
    assert!(matches!(holdings.open_object(&artifact.id()), Err(DataError::Corrupt(_))));
}

#[test]
fn an_outline_that_was_damaged_is_made_anew() {
    let (machine, artifact) = Machine::holding(&content(1, 3 << 20));
    let id = artifact.id().to_string();
    let path = machine.path("holdings/outlines").join(&id[..2]).join(&id[2..]);
    let good = fs::read(&path).unwrap();
    fs::write(&path, b"nonsense").unwrap();
    assert_eq!(machine.holdings.outline(&artifact.id()).unwrap().write(), good);
    assert_eq!(fs::read(&path).unwrap(), good);
}
