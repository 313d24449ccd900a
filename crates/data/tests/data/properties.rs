//! What holds for whatever there is.

use super::proxy::{Proxy, Trick};
use super::{Machine, agent, content, listing};
use catena_data::{AgentSource, Entry, Manifest, Patience, Place, Put, Source};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Node {
    File(u64, usize, bool),
    Link(String),
    Directory(BTreeMap<String, Node>),
}

fn name() -> impl Strategy<Value = String> {
    "[a-c]|[ä\n .-]x|[a-z ]{1,8}".prop_filter("special", |n| n != "." && n != "..")
}

fn tree() -> impl Strategy<Value = BTreeMap<String, Node>> {
    let size = prop_oneof![Just(0), 1..3000_usize, (1_usize << 20)..(3_usize << 20)];
    let leaf = prop_oneof![
        8 => (0..5_u64, size, any::<bool>()).prop_map(|(seed, size, x)| Node::File(seed, size, x)),
        1 => "[a-c](/[a-c]){0,2}".prop_map(Node::Link),
    ];
    let node =
        leaf.prop_recursive(3, 20, 5, |inner| btree_map(name(), inner, 0..5).prop_map(Node::Directory));
    btree_map(name(), node, 0..6)
}

fn make(directory: &Path, nodes: &BTreeMap<String, Node>) {
    fs::create_dir_all(directory).unwrap();
    for (name, node) in nodes {
        let path = directory.join(name);
        match node {
            Node::File(seed, size, executable) => {
                fs::write(&path, content(*seed, *size)).unwrap();
                let mode = if *executable { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
            Node::Link(target) => symlink(target, &path).unwrap(),
            Node::Directory(nodes) => make(&path, nodes),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_arrives_elsewhere_as_it_was(nodes in tree()) {
        let there = Machine::new();
        make(&there.path("tree"), &nodes);
        let before = listing(&there.path("tree"));
        let (artifact, _pin) = there.holdings.put(&there.path("tree"), Put::Link).unwrap();
        let here = Machine::new();
        let _fetched = here.fetch(&artifact, &[agent(&there.server.url())]).unwrap();
        for (name, how) in [("shared", Place::Shared), ("own", Place::Own)] {
            here.holdings.place(&artifact, &here.path(name), how).unwrap();
            prop_assert_eq!(listing(&here.path(name)), before.clone());
        }
        let (again, _pin) = here.holdings.put(&here.path("own"), Put::Copy).unwrap();
        prop_assert_eq!(again, artifact);
        prop_assert_eq!(here.holdings.verify_all().unwrap(), []);
    }

    #[test]
    fn a_fetch_that_is_interrupted_anywhere_and_gone_on_with_is_the_original(
        size in (1_usize << 20) + 1..(6_usize << 20),
        deaths in vec(0..6_000_000_u64, 0..4),
    ) {
        let bytes = content(size as u64, size);
        let (there, artifact) = Machine::holding(&bytes);
        let here = Machine::new();
        for after in deaths {
            let proxy = Proxy::new(&there.server.url(), Trick::Die(after));
            let source: Arc<dyn Source> = Arc::new(AgentSource::new(&proxy.url, None, Patience::default()));
            let _ = here.fetch(&artifact, &[source]);
        }
        let _fetched = here.fetch(&artifact, &[agent(&there.server.url())]).unwrap();
        prop_assert_eq!(here.content(&artifact), bytes);
    }

    #[test]
    fn a_bit_turned_anywhere_is_found_on_disk_and_on_the_wire(size in 1..(4_usize << 20), at in any::<u64>()) {
        let at = at % size as u64;
        let (there, artifact) = Machine::holding(&content(1, size));
        let proxy = Proxy::new(&there.server.url(), if size > 1 << 20 { Trick::Flip(at) } else { Trick::Flip(at + 9) });
        let here = Machine::new();
        let source: Arc<dyn Source> = Arc::new(AgentSource::new(&proxy.url, None, Patience::default()));
        prop_assert!(here.fetch(&artifact, &[source]).is_err());
        let object = there.object(&artifact);
        fs::set_permissions(&object, fs::Permissions::from_mode(0o644)).unwrap();
        let file = fs::OpenOptions::new().read(true).write(true).open(&object).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 128], at).unwrap();
        prop_assert_eq!(there.holdings.verify_all().unwrap().len(), 1);
    }

    #[test]
    fn bytes_of_anybody_are_a_manifest_in_its_one_form_or_none(bytes in vec(any::<u8>(), 0..200), at in 0..400_usize) {
        let entries = [("a/b".to_owned(), Entry::Empty), ("l".to_owned(), Entry::Link("a".to_owned()))];
        let mut manifest = Manifest::new(entries.into()).unwrap().write();
        let at = at.min(manifest.len());
        manifest.splice(at.., bytes);
        if let Ok(read) = Manifest::read(&manifest) {
            prop_assert_eq!(read.write(), manifest);
        }
    }
}
