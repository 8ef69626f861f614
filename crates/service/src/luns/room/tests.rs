//! Units created, grown, renamed, copied and destroyed by transactions of a tree, over a folder of
//! the machine; their identities over restarts; their access rules.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base::clock::SystemClock;
use base::node::{Context, Path, Value};
use control::tree::change::Request;
use control::tree::store::Folder;
use control::tree::viewer::Everything;
use control::tree::{Actor, Apply, Operational, Problem, Subtree, Transition, Tree};
use probe::hub::{Hub, HubOptions};
use serde_json::{Value as Json, json};
use serve::exec::Engine;
use serve::iscsi::Iscsi as Server;
use serve::iscsi::settings::Settings;
use serve::pool::{Pool, PoolLimits};
use serve::transport::Budgets;
use serve::transport::budget::Limits;
use vfs::flush::FlushGroup;
use vfs::locks::LockTable;
use vfs::lun::Medium;
use wire::scsi::Asc;

use super::LunNodes;
use crate::luns::bounded::STUCK;
use crate::luns::config::SAN;
use crate::luns::live::{Luns, SharesAndLuns, give};
use crate::luns::{FOLDER, LunGiven};

/// A disk that answers again is seen within this, on a machine with much else to do too.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

static ROOT: Context = Context::new("", "Test", "A tree with units.", "status")
    .children(&[&CONFIGURATION, &vfs::share::node::NODE]);
static CONFIGURATION: Context =
    Context::new("configuration", "Configuration", "What units need.", "configuration")
        .children(&[&serve::iscsi::node::SAN]);

/// No shares.
struct NoShares;

impl Apply for NoShares {
    fn check(&self, _transition: &Transition<'_>) -> Vec<Problem> {
        Vec::new()
    }

    fn apply(&self, _transition: &Transition<'_>) -> Result<(), Problem> {
        Ok(())
    }
}

impl Operational for NoShares {}

/// A server with units, in a folder of its own.
struct World {
    state: PathBuf,
    room: Arc<LunNodes>,
    luns: Arc<Luns>,
    tree: Arc<Tree>,
    locks: Arc<LockTable>,
}

