//! Content gets from one machine to another.

use super::{Machine, agent, content, listing, patience};
use catena_data::{
    Artifact, BLOCK, ContentId, DataError, DownloadError, FetchError, FetchOptions, FileRef, Place, Put,
    ServeOptions, Source, SourceError, WebSource, fetch,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

#[test]
fn files_of_all_sizes_arrive_as_they_were() {
    let there = Machine::new();
    let here = Machine::new();
    for size in [0, 1, 1023, BLOCK as usize - 1, BLOCK as usize, BLOCK as usize + 1, 9 * BLOCK as usize + 5] {
        let bytes = content(size as u64, size);
        let path = there.path(&size.to_string());
        fs::write(&path, &bytes).unwrap();
        let (artifact, _) = there.holdings.put(&path, Put::Link).unwrap();
        let fetched = here.fetch(&artifact, &[agent(&there.server.url())]).unwrap();
        assert!(fetched.faults.is_empty(), "{:?}", fetched.faults);
        assert_eq!(fetched.bytes.values().sum::<u64>(), size as u64);
        assert_eq!(here.content(&artifact), bytes);
        here.holdings.verify(&artifact.id()).unwrap();
    }
}

#[test]
fn what_is_here_is_not_fetched_again() {
    let (there, artifact) = Machine::holding(&content(1, 3 << 20));
    let here = Machine::new();
    drop(here.fetch(&artifact, &[agent(&there.server.url())]).unwrap());
    let before = there.server.requests();
    drop(here.fetch(&artifact, &[agent(&there.server.url())]).unwrap());
    assert_eq!(there.server.requests(), before);
}

#[test]
fn ten_thousand_files_need_a_handful_of_requests() {
    let there = Machine::new();
    let tree = there.path("tree");
    for group in 0..100 {
        fs::create_dir_all(tree.join(group.to_string())).unwrap();
        for file in 0..100 {
            fs::write(tree.join(format!("{group}/{file}")), format!("{group} {file}")).unwrap();
        }
    }
    let (artifact, _pin) = there.holdings.put(&tree, Put::Link).unwrap();
    let here = Machine::new();
    let _fetched = here.fetch(&artifact, &[agent(&there.server.url())]).unwrap();
    assert!(there.server.requests() <= 4, "{} requests", there.server.requests());
    here.holdings.place(&artifact, &here.path("placed"), Place::Shared).unwrap();
    assert_eq!(listing(&here.path("placed")), listing(&tree));
}

/// A source that begins only when all others do.
struct Together {
    inner: Arc<dyn Source>,
    others: Arc<Barrier>,
    first: AtomicBool,
}

impl Source for Together {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn open(
        &self,
        id: &ContentId,
        part: Range<u64>,
        size: u64,
    ) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        if self.first.swap(false, Ordering::SeqCst) {
            self.others.wait();
        }
        self.inner.open(id, part, size)
    }

    fn outline(&self, id: &ContentId, size: u64) -> Result<Option<Vec<u8>>, SourceError> {
        self.inner.outline(id, size)
    }
}

#[test]
fn several_sources_give_a_part_each() {
    let bytes = content(2, 40 << 20);
    let machines: Vec<_> = (0..3).map(|_| Machine::holding(&bytes)).collect();
    let others = Arc::new(Barrier::new(3));
    let source = |(machine, _): &(Machine, Artifact)| -> Arc<dyn Source> {
        let (inner, others) = (agent(&machine.server.url()), Arc::clone(&others));
        Arc::new(Together { inner, others, first: AtomicBool::new(true) })
    };
    let sources: Vec<_> = machines.iter().map(source).collect();
    let here = Machine::new();
    let fetched =
        fetch(&here.holdings, &machines[0].1, &sources, FetchOptions { streams: 1, tries: 1 }).unwrap();
    assert_eq!(here.content(&machines[0].1), bytes);
    assert_eq!(fetched.bytes.values().sum::<u64>(), bytes.len() as u64);
    assert_eq!(fetched.bytes.len(), 3, "{:?}", fetched.bytes);
}

#[test]
fn what_one_source_does_not_have_comes_from_another() {
    let there = Machine::new();
    fs::create_dir(there.path("tree")).unwrap();
    for n in 0..50 {
        fs::write(there.path("tree").join(n.to_string()), content(n, 1000)).unwrap();
    }
    fs::write(there.path("tree/large"), content(99, 3 << 20)).unwrap();
    let (artifact, _pin) = there.holdings.put(&there.path("tree"), Put::Copy).unwrap();
    let elsewhere = Machine::new();
    let here = Machine::new();
    let sources = [agent(&elsewhere.server.url()), agent(&there.server.url())];
    let fetched = here.fetch(&artifact, &sources).unwrap();
    assert!(fetched.faults.is_empty(), "not to have something is no fault: {:?}", fetched.faults);
    assert!(here.holdings.holds(&artifact));
}

