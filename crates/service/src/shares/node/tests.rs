//! The configuration as shares: settings of a project are inherited by its shares, problems are
//! reported at their property, and a share that cannot be served does not prevent the service of
//! others.

use host_pools::schedule::Every;
use vfs::share::rules::Access;

use super::super::tests::World;
use super::*;
use crate::tests::ROOT;

/// A document with the shares `a` and `b` of the project `p`, in directories `a` and `b`.
fn document(world: &World) -> Document {
    let mut document = Document::new(&ROOT);
    for name in ["a", "b"] {
        let path = share(name);
        document.create(&path);
        document.set(&path, "directory", Value::Text(world.dir(name).display().to_string()));
    }
    document
}

fn share(name: &str) -> Path {
    Path::of(&["shares", "p", name])
}

fn read(document: &Document, name: &str) -> Result<ShareConfig, Problem> {
    config(document, &share(name), &System)
}

#[test]
fn a_share_inherits_the_settings_of_its_project() {
    let world = World::new();
    let mut document = document(&world);
    let project = Path::of(&["shares", "p"]);
    assert_eq!(paths(&document), [share("a"), share("b")]);
    let plain = read(&document, "a").expect("good");
    assert!(!plain.read_only && plain.rules_for(Service::Nfs).is_empty());
    document.set(&project, "read_only", Value::Bool(true));
    document.set(&project, "nfs", Value::text("none"));
    document.set(&share("b"), "nfs", Value::text("ro"));
    document.set(&share("b"), "nfs_exceptions", Value::texts(["10.0.0.0/8(rw)"]));
    let [a, b] = ["a", "b"].map(|name| read(&document, name).expect("good"));
    assert!(a.read_only && b.read_only);
    let access =
        |one: &ShareConfig, ip: [u8; 4]| one.rules_for(Service::Nfs).grant(ip.into(), 1).access;
    assert_eq!(access(&a, [10, 0, 0, 1]), Access::None);
    assert_eq!(access(&b, [10, 0, 0, 1]), Access::ReadWrite);
    assert_eq!(access(&b, [11, 0, 0, 1]), Access::ReadOnly);
    document.set(&project, "http", Value::text("ro"));
    document.set(&share("b"), "http_exceptions", Value::texts(["10.0.0.0/8(none)"]));
    let [a, b] = ["a", "b"].map(|name| read(&document, name).expect("good"));
    let access = |one: &ShareConfig, ip: [u8; 4]| {
        Service::SIGN_IN.map(|service| one.rules_for(service).grant(ip.into(), 1).access)
    };
    let [all, ro, none] = [Access::ReadWrite, Access::ReadOnly, Access::None];
    assert_eq!(access(&a, [10, 0, 0, 1]), [all, all, ro, all], "FTP, SFTP, HTTP, SMB");
    assert_eq!(access(&b, [10, 0, 0, 1]), [all, all, none, all]);
    assert_eq!(access(&b, [11, 0, 0, 1]), [all, all, ro, all]);
}

#[test]
fn what_is_wrong_is_reported_at_its_property() {
    let world = World::new();
    let wrong = [
        ("root_mode", Value::text("89"), "not an octal mode"),
        ("root_mode", Value::text("+7"), "not an octal mode"),
        ("nfs_exceptions", Value::texts(["10.0.0.0/8(wr)"]), "is not an option"),
        ("ftp_exceptions", Value::texts(["10.0.0.0/8(root_squash)"]), "use CLIENT(ro)"),
        ("sftp_exceptions", Value::texts(["10.0.0.0/8"]), "use CLIENT(ro)"),
        ("http_exceptions", Value::texts(["10.0.0.0/99(ro)"]), "is not a network"),
    ];
    for (property, value, says) in wrong {
        let mut document = document(&world);
        document.set(&share("a"), property, value);
        let problem = read(&document, "a").expect_err(says);
        assert_eq!((problem.property.as_deref(), &problem.path), (Some(property), &share("a")));
        assert!(problem.sentence.contains(says), "{}", problem.sentence);
    }
    let mut document = document(&world);
    document.set(&share("a"), "root_mode", Value::text("2775"));
    assert_eq!(read(&document, "a").expect("good").root.mode, Some(0o2775));
}

#[test]
fn a_share_without_its_directory_does_not_affect_the_others() {
    let world = World::new();
    let mut document = document(&world);
    document.set(&share("a"), "directory", Value::text("/nonexistent"));
    let offline = start(&world.shares, &document);
    let names: Vec<_> = offline.keys().map(String::as_str).collect();
    assert_eq!(names, ["a"]);
    assert!(offline["a"].sentence.contains("does not exist"));
    let served: Vec<_> = world.shares.configs().into_iter().map(|one| one.name).collect();
    assert_eq!(served, ["b"]);
}