/// A folder that goes away with its test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-test-room-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(path.join("state")).expect("a folder");
        Self(path)
    }

    fn state(&self) -> PathBuf {
        self.0.join("state")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn actor() -> Actor {
    Actor::new("anna", "here")
}

fn lun(name: &str) -> Path {
    Path::of(&["shares", "default", "luns", name])
}

fn create(name: &str, properties: Json) -> Json {
    json!({ "create": "/shares/default/luns", "name": name, "properties": properties })
}

impl World {
    fn open(state: &FilePath) -> Self {
        let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
        let budgets = Arc::new(Budgets::new(Limits::default()));
        let pool = Pool::start(PoolLimits { threads: 1, queue: 10, per_client: 10 });
        let flush = Arc::new(FlushGroup::start().expect("threads"));
        let engine = Engine::new(pool.expect("threads"), flush, budgets, hub);
        let server = Server::new(engine, Settings::default());
        let locks: Arc<LockTable> = Arc::default();
        let room = LunNodes::new(state.join(FOLDER), &locks, &server);
        let disk = Arc::new(Folder::new(state));
        let tree = Tree::open(disk, &ROOT, Arc::new(SystemClock)).expect("a tree");
        let tree = Arc::new(tree);
        let document = tree.document();
        let secret = |path: &Path, name: &str| tree.secrets().get(&document, path, name);
        room.start(&document, &secret);
        let luns = Luns::new(&room, &tree, ([127, 0, 0, 1], 3260).into());
        let beside = SharesAndLuns { shares: Arc::new(NoShares), luns: luns.clone() };
        tree.join(vec![
            Subtree::new(&["shares"], Arc::new(beside)),
            Subtree::new(SAN, luns.clone()),
        ]);
        Self { state: state.to_path_buf(), room, luns, tree, locks }
    }

    fn try_change(&self, changes: Json) -> Result<(), Vec<Problem>> {
        let request: Request = serde_json::from_value(json!({ "changes": changes })).expect("one");
        let done = self.tree.commit(&request, &actor(), &Everything).map(drop);
        self.room.purge(&self.tree.document());
        done
    }

    fn change(&self, changes: Json) {
        self.try_change(changes.clone()).unwrap_or_else(|why| panic!("{changes}: {why:?}"));
    }

    fn refused(&self, changes: Json) -> String {
        let problems = self.try_change(changes.clone()).err();
        let problems = problems.unwrap_or_else(|| panic!("{changes} was taken"));
        problems[0].sentence.clone()
    }

    fn state_of(&self, name: &str, property: &str) -> Option<Value> {
        let state = self.luns.state(&lun(name)).into_iter();
        state.into_iter().find(|(one, _)| *one == property).map(|(_, value)| value)
    }

    fn text(&self, name: &str, property: &str) -> String {
        self.state_of(name, property).map_or_else(String::new, |value| value.to_string())
    }

    fn files(&self) -> Vec<String> {
        let folder = self.state.join(FOLDER);
        let entries = std::fs::read_dir(folder).expect("a folder");
        let names = entries.map(|entry| entry.expect("one").file_name());
        let mut names: Vec<String> =
            names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.retain(|name| name.ends_with(".lun"));
        names.sort();
        names
    }

    /// Numbers of the units that an initiator sees at a target.
    fn seen(&self, target: Option<&str>, initiator: &str) -> Vec<u16> {
        let inner = self.room.inner();
        let target = &inner.targets[&target.map(str::to_owned)];
        target.units().seen_by(initiator).map(|(number, _)| number).collect()
    }
}

#[test]
fn a_unit_is_made_grown_renamed_and_destroyed() {
    let scratch = Scratch::new();
    let world = World::open(&scratch.state());
    assert!(!scratch.state().join(FOLDER).exists(), "nothing is made for nothing");
    world.change(json!([create("a", json!({ "volsize": "4M", "volblocksize": "4096" }))]));
    assert_eq!(
        (world.text("a", "state"), world.text("a", "number")),
        ("online".into(), "0".into())
    );
    assert_eq!(world.state_of("a", "size"), Some(Value::Integer(4 << 20)));
    let guid = world.text("a", "lunguid");
    assert!(guid.len() == 32 && guid.starts_with('6'), "{guid}");
    let meta = std::fs::metadata(scratch.state().join("luns/a.lun")).expect("its file");
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    let device = std::os::unix::fs::MetadataExt::dev(&meta);
    assert!(world.locks.exclusive().contains(device, inode), "no share shows it");

    let grow =
        |size: &str| json!([{ "set": lun("a").to_string(), "property": "volsize", "value": size }]);
    let unit = world.room.inner().entries["default/a"].opened.as_ref().expect("open").unit.clone();
    let port = vfs::lun::reservations::Port { name: "iqn.x:i".into(), isid: [0; 6] };
    let from = [192, 0, 2, 1].into();
    let nexuses = [unit.join(port.clone(), from), unit.join(port, from)];
    nexuses.iter().for_each(|nexus| while nexus.take_unit_attention().is_some() {});
    world.change(grow("8M"));
    assert_eq!(world.state_of("a", "size"), Some(Value::Integer(8 << 20)));
    for nexus in &nexuses {
        assert_eq!(nexus.take_unit_attention(), Some(Asc::CAPACITY_CHANGED), "2A/09 to each");
    }
    assert!(world.refused(grow("4M")).contains("smaller"));
    assert!(world.refused(grow("5000000")).contains("4096"));

    world.change(json!([{ "rename": lun("a").to_string(), "to": "b" }]));
    assert_eq!(world.text("b", "lunguid"), guid);
    let number = |name: &str| world.text(name, "number");
    world.change(json!([create("a", json!({ "volsize": "1M" }))]));
    assert_ne!(world.text("a", "lunguid"), guid, "another one");
    assert_eq!((number("a"), number("b")), ("1".into(), "0".into()));
    assert_eq!(world.files().len(), 2);

    assert!(world.refused(json!([{ "destroy": lun("b").to_string() }])).contains("are removed"));
    world.change(json!([{ "destroy": lun("b").to_string(), "confirm": true }]));
    assert_eq!(world.files().len(), 1);
    assert!(!world.locks.exclusive().contains(device, inode));
    assert_eq!(world.seen(None, "iqn.x:anybody"), [1]);
}

#[test]
fn the_identity_of_a_unit_survives_restarts_and_a_move() {
    let scratch = Scratch::new();
    let identity = |world: &World| {
        ["a", "b"].map(|name| (world.text(name, "lunguid"), world.text(name, "number")))
    };
    let world = World::open(&scratch.state());
    world.change(json!([
        create("a", json!({ "volsize": "1M" })),
        create("b", json!({ "volsize": "1M", "assignednumber": 7 })),
    ]));
    let (before, target) = (identity(&world), world.room.inner().target.clone());
    assert_ne!(before[0].0, before[1].0);
    assert_eq!(before[1].1, "7");
    world.change(json!([{ "rename": lun("a").to_string(), "to": "c" }]));
    world.change(json!([{ "rename": lun("c").to_string(), "to": "a" }]));
    drop(world);
    let moved = scratch.0.join("moved");
    std::fs::rename(scratch.state(), &moved).expect("moved");
    let again = World::open(&moved);
    assert_eq!((identity(&again), again.room.inner().target.clone()), (before.clone(), target));
    assert_eq!(again.text("a", "state"), "online");
    // Another server has others.
    let other = Scratch::new();
    let there = World::open(&other.state());
    there.change(json!([create("a", json!({ "volsize": "1M" }))]));
    assert_ne!(there.text("a", "lunguid"), before[0].0);
    assert_ne!(there.room.inner().target, again.room.inner().target);
}

#[test]
fn a_change_that_fails_leaves_nothing() {
    let scratch = Scratch::new();
    let world = World::open(&scratch.state());
    world.change(json!([create("a", json!({ "volsize": "1M", "assignednumber": 0 }))]));
    let missing = json!({ "volsize": "1M", "backing": "device", "path": "/dev/none" });
    let said =
        world.refused(json!([create("b", json!({ "volsize": "1M" })), create("c", missing)]));
    assert!(said.contains("/dev/none"), "{said}");
    assert_eq!(world.files(), ["a.lun"]);
    assert!(world.refused(json!([create("b", json!({}))])).contains("volsize"));
    let taken = json!({ "volsize": "1M", "assignednumber": 0 });
    assert!(world.refused(json!([create("b", taken)])).contains("number 0"));
    let unused = json!({ "volsize": "1M", "path": "/srv/unit" });
    assert!(world.refused(json!([create("b", unused)])).contains("has no effect"));
    let nowhere = json!({ "volsize": "1M", "backing": "file", "path": "/nonexistent/unit" });
    let said = world.refused(json!([create("b", nowhere)]));
    assert!(said.contains("its directory does not exist"), "{said}");
    let inside = json!({ "backing": "file", "path": scratch.state().join("luns/secret") });
    let said = world.refused(json!([create("b", inside)]));
    assert!(said.contains("state directory"), "{said}");
    assert_eq!(world.files(), ["a.lun"]);
    assert_eq!(world.room.inner().entries.len(), 1);
}

/// A change of a unit that was there before fails with another one of the same transaction.
#[test]
fn a_change_that_fails_is_undone_for_units_that_are_there() {
    let scratch = Scratch::new();
    let world = World::open(&scratch.state());
    world.change(json!([create("a", json!({ "volsize": "1M", "assignednumber": 3 }))]));
    let guid = world.text("a", "lunguid");
    let unit = world.room.inner().entries["default/a"].opened.as_ref().expect("open").unit.clone();
    let set = |name: &str, property: &str, value: Json| {
        let path = lun(name).to_string();
        json!({ "set": path, "property": property, "value": value })
    };
    let missing = json!({ "volsize": "1M", "backing": "device", "path": "/dev/none" });
    let last = create("zz", missing);
    for to in ["z", "a"] {
        let mut changes = vec![
            set("a", "writecache", json!(false)),
            set("a", "assignednumber", json!(5)),
            last.clone(),
        ];
        if to != "a" {
            changes.insert(0, json!({ "rename": lun("a").to_string(), "to": to }));
            changes[1]["set"] = json!(lun(to).to_string());
            changes[2]["set"] = json!(lun(to).to_string());
        }
        assert!(world.refused(json!(changes)).contains("/dev/none"), "{to}");
        assert_eq!(world.text("a", "state"), "online", "{to}");
        assert_eq!(world.text("a", "lunguid"), guid, "{to}");
        assert_eq!(world.text("a", "number"), "3", "{to}");
        assert!(unit.write_cache(), "{to}");
        assert_eq!(world.room.inner().entries.len(), 1, "{to}");
    }
    world.change(json!([set("a", "writecache", json!(false))]));
    assert_eq!((world.text("a", "state"), unit.write_cache()), ("online".into(), false));
    drop(world);
    let again = World::open(&scratch.state());
    assert_eq!(again.text("a", "lunguid"), guid, "after a restart");
}

#[test]
fn files_by_name_and_in_a_project_are_units() {
    let scratch = Scratch::new();
    let world = World::open(&scratch.state());
    let by_name = scratch.0.join("disk.img");
    std::fs::write(&by_name, vec![7; 2 << 20]).expect("written");
    let project = scratch.0.join("project");
    std::fs::create_dir(&project).expect("made");
    world.change(json!([
        create("file", json!({ "backing": "file", "path": by_name })),
        { "set": "/shares/default/luns", "property": "directory", "value": project },
        create("own", json!({ "volsize": "1M", "sparse": false })),
    ]));
    assert_eq!(world.state_of("file", "size"), Some(Value::Integer(2 << 20)));
    let own = project.join(".plimsoll-luns/own.lun");
    let blocks = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&own).expect("there"));
    assert!(blocks * 512 >= 1 << 20, "reserved: {blocks}");
    let folder = std::fs::metadata(project.join(".plimsoll-luns")).expect("there");
    let (device, inode) = (
        std::os::unix::fs::MetadataExt::dev(&folder),
        std::os::unix::fs::MetadataExt::ino(&folder),
    );
    assert!(world.locks.exclusive().contains(device, inode), "no share shows the folder");
    let again = json!({ "backing": "file", "path": by_name });
    assert!(world.refused(json!([create("twice", again)])).contains("another unit has it"));
    for name in ["file", "own"] {
        world.change(json!([{ "destroy": lun(name).to_string(), "confirm": true }]));
    }
    assert_eq!(std::fs::read(&by_name).expect("it stays"), vec![7; 2 << 20]);
    assert!(!own.exists());
}

