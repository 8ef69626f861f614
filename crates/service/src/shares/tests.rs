//! From one list of shares to another, on directories of this machine: completely or not at all.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use probe::hub::HubOptions;
use vfs::share::rules::{Access, Squash, Transport};

use super::*;

/// A folder with a state directory and directories `a` to `e`; it goes with the test.
pub struct World {
    folder: PathBuf,
    pub shares: Arc<Shares>,
    released: Arc<Mutex<Vec<u32>>>,
    pools: Arc<NoPools>,
}

/// A quota that is refused.
const REFUSED: u64 = 13;

/// A machine without pools, which notes what of shares is set.
#[derive(Default)]
struct NoPools(Mutex<Vec<String>>);

impl Subvolumes for NoPools {
    fn make(&self, pool: &str, _share: &str) -> Result<bool, String> {
        Err(format!("there is no pool {pool}"))
    }

    fn take_back(&self, _pool: &str, _share: &str) {}

    fn configure(&self, pool: &str, share: &str, to: &ShareSettings) -> Result<(), String> {
        if to.quota == Some(REFUSED) {
            return Err("the pool is not mounted".to_owned());
        }
        self.0.lock().push(format!("{pool}/{share} {}", to.quota.unwrap_or(0)));
        Ok(())
    }
}

impl World {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-test-shares-{}-{n}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        for name in ["state", "a", "b", "c", "d", "e"] {
            std::fs::create_dir_all(folder.join(name)).expect("a folder");
        }
        std::fs::write(folder.join("file"), "x").expect("a file");
        let meta = std::fs::metadata(folder.join("state")).expect("there");
        let pools = Arc::new(NoPools::default());
        let kit = Resources {
            pools: pools.clone(),
            state: (folder.join("state"), (meta.dev(), meta.ino())),
            secret: [7; 32],
            locks: Arc::default(),
            hub: Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 16 }),
        };
        let (shares, released) = (Arc::new(Shares::new(kit)), Arc::<Mutex<Vec<u32>>>::default());
        let told = Arc::clone(&released);
        shares.set_release(Box::new(move |tag| told.lock().push(tag)));
        Self { folder, shares, released, pools }
    }

    pub fn dir(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn share(&self, name: &str, dir: &str) -> ShareConfig {
        ShareConfig {
            project: "default".into(),
            name: name.into(),
            directory: self.dir(dir),
            read_only: false,
            smb_oplocks: true,
            continuous: false,
            snapshots: None,
            snapdir_visible: false,
            rules: Default::default(),
            root: Root::default(),
            storage: None,
        }
    }

    /// Names of what is served, with the directories.
    fn served(&self) -> Vec<(String, String)> {
        let table = self.shares.table().load();
        let list = self.shares.list();
        assert_eq!(table.iter().count(), list.len(), "all that is served is listed");
        let dir = |dir: &Path| dir.file_name().expect("a name").to_string_lossy().into_owned();
        let mut all: Vec<_> = list
            .into_iter()
            .map(|(share, config)| (share.name.clone(), dir(&config.directory)))
            .collect();
        all.sort();
        all
    }

    fn check(&self, names: &[(&str, &str)]) {
        let names: Vec<_> = names.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        assert_eq!(self.served(), names);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn shares_come_change_and_go() {
    let world = World::new();
    let (a, b) = (world.share("a", "a"), world.share("b", "b"));
    world.shares.apply(&[], std::slice::from_ref(&a)).expect("one");
    let both = [a.clone(), b.clone()];
    world.shares.apply(std::slice::from_ref(&a), &both).expect("another");
    world.check(&[("a", "a"), ("b", "b")]);
    let table = world.shares.table().load();
    let (first, second) = (table.by_name("a").expect("a").clone(), table.by_name("b").expect("b"));
    assert_ne!(first.id, second.id);
    drop(table);

    let ftp = || first.rules_for(Service::Ftp).generation();
    let before = ftp();
    let mut closed = ShareConfig { read_only: true, ..a.clone() };
    closed.rules[Service::Nfs.index()] =
        rules_for(Service::Nfs, Access::None, &["10.0.0.0/8(ro)".into()], &System).expect("rules");
    world.shares.apply(&both, &[closed.clone(), b.clone()]).expect("changed");
    let changed = world.shares.table().load().by_name("a").expect("there").clone();
    assert!(changed.read_only && changed.id == first.id);
    assert_eq!(changed.fs.root(), first.fs.root(), "handles stay good");
    // Clients that found the share before are bound by the new rules at their next call.
    let access = |ip: [u8; 4]| first.rules_for(Service::Nfs).get().grant(ip.into(), 1).access;
    assert_eq!((access([10, 0, 0, 1]), access([11, 0, 0, 1])), (Access::ReadOnly, Access::None));
    assert_eq!(ftp(), before, "what did not change nobody need ask again");
    assert!(world.released.lock().is_empty());

    drop((first, changed));
    std::fs::write(world.dir("b").join("kept"), "x").expect("a file");
    world.shares.apply(&[closed.clone(), b], &[closed]).expect("gone");
    world.check(&[("a", "a")]);
    assert_eq!(*world.released.lock(), [tag("b")]);
    assert!(world.dir("b").join("kept").exists(), "files stay");
}

#[test]
fn a_share_in_use_is_let_go_of_when_its_last_call_has_ended() {
    let world = World::new();
    let a = world.share("a", "a");
    world.shares.apply(&[], std::slice::from_ref(&a)).expect("one");
    let under_way = world.shares.table().load().by_name("a").expect("there").clone();
    std::thread::scope(|scope| {
        let going = scope.spawn(|| world.shares.apply(std::slice::from_ref(&a), &[]));
        while world.shares.table().load().by_name("a").is_some() {
            std::thread::yield_now();
        }
        // Clients do not see it any more; their state is retained until no call can add to it.
        assert!(world.released.lock().is_empty());
        drop(under_way);
        going.join().expect("no panic").expect("gone");
    });
    assert_eq!(*world.released.lock(), [tag("a")]);
    world.shares.apply(&[], &[a]).expect("again");
}

#[test]
fn a_share_can_move_to_another_directory() {
    let world = World::new();
    let (before, after) = (world.share("s", "a"), world.share("s", "b"));
    world.shares.apply(&[], std::slice::from_ref(&before)).expect("one");
    world.shares.apply(&[before], std::slice::from_ref(&after)).expect("moved");
    world.check(&[("s", "b")]);
    let renamed = world.share("t", "b");
    world.shares.apply(&[after], &[renamed]).expect("renamed");
    world.check(&[("t", "b")]);
    assert_eq!(*world.released.lock(), [tag("s"), tag("s")]);
}

#[test]
fn what_is_wrong_changes_nothing() {
    let world = World::new();
    let a = world.share("a", "a");
    let old = [a.clone()];
    world.shares.apply(&[], &old).expect("one");
    let elsewhere = ShareConfig { project: "p".into(), ..world.share("a", "b") };
    let wrong = [
        (world.share("x", "none"), "the directory"),
        (world.share("x", "file"), "is not a directory"),
        (world.share("x", "state"), "is inside the state directory"),
        (ShareConfig { directory: "srv".into(), ..world.share("x", "a") }, "not an absolute path"),
        (elsewhere, "a share named a already exists, in /shares/default/a"),
    ];
    for (bad, says) in wrong {
        // A valid share in the same change is not served either.
        let new = [a.clone(), world.share("good", "c"), bad];
        let problem = world.shares.apply(&old, &new).expect_err(says);
        assert!(problem.sentence.contains(says), "{}", problem.sentence);
        world.check(&[("a", "a")]);
    }
}

#[test]
fn one_more_share_takes_nothing_from_the_others() {
    let world = World::new();
    let (a, b) = (world.share("a", "a"), world.share("b", "b"));
    let old = [a.clone(), b.clone()];
    world.shares.apply(&[], &old).expect("two");
    let closed = ShareConfig { read_only: true, ..a.clone() };
    world.shares.apply(&old, &[closed, b.clone()]).expect("changed");
    std::fs::rename(world.dir("b"), world.dir("elsewhere")).expect("moved away");
    world.shares.look();
    world.shares.add(world.share("c", "c")).expect("one more");
    world.check(&[("a", "a"), ("c", "c")]);
    // What is there stays as it is, whether it is served or not.
    world.shares.add(a.clone()).expect("there");
    world.shares.add(b).expect("there");
    assert!(world.shares.table().load().by_name("a").expect("there").read_only);
    let same_name = ShareConfig { project: "p".into(), ..world.share("a", "d") };
    for bad in [world.share("x", "none"), same_name] {
        world.shares.add(bad).expect_err("refused");
        world.check(&[("a", "a"), ("c", "c")]);
    }
    std::fs::rename(world.dir("elsewhere"), world.dir("b")).expect("moved back");
    world.shares.look();
    world.check(&[("a", "a"), ("b", "b"), ("c", "c")]);
}

#[test]
fn settings_on_pools_are_taken_back_with_what_fails_after_them() {
    let world = World::new();
    let on_pool = |name: &str, quota| {
        let settings = ShareSettings { quota: Some(quota), ..ShareSettings::default() };
        let storage = Some(OnPool { pool: "tank".to_owned(), settings });
        ShareConfig { storage, ..world.share(name, name) }
    };
    let log = || std::mem::take(&mut *world.pools.0.lock());
    let old = [on_pool("a", 1), on_pool("b", 2), world.share("c", "c")];
    world.shares.apply(&[], &old).expect("three");
    assert_eq!(log(), ["tank/a 1", "tank/b 2"]);
    world.shares.apply(&old, &old).expect("the same");
    assert_eq!(log(), Vec::<String>::new(), "nothing has changed");
    let new = [on_pool("a", 3), on_pool("b", REFUSED), world.share("c", "c")];
    let problem = world.shares.apply(&old, &new).expect_err("refused");
    assert!(problem.sentence.contains("is not mounted"), "{}", problem.sentence);
    assert_eq!(log(), ["tank/a 3", "tank/a 1"]);
    let new = [on_pool("a", 3), on_pool("b", 2), world.share("c", "c")];
    world.shares.apply(&old, &new).expect("changed");
    assert_eq!(log(), ["tank/a 3"]);
}

#[test]
fn one_that_fails_half_way_takes_the_others_back() {
    let world = World::new();
    let (a, c) = (world.share("a", "a"), world.share("c", "c"));
    let old = [a.clone(), c.clone()];
    world.shares.apply(&[], &old).expect("two");
    // Another server has the table of handles that a share of this name needs.
    let form = |form: &str| format!("state/handles-{:08x}-{form}.redb", tag("bad"));
    for form in [form("kernel"), form("table")] {
        std::fs::create_dir(world.dir(&form)).expect("in the way");
    }
    let new = ShareConfig {
        root: Root { make: true, mode: Some(0o750), ..Root::default() },
        ..world.share("new", "made")
    };
    let moved = world.share("c", "d");
    let problem = world
        .shares
        .apply(&old, &[a.clone(), moved, new.clone(), world.share("bad", "e")])
        .expect_err("it cannot be opened");
    assert_eq!(
        (problem.path.name(), problem.property.as_deref()),
        (Some("bad"), Some("directory"))
    );
    world.check(&[("a", "a"), ("c", "c")]);
    assert!(!world.dir("made").exists(), "what was made is taken back");
    world.shares.apply(&old, &[a, c, new]).expect("without the bad one");
    let made = std::fs::metadata(world.dir("made")).expect("made");
    assert_eq!(made.permissions().mode() & 0o7777, 0o750);
}

#[test]
fn the_base_applies_to_clients_without_an_exception() {
    let one = ["10.1.0.0/16(rw,root_squash)".to_owned()];
    let rules = |base, exceptions: &[String]| rules_for(Service::Nfs, base, exceptions, &System);
    let access = |base, exceptions: &[String], ip: [u8; 4]| {
        rules(base, exceptions).expect("rules").grant(ip.into(), 1).access
    };
    let (in_it, outside) = ([10, 1, 2, 3], [10, 2, 2, 3]);
    for base in [Access::None, Access::ReadOnly, Access::ReadWrite] {
        assert_eq!(access(base, &one, in_it), Access::ReadWrite);
        assert_eq!(access(base, &one, outside), base);
        assert_eq!(access(base, &[], in_it), base);
    }
    assert!(rules(Access::ReadWrite, &[]).expect("rules").is_empty());
    for bad in ["10.1.0.0/16(wr)", "10.1.0.0/99(rw)", "a(rw)\n*(rw)"] {
        assert!(rules(Access::None, &[bad.to_owned()]).is_err(), "{bad}");
    }
}

#[test]
fn a_service_has_rules_of_its_own_that_change_while_it_serves() {
    let world = World::new();
    let open = world.share("a", "a");
    world.shares.apply(&[], std::slice::from_ref(&open)).expect("one");
    let share = world.shares.table().load().by_name("a").expect("there").clone();
    let access = |service, ip: [u8; 4]| share.rules_for(service).get().grant(ip.into(), 1).access;
    assert_eq!(access(Service::Ftp, [10, 0, 0, 1]), Access::ReadWrite);
    let one = ["10.0.0.0/8(ro)".to_owned(), "11.0.0.0/8(none)".to_owned()];
    let rules = rules_for(Service::Sftp, Access::ReadWrite, &one, &System).expect("rules");
    let mut closed = open.clone();
    closed.rules[Service::Sftp.index()] = rules;
    world.shares.apply(&[open], &[closed]).expect("changed");
    assert_eq!(access(Service::Sftp, [10, 0, 0, 1]), Access::ReadOnly);
    assert_eq!(access(Service::Sftp, [11, 0, 0, 1]), Access::None);
    assert_eq!(access(Service::Sftp, [12, 0, 0, 1]), Access::ReadWrite);
    assert_eq!(access(Service::Http, [10, 0, 0, 1]), Access::ReadWrite);
    assert_eq!(access(Service::Nfs, [10, 0, 0, 1]), Access::ReadWrite);
}

#[test]
fn export_rules_of_the_command_line_hold_for_all_services() {
    let world = World::new();
    let given = world.share("a", "a");
    let rules = "10.0.0.0/8(ro,all_squash,secure)\n11.0.0.0/8(rw,xprtsec=tls)";
    let rules = Rules::parse(rules, &System).expect("rules");
    world.shares.apply(&[], &[given]).expect("one");
    world.shares.set_rules("a", &rules);
    let share = world.shares.table().load().by_name("a").expect("there").clone();
    for service in Service::SIGN_IN {
        let over = |ip: [u8; 4], transport| {
            share.rules_for(service).get().grant_over(ip.into(), 60_000, transport)
        };
        let one = over([10, 0, 0, 1], Transport::Plain);
        assert_eq!((one.access, one.squash), (Access::ReadOnly, Squash::None), "{service:?}");
        assert_eq!(over([11, 0, 0, 1], Transport::Plain).access, Access::None);
        assert_eq!(over([11, 0, 0, 1], Transport::Tls).access, Access::ReadWrite);
        assert_eq!(over([12, 0, 0, 1], Transport::Tls).access, Access::None);
        let texts: Vec<_> =
            share.rules_for(service).get().iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["10.0.0.0/8(ro)", "11.0.0.0/8(rw,xprtsec=tls)"]);
    }
}