#[test]
fn settings_of_pools_are_refused_for_a_directory_and_read_for_a_pool() {
    let world = World::new();
    let settings = [
        ("quota", Value::Integer(32 << 20)),
        ("reservation", Value::Integer(32 << 20)),
        ("compression", Value::text("zstd")),
        ("snapshots_hourly", Value::Integer(24)),
    ];
    for (property, value) in &settings {
        let mut document = document(&world);
        document.set(&share("a"), property, value.clone());
        let problem = read(&document, "a").expect_err(property);
        assert_eq!(problem.property.as_deref(), Some(*property));
        assert!(problem.sentence.contains("only pools"), "{}", problem.sentence);
    }
    let mut document = document(&world);
    let path = share("on-pool");
    document.create(&path);
    document.set(&path, "pool", Value::text("tank"));
    document.set(&path, "snapshot_minutes", Value::Integer(10));
    assert_eq!(scheduled(&document), []);
    settings.iter().for_each(|(property, value)| document.set(&path, property, value.clone()));
    let storage = read(&document, "on-pool").expect("good").storage.expect("on a pool");
    assert_eq!((storage.pool.as_str(), storage.settings.quota), ("tank", Some(32 << 20)));
    assert_eq!(storage.settings.reservation, Some(32 << 20));
    assert_eq!(storage.settings.compression.name(), "zstd");
    let hourly = Schedule { every: Every::Hour, keep: 24 };
    assert_eq!(scheduled(&document), [("tank".into(), "on-pool".into(), vec![hourly])]);
    document.set(&path, "snapshots_frequent", Value::Integer(3));
    let frequent = Schedule { every: Every::Minutes(10), keep: 3 };
    assert_eq!(scheduled(&document), [("tank".into(), "on-pool".into(), vec![frequent, hourly])]);
}

#[test]
fn a_share_on_a_pool_has_the_name_of_its_subvolume() {
    let world = World::new();
    let mut old = document(&world);
    let on_pool = share("on-pool");
    old.create(&on_pool);
    old.set(&on_pool, "pool", Value::text("tank"));
    // Renames these items in this order, and checks the share that is at `at` then.
    let refused = |names: &[(Path, Path)], at: &Path| {
        let mut new = old.clone();
        names.iter().for_each(|(from, to)| new.rename(from, to));
        renamed_on_pool(names, at, &config(&new, at, &System).expect("good"))
    };
    let other = share("other");
    let there = (on_pool.clone(), other.clone());
    let problem = refused(std::slice::from_ref(&there), &other).expect("refused");
    assert!(problem.sentence.contains("cannot be renamed"), "{problem}");
    assert_eq!(problem.path, other);
    // One on a directory, one in a renamed project, and one that has its own name again.
    let moved = (share("a"), share("c"));
    let project = (Path::of(&["shares", "p"]), Path::of(&["shares", "q"]));
    let accepted = [
        (vec![moved.clone()], share("c")),
        (vec![moved], on_pool.clone()),
        (vec![project], Path::of(&["shares", "q", "on-pool"])),
        (vec![there, (other, on_pool.clone())], on_pool),
    ];
    for (names, at) in accepted {
        assert!(refused(&names, &at).is_none(), "{names:?}");
    }
}

/// Services without clients.
struct Unused;

impl Services for Unused {
    fn mount(&self, _share: &str) -> Vec<String> {
        Vec::new()
    }

    fn holders(&self, _tag: u32) -> Vec<String> {
        Vec::new()
    }

    fn knows_clients(&self) -> bool {
        false
    }
}

#[test]
fn an_offline_share_is_served_next_to_what_is_served_then() {
    let world = World::new();
    let document = Arc::new(document(&world));
    std::fs::rename(world.dir("b"), world.dir("elsewhere")).expect("moved away");
    let offline = start(&world.shares, &document);
    let node = SharesNode::new(world.shares.clone(), offline, Box::new(Unused), "given");
    std::fs::rename(world.dir("elsewhere"), world.dir("b")).expect("moved back");
    // The others change between the first step and the last one.
    let changed = || {
        let before = world.shares.configured();
        let closed = before.iter().cloned().map(|one| ShareConfig { read_only: true, ..one });
        let after: Vec<_> = closed.chain([world.share("c", "c")]).collect();
        world.shares.apply(&before, &after).expect("changed");
        document.clone()
    };
    node.serve_offline(&changed);
    let served = || {
        let all = world.shares.configs().into_iter().map(|one| (one.name, one.read_only));
        all.collect::<BTreeMap<_, _>>()
    };
    let expected = [("a", true), ("b", false), ("c", false)];
    let expected = expected.map(|(name, read_only)| (name.to_owned(), read_only));
    assert_eq!(served(), BTreeMap::from(expected));
    assert_eq!(node.offline("b"), None);
    // A change of the configuration that destroyed an offline share has forgotten it.
    let before = world.shares.configured();
    let others: Vec<_> = before.iter().filter(|one| one.name != "b").cloned().collect();
    world.shares.apply(&before, &others).expect("destroyed");
    node.serve_one_offline("b", &|| document.clone());
    assert!(!served().contains_key("b"), "{:?}", served());
}