#[test]
fn units_are_found_only_with_permission() {
    let scratch = Scratch::new();
    let world = World::open(&scratch.state());
    let (anna, otto, eve) = ("iqn.2026-01.x:anna", "iqn.2026-01.x:otto", "iqn.2026-01.x:eve");
    let san = |of: &str, name: &str, properties: Json| {
        let above = format!("/configuration/san/{of}");
        json!({ "create": above, "name": name, "properties": properties })
    };
    let short = san("initiators", "anna", json!({ "initiator": anna, "chapsecret": "short" }));
    assert!(world.refused(json!([short])).contains("the minimum is 12"));
    let wrong = san("initiators", "anna", json!({ "initiator": "Anna" }));
    assert!(world.refused(json!([wrong])).contains("not an iSCSI name"));
    world.change(json!([
        san("initiators", "anna", json!({ "initiator": anna, "chapsecret": "anna's own secret" })),
        san("initiators", "otto", json!({ "initiator": otto })),
        san("initiator-groups", "cluster", json!({ "initiators": ["anna", "otto"] })),
        san("targets", "fast", json!({ "auth": "none" })),
        san("target-groups", "fast", json!({ "targets": ["fast"] })),
        create("all", json!({ "volsize": "1M" })),
        create("theirs", json!({ "volsize": "1M", "initiatorgroup": "cluster" })),
        create("fast", json!({ "volsize": "1M", "targetgroup": "fast" })),
        create(
            "both",
            json!({ "volsize": "1M", "targetgroup": "fast", "initiatorgroup": "cluster" })
        ),
    ]));
    // Numbers are given in the order of names: all, both, fast, theirs.
    // An initiator with its own secret finds the units of its group, and nothing else.
    assert_eq!(world.seen(None, anna), [3]);
    assert_eq!(world.seen(None, otto), [0, 3]);
    assert_eq!(world.seen(None, eve), [0]);
    // An initiator that is not named gets no access by its name alone.
    assert_eq!(world.seen(Some("fast"), eve), [] as [u16; 0]);
    assert_eq!(world.seen(Some("fast"), otto), [1]);
    let inner = world.room.inner();
    let sign_in = inner.targets[&None].sign_in();
    assert!(sign_in.common.is_some());
    assert_eq!(sign_in.initiators[anna].secret, b"anna's own secret");
    assert_eq!(world.room.server.settings().discovery, *sign_in);
    assert!(inner.targets[&Some("fast".to_owned())].sign_in().common.is_none());
    drop(inner);
    let unknown =
        json!({ "set": lun("all").to_string(), "property": "initiatorgroup", "value": "x" });
    assert!(world.refused(json!([unknown])).contains("no initiator group"));
    let same = json!({
        "set": "/configuration/san/targets/fast", "property": "targetchapsecret",
        "value": "anna's own secret",
    });
    assert!(world.refused(json!([same])).contains("same secret"));
    // A unit that is offline is found by no initiator, and is not shown by shares either.
    world.change(
        json!([{ "set": lun("all").to_string(), "property": "status", "value": "offline" }]),
    );
    assert_eq!(world.seen(None, eve), [] as [u16; 0]);
    assert_eq!(world.text("all", "reason"), "its status is offline");
}

