//! Object storage: a directory always, and a server like S3 where Python has one (`moto`).

use super::{Machine, content, listing};
use catena_data::{FaultKind, FetchError, ObjectStorage, Place, Put, Remote, RemoteError, Source};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A file, a large file and a directory get to a storage and back.
fn there_and_back(url: &str, options: &[(&str, &str)]) {
    let there = Machine::new();
    let tree = there.path("tree");
    fs::create_dir_all(tree.join("a/empty")).unwrap();
    fs::write(tree.join("a/small"), b"small").unwrap();
    fs::write(tree.join("nothing"), b"").unwrap();
    fs::write(tree.join("large"), content(1, (37 << 20) + 3)).unwrap();
    let (artifact, _pin) = there.holdings.put(&tree, Put::Copy).unwrap();
    let storage = ObjectStorage::open(url, options).unwrap();
    let before: Arc<dyn Source> = Arc::new(ObjectStorage::open(url, options).unwrap());
    let here = Machine::new();
    let Err(FetchError::Nowhere { faults, .. }) = here.fetch(&artifact, &[Arc::clone(&before)]) else {
        panic!("it is not there yet")
    };
    assert_eq!(faults, [], "not to have something is no fault");
    storage.put(&there.holdings, &artifact).unwrap();
    storage.put(&there.holdings, &artifact).unwrap();
    let fetched = here.fetch(&artifact, &[before]).unwrap();
    assert_eq!(fetched.faults, []);
    here.holdings.place(&artifact, &here.path("placed"), Place::Shared).unwrap();
    assert_eq!(listing(&here.path("placed")), listing(&tree));
}

#[test]
fn a_directory_is_object_storage() {
    let directory = tempfile::tempdir().unwrap();
    there_and_back(&format!("file://{}", directory.path().display()), &[]);
}

#[test]
fn what_an_object_storage_has_is_checked() {
    let bytes = content(2, 3 << 20);
    let (there, artifact) = Machine::holding(&bytes);
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file://{}", directory.path().display());
    let storage = ObjectStorage::open(&url, &[]).unwrap();
    storage.put(&there.holdings, &artifact).unwrap();
    let id = artifact.id().to_string();
    let mut wrong = bytes.clone();
    wrong[1 << 20] ^= 1;
    fs::write(directory.path().join("objects").join(&id[..2]).join(&id), wrong).unwrap();
    let here = Machine::new();
    let Err(FetchError::Nowhere { faults, .. }) = here.fetch(&artifact, &[Arc::new(storage)]) else {
        panic!("it was taken")
    };
    assert!(faults[0].kind == FaultKind::Lied && faults[0].what.contains("block 1 "), "{faults:?}");
    assert!(matches!(ObjectStorage::open("ftp://x", &[]), Err(RemoteError::Url(_))));
}

/// Ends with the test.
struct Moto(Child);

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_like_s3_is_object_storage() {
    // `CATENA_MOTO` is where moto_server is; `cargo xtask test` installs it and says so.
    let program = std::env::var_os("CATENA_MOTO")
        .expect("CATENA_MOTO must name a moto_server; `cargo xtask test` installs one");
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut command = Command::new(program);
    command.args(["-H", "127.0.0.1", "-p", &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    let _moto = Moto(command.spawn().unwrap());
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < Duration::from_mins(1), "moto_server does not answer");
        thread::sleep(Duration::from_millis(50));
    }
    let endpoint = format!("http://127.0.0.1:{port}");
    ureq::put(format!("{endpoint}/bucket")).send_empty().unwrap();
    let options = [
        ("endpoint", endpoint.as_str()),
        ("region", "us-east-1"),
        ("access_key_id", "key"),
        ("secret_access_key", "secret"),
        ("allow_http", "true"),
    ];
    there_and_back("s3://bucket/some/prefix", &options);
}