#[test]
fn two_who_want_the_same_share_one_transfer() {
    let (there, artifact) = Machine::holding(&content(3, 20 << 20));
    let here = Machine::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| drop(here.fetch(&artifact, &[agent(&there.server.url())]).unwrap()));
        }
    });
    assert_eq!(there.server.sent(), artifact.bytes());
}

#[test]
fn a_token_is_asked_for_and_given() {
    let there = Machine::with(ServeOptions { token: Some("secret".into()), ..ServeOptions::default() });
    let (file, _) = there.holdings.put_bytes(b"for friends").unwrap();
    let artifact = Artifact::File(file);
    let here = Machine::new();
    let with = |token| -> Arc<dyn Source> {
        Arc::new(catena_data::AgentSource::new(&there.server.url(), token, patience()))
    };
    for token in [None, Some("secre"), Some("secret2"), Some("")] {
        let Err(FetchError::Nowhere { faults, .. }) = here.fetch(&artifact, &[with(token)]) else {
            panic!("{token:?} was let in")
        };
        assert!(faults[0].what.contains("401"), "{faults:?}");
    }
    drop(here.fetch(&artifact, &[with(Some("secret"))]).unwrap());
}

#[test]
fn a_file_on_the_web_is_a_source_like_others() {
    let bytes = content(4, 5 << 20);
    let (there, artifact) = Machine::holding(&bytes);
    let url = format!("{}/data/{}", there.server.url(), artifact.id());
    let here = Machine::new();
    drop(here.fetch(&artifact, &[Arc::new(WebSource::new(&url, patience()))]).unwrap());
    assert_eq!(here.content(&artifact), bytes);
    // And as something that nobody knows yet.
    let other = Machine::new();
    let (file, _pin) = WebSource::new(&url, patience()).download(&other.holdings).unwrap();
    assert_eq!(Artifact::File(file), artifact);
    let nothing = WebSource::new(&format!("{}/no", there.server.url()), patience()).download(&other.holdings);
    assert!(matches!(nothing, Err(DownloadError::Source { .. })));
}

/// A web server that knows no ranges, and breaks off its first answer.
fn plain_server(content: Vec<u8>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/file", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let mut stream = stream;
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read_exact(&mut byte).is_err() {
                    break;
                }
                head.push(byte[0]);
            }
            let length = content.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
            let part = if number == 0 { length / 2 } else { length };
            let _ = stream.write_all(&content[..part]);
        }
    });
    url
}

#[test]
fn a_web_server_without_ranges_is_asked_from_the_start_again() {
    let bytes = content(5, 3 << 20);
    let artifact = Artifact::File(FileRef { id: ContentId::of(&bytes), size: 3 << 20, executable: false });
    let here = Machine::new();
    let source: Arc<dyn Source> = Arc::new(WebSource::new(&plain_server(bytes.clone()), patience()));
    let fetched = here.fetch(&artifact, &[source]).unwrap();
    assert_eq!(fetched.faults.len(), 1, "{:?}", fetched.faults);
    assert_eq!(here.content(&artifact), bytes);
}

#[test]
fn a_download_that_breaks_off_leaves_nothing() {
    let here = Machine::new();
    let source = WebSource::new(&plain_server(content(6, 1 << 20)), patience());
    assert!(matches!(source.download(&here.holdings), Err(DownloadError::Source { .. })));
    assert_eq!(here.holdings.usage().objects, 0);
    assert_eq!(fs::read_dir(here.path("holdings/new")).unwrap().count(), 0);
    let (file, _pin) = source.download(&here.holdings).unwrap();
    assert_eq!(file.size, 1 << 20);
}

#[test]
fn nobody_to_ask_is_said() {
    let here = Machine::new();
    for size in [10, 10 << 20] {
        let artifact = Artifact::File(FileRef { id: ContentId::of(b"?"), size, executable: false });
        assert!(matches!(here.fetch(&artifact, &[]), Err(FetchError::Nowhere { .. })));
        let there = Machine::new();
        let none = here.fetch(&artifact, &[agent(&there.server.url())]);
        let Err(FetchError::Nowhere { faults, .. }) = none else { panic!("something was found") };
        assert!(faults.is_empty());
    }
    assert_eq!(fs::read_dir(here.path("holdings/partial")).unwrap().count(), 0);
}

#[test]
fn a_directory_that_is_not_what_was_said_is_refused() {
    let there = Machine::new();
    let manifest = catena_data::Manifest::new(BTreeMap::new()).unwrap();
    let (Artifact::Directory(mut directory), bytes) = manifest.artifact() else { panic!("not a directory") };
    drop(there.holdings.put_bytes(&bytes).unwrap());
    directory.bytes = 1 << 40;
    let here = Machine::new();
    let refused = here.fetch(&Artifact::Directory(directory), &[agent(&there.server.url())]);
    assert!(matches!(refused, Err(FetchError::Data(DataError::Misdescribed(..)))));
}