#[test]
fn a_configuration_that_is_taken_as_a_whole_has_its_units() {
    let scratch = Scratch::new();
    let world = World::open(&scratch.state());
    world.change(json!([create("a", json!({ "volsize": "1M", "writecache": false }))]));
    let guid = world.text("a", "lunguid");
    let text = world.tree.export("here");
    world.change(json!([create("b", json!({ "volsize": "1M" }))]));
    world.tree.import(&text, false, &actor(), &Everything).expect("taken");
    assert_eq!(world.text("a", "lunguid"), guid, "it is the same");
    assert_eq!(world.room.inner().entries.len(), 1);
    // On another server they are made.
    let other = Scratch::new();
    let there = World::open(&other.state());
    there.tree.import(&text, false, &actor(), &Everything).expect("taken");
    assert_eq!((there.text("a", "state"), there.files().len()), ("online".into(), 1));
    let inner = there.room.inner();
    assert!(!inner.entries["default/a"].opened.as_ref().expect("open").unit.write_cache());
}

#[test]
fn the_command_line_and_older_versions_make_nodes() {
    let scratch = Scratch::new();
    let world = World::open(&scratch.state());
    let given = [LunGiven { name: "disk".to_owned(), size: 2 << 20 }];
    for _ in 0..2 {
        give(&world.room, &world.tree, &given).expect("made");
    }
    assert_eq!(world.tree.document().integer(&lun("disk"), "volsize"), Some(2 << 20));
    // Without its node, as an older version has left it.
    let document = std::fs::read_dir(scratch.state()).expect("there");
    drop(world);
    for entry in document.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != FOLDER {
            let _ = std::fs::remove_file(entry.path());
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let again = World::open(&scratch.state());
    assert!(again.room.inner().entries.is_empty());
    give(&again.room, &again.tree, &[]).expect("made");
    assert_eq!(again.text("disk", "state"), "online");
}

/// A copy takes no space of its own where the file system can clone; elsewhere it is refused, and
/// leaves nothing.
#[test]
fn a_unit_is_copied_where_files_can_be_cloned() {
    let scratch = Scratch::new();
    let world = World::open(&scratch.state());
    world.change(json!([create("a", json!({ "volsize": "4M", "volblocksize": "4096" }))]));
    let medium = |name: &str| {
        let inner = world.room.inner();
        inner.entries[name].opened.as_ref().expect("open").medium.clone()
    };
    medium("default/a").write(4096, &[7; 4096], true).expect("written");
    let parameters = |name: &str| [("name".to_owned(), Value::text(name))].into_iter().collect();
    let done = world.luns.act(&lun("a"), "snapshot", &parameters("monday"), &actor());
    match done {
        Err(problem) => {
            assert!(problem.sentence.contains("cannot clone"), "{problem}");
            println!("SKIP luns/copy: {}", problem.sentence);
            assert_eq!(world.files(), ["a.lun"]);
            assert_eq!(world.room.inner().disk.as_ref().expect("there").table.records().len(), 1);
        }
        Ok(path) => {
            assert_eq!(path, json!(lun("monday").to_string()));
            let mut back = [0; 4096];
            medium("default/monday").read(4096, &mut back, true).expect("read");
            assert_eq!(back, [7; 4096]);
            let inner = world.room.inner();
            assert!(
                inner.entries["default/monday"]
                    .opened
                    .as_ref()
                    .expect("open")
                    .unit
                    .is_write_protected()
            );
        }
    }
}

/// A copy waits for commands to end; nothing else waits for it, and its name can be given to
/// another unit.
#[test]
fn a_copy_that_waits_holds_up_no_other_change() {
    let scratch = Scratch::new();
    let world = World::open(&scratch.state());
    world.change(json!([create("a", json!({ "volsize": "1M" }))]));
    let unit = world.room.inner().entries["default/a"].opened.as_ref().expect("open").unit.clone();
    let parameters = |name: &str| [("name".to_owned(), Value::text(name))].into_iter().collect();
    std::thread::scope(|scope| {
        let held = unit.ranges.take(0, 512, false).expect("free");
        let copy = || world.luns.act(&lun("a"), "snapshot", &parameters("monday"), &actor());
        let copy = scope.spawn(copy);
        let until = Instant::now() + ANSWERS_WITHIN;
        while unit.ranges.waiting() == 0 {
            assert!(Instant::now() < until && !copy.is_finished(), "it waits");
            std::thread::yield_now();
        }
        world.change(json!([create("monday", json!({ "volsize": "1M" }))]));
        assert_eq!(world.text("monday", "state"), "online");
        assert_eq!(unit.ranges.waiting(), 1, "it waits still");
        drop(held);
        // There is a unit of this name now, or files cannot be cloned here.
        assert!(copy.join().expect("no panic").is_err());
    });
    let records = world.room.inner().disk.as_ref().expect("there").table.records();
    let until = Instant::now() + ANSWERS_WITHIN;
    while world.files().len() > 2 {
        assert!(Instant::now() < until, "{:?}", world.files());
        std::thread::yield_now();
    }
    assert_eq!(records.len(), 2, "of the units");
}

/// A disk that does not respond for a while: its unit shows this, and the others are shown as
/// always.
#[test]
fn storage_that_does_not_answer_blocks_no_other_unit() {
    if let Err(why) = sim::forget::available() {
        return println!("SKIP luns/stuck: {why}");
    }
    let scratch = Scratch::new();
    let world = World::open(&scratch.state());
    let below = scratch.0.join("below");
    std::fs::create_dir(&below).expect("made");
    let mounted = match sim::forget::ForgetFs::mount(&below) {
        Ok(mounted) => mounted,
        Err(why) => return println!("SKIP luns/stuck: FUSE: {why}"),
    };
    let file = json!({ "backing": "file", "path": below.join("disk"), "volsize": "1M" });
    world.change(json!([create("stuck", file), create("good", json!({ "volsize": "1M" }))]));
    mounted.set_stuck(true);
    for _ in 0..3 {
        assert_eq!(world.text("stuck", "reason"), STUCK);
        assert_eq!(world.text("stuck", "state"), "online");
        assert!(
            world.state_of("good", "allocated").is_some()
                && world.text("good", "reason").is_empty()
        );
    }
    // No call has waited for the disk: it has not responded until now.
    world.change(json!([{ "destroy": lun("good").to_string(), "confirm": true }]));
    mounted.set_stuck(false);
    let until = Instant::now() + ANSWERS_WITHIN;
    while !world.text("stuck", "reason").is_empty() {
        assert!(Instant::now() < until, "it answers again");
        std::thread::yield_now();
    }
    drop(world);
}

/// A unit below a directory that local users rename is served until the server restarts; then it is
/// offline and shows the reason, and has its identity again when its file is back.
#[test]
fn a_directory_that_is_renamed_below_the_server_leaves_its_unit_offline() {
    let scratch = Scratch::new();
    let world = World::open(&scratch.state());
    let (here, there) = (scratch.0.join("here"), scratch.0.join("there"));
    std::fs::create_dir(&here).expect("made");
    let file = json!({ "backing": "file", "path": here.join("disk"), "volsize": "1M" });
    world.change(json!([create("disk", file), create("other", json!({ "volsize": "1M" }))]));
    let guid = world.text("disk", "lunguid");
    std::fs::rename(&here, &there).expect("renamed");
    let medium = |world: &World| {
        let inner = world.room.inner();
        Arc::clone(&inner.entries["default/disk"].opened.as_ref().expect("open").medium)
    };
    medium(&world).write_durable(0, b"on").expect("it goes on");
    assert_eq!(world.text("disk", "state"), "online");
    drop(world);
    let world = World::open(&scratch.state());
    assert_eq!(world.text("disk", "state"), "offline");
    let reason = world.text("disk", "reason");
    assert!(reason.contains("here/disk") && reason.contains("No such file"), "{reason}");
    assert_eq!(world.text("other", "state"), "online", "the others are there");
    assert!(!here.exists(), "nothing is made in its place");
    drop(world);
    std::fs::rename(&there, &here).expect("renamed back");
    let world = World::open(&scratch.state());
    assert_eq!(
        (world.text("disk", "state"), world.text("disk", "lunguid")),
        ("online".into(), guid)
    );
    let mut bytes = [0; 2];
    medium(&world).read(0, &mut bytes, true).expect("read");
    assert_eq!(&bytes, b"on");
}
