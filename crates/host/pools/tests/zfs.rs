//! Pools of ZFS on loop devices, by zfs-fuse, which needs no module of the kernel.
//! Each test has its daemon, in a namespace of mounts. `zpool` and `zfs`, read by a program
//! in another language, are the oracle.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::random::{Random, SeededRandom};
use e2e::loops::tool;
use host_pools::keeper::Keeper;
use host_pools::profile::Profile;
use host_pools::quota::Compression;
use host_pools::request::{
    FileSystem, Kind, MemberStatus, PoolReply, PoolRequest, PoolStatus, ShareSettings,
};
use host_pools::state::State;
use host_pools::zfs::layout::{self, Options};
use host_pools::zfs::{Health, Role};

mod bed;
use bed::{Bed, run};

const MIB: usize = 1 << 20;
/// Reads `zpool status` and `zfs list`, and prints a line for each device and each share.
const READER: &str = include_str!("zfs/reader.py");

/// A daemon of zfs-fuse with its files in this namespace of mounts.
struct Daemon(Child);

impl Daemon {
    /// Why there can be none.
    fn lacks() -> Option<String> {
        let is_there =
            ["/sbin/zfs-fuse", "/usr/sbin/zfs-fuse"].iter().any(|at| Path::new(at).exists());
        if !is_there {
            return Some("zfs-fuse is not installed".to_owned());
        }
        let opened = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        opened.err().map(|e| format!("/dev/fuse: {e}"))
    }

    fn start() -> Self {
        // Its socket, its lock, its settings and its list of pools; the folders come with it.
        for folder in ["/run", "/etc/zfs", "/var/lib/zfs"] {
            run("mount", &["-t", "tmpfs", "tmpfs", folder]);
        }
        for folder in ["/run/zfs", "/run/lock/zfs"] {
            fs::create_dir_all(folder).expect("made");
        }
        let mut command = Command::new("zfs-fuse");
        command.args(["--no-daemon", "--pidfile", "/run/zfs/pid"]);
        command.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let daemon = Self(command.spawn().expect("started"));
        let deadline = Instant::now() + e2e::patience(60);
        while tool(Command::new("zpool").args(["list", "-H", "-o", "name"])).is_err() {
            assert!(Instant::now() < deadline, "zfs-fuse does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        daemon
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Settings of a share are those of its dataset. No write meets the quota: it ends zfs-fuse 0.7.
fn limits_a_share(scene: &Scene) {
    let settings = |quota, compression| PoolRequest::ConfigureShare {
        pool: scene.pool(),
        share: "a".to_owned(),
        settings: ShareSettings { quota, compression, ..ShareSettings::default() },
    };
    scene.done(settings(None, Compression::Zlib));
    assert_eq!(scene.property("/a", "compression"), "gzip");
    scene.done(settings(Some(32 * MIB as u64), Compression::Off));
    assert_eq!(scene.property("/a", "quota"), (32 * MIB).to_string());
    scene.done(settings(None, Compression::Off));
    assert!(matches!(&*scene.property("/a", "quota"), "none" | "0"));
    let lzo = scene.ask(settings(None, Compression::Lzo)).expect_err("no lzo in ZFS");
    assert!(lzo.contains("choose zstd or zlib"), "{lzo}");
}

/// Disks, a daemon and a keeper.
struct Scene {
    name: String,
    disks: Vec<String>,
    keeper: Arc<Keeper>,
    // In this order: a device is disconnected after the daemon has closed it.
    _daemon: Daemon,
    bed: Bed,
}

impl Scene {
    fn new(name: &str, count: usize) -> Option<Self> {
        let bed = Bed::with(&format!("zfs_{name}"), count, 192, Daemon::lacks())?;
        let daemon = Daemon::start();
        let keeper = Keeper::open(&bed.at(), &bed.other()).expect("opened");
        let name = format!("{name}{}", std::process::id());
        Some(Self { name, disks: bed.disks(), keeper, _daemon: daemon, bed })
    }

    fn ask(&self, request: PoolRequest) -> Result<PoolReply, String> {
        self.keeper.answer(request).map_err(|failure| failure.to_string())
    }

    fn done(&self, request: PoolRequest) {
        self.ask(request).unwrap_or_else(|e| panic!("{e}"));
    }

    fn create(&self, profile: Profile, disks: &[usize], zfs: Options) -> Result<PoolReply, String> {
        let (pool, disks) = (self.name.clone(), self.names(disks));
        self.ask(PoolRequest::Create { pool, profile, disks, zfs: Some(zfs) })
    }

    fn names(&self, disks: &[usize]) -> Vec<String> {
        disks.iter().map(|at| self.disks[*at].clone()).collect()
    }

    fn status(&self) -> PoolStatus {
        let pools = self.keeper.status().pools;
        pools.into_iter().find(|pool| pool.name == self.name).expect("imported")
    }

    /// The member on a disk.
    fn member(&self, disk: usize) -> MemberStatus {
        let device = self.disks[disk].trim_start_matches("/dev/").to_owned();
        let members = self.status().members;
        let found = members.into_iter().find(|one| one.identity.device == device);
        found.unwrap_or_else(|| panic!("{device} is no member"))
    }

    /// Waits until no task runs and the pool is in this state.
    fn wait_until(&self, state: State) -> PoolStatus {
        let deadline = Instant::now() + e2e::patience(120);
        loop {
            let now = self.status();
            if now.task.is_none() && now.state == state {
                return now;
            }
            assert!(Instant::now() < deadline, "{now:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn pool(&self) -> String {
        self.name.clone()
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.keeper.at(&self.name).join("a").join(name)
    }

    fn property(&self, dataset: &str, property: &str) -> String {
        let dataset = format!("{}{dataset}", self.name);
        let get = ["get", "-H", "-p", "-o", "value", property, &dataset];
        run("zfs", &get).trim().to_owned()
    }

    /// The state as the commands have it, read in another language.
    fn is_as_the_commands_have_it(&self) {
        let now = self.status();
        let mut lines = vec![format!("pool {} {}", now.used, now.available)];
        lines.extend(now.members.iter().map(|one| {
            let health = one.health.map_or("", Health::name);
            let errors = one.member.errors;
            format!(
                "{} {} {health} {} {} {}",
                one.role.name(),
                one.identity.vdev,
                errors.read,
                errors.write,
                errors.corruption
            )
        }));
        lines.extend(now.shares.iter().map(|share| format!("share {share}")));
        lines.extend(
            now.snapshots.iter().map(|(share, name, _)| format!("snapshot {share}@{name}")),
        );
        let read = run("python3", &["-c", READER, &self.name]);
        assert_eq!(lines.join("\n"), read.trim());
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Else the mounts of a test that failed are in the way of the daemon's end.
        let _ = tool(Command::new("zpool").args(["export", "-f", &self.name]));
    }
}

/// A file of these bytes, on disk.
fn fill(path: &Path, seed: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    SeededRandom::new(seed).fill(&mut bytes);
    let mut file = fs::File::create(path).expect("created");
    file.write_all(&bytes).expect("written");
    file.sync_all().expect("flushed");
    bytes
}

/// Bytes that were written to a device since it was connected.
fn written(device: &str) -> u64 {
    let name = device.trim_start_matches("/dev/");
    let stat = fs::read_to_string(format!("/sys/class/block/{name}/stat")).expect("read");
    let sectors = stat.split_whitespace().nth(6).expect("sectors");
    sectors.parse::<u64>().expect("a number") * 512
}

fn member_name(member: &MemberStatus) -> String {
    member.identity.devid.to_string()
}

#[test]
fn a_mirror_with_log_cache_and_spare() {
    let Some(scene) = Scene::new("roles", 6) else { return };
    let options = Options {
        log: scene.names(&[2]),
        cache: scene.names(&[3]),
        spares: scene.names(&[4]),
        record_size: Some(8 << 10),
        ..Options::default()
    };
    scene.create(Profile::Mirror, &[0, 1], options).expect("created");
    let now = scene.status();
    assert_eq!((now.file_system, now.state), (FileSystem::Zfs, State::Healthy), "{now:?}");
    let roles: Vec<Role> = now.members.iter().map(|one| one.role).collect();
    assert_eq!(roles, [Role::Data, Role::Data, Role::Log, Role::Cache, Role::Spare]);
    assert_eq!(now.members[0].group, "mirror-0");
    // A share is a dataset with the record size of the pool.
    let share = PoolRequest::MakeShare { pool: scene.pool(), share: "a".to_owned() };
    assert_eq!(scene.ask(share.clone()), Ok(PoolReply::Share { made: true }));
    assert_eq!(scene.ask(share), Ok(PoolReply::Share { made: false }));
    assert_eq!(scene.property("/a", "recordsize"), "8192");
    let mode = fs::metadata(scene.file("")).expect("made").permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    limits_a_share(&scene);
    // Synchronous writes go to the log, others do not.
    let (log, block) = (scene.disks[2].clone(), vec![7; 4096]);
    let mut file = OpenOptions::new();
    let file = file.create(true).write(true).custom_flags(libc::O_DSYNC);
    let mut file = file.open(scene.file("synchronous")).expect("opened");
    let before = written(&log);
    for _ in 0..200 {
        file.write_all(&block).expect("written");
    }
    let synchronous = written(&log) - before;
    assert!(synchronous >= 200 * 4096, "{synchronous} bytes were written to the log");
    drop(file);
    let right = fill(&scene.file("file"), 1, 8 * MIB);
    let snapshot = |name: &str| PoolRequest::Snapshot {
        pool: scene.pool(),
        share: "a".to_owned(),
        snapshot: name.to_owned(),
    };
    scene.done(snapshot("monday"));
    assert!(scene.ask(snapshot("monday")).is_err());
    scene.is_as_the_commands_have_it();
    assert_eq!(scene.status().snapshots[0].1, "monday");
    let (pool, share) = (scene.pool(), "a".to_owned());
    scene.done(PoolRequest::DestroySnapshot { pool, share, snapshot: "monday".to_owned() });
    assert!(scene.status().snapshots.is_empty());
    // A spare takes the place of a disk, and goes back.
    let (member, disk) = (member_name(&scene.member(1)), scene.disks[4].clone());
    scene.done(PoolRequest::Replace { pool: scene.pool(), member, disk });
    scene.wait_until(State::Healthy);
    scene.is_as_the_commands_have_it();
    let one = scene.status().members.into_iter().find(|one| one.group.contains("spare-"));
    assert!(one.is_some_and(|one| one.role == Role::Data));
    let member = scene.disks[4].clone();
    scene.done(PoolRequest::Remove { pool: scene.pool(), member });
    // Log, cache and spare can go, a leg cannot.
    for at in [2, 3, 4] {
        let member = member_name(&scene.member(at));
        scene.done(PoolRequest::Remove { pool: scene.pool(), member });
    }
    let member = member_name(&scene.member(0));
    let refused = scene.ask(PoolRequest::Remove { pool: scene.pool(), member });
    assert!(refused.is_err_and(|why| why.contains("replace the disk instead")));
    assert_eq!(scene.status().members.len(), 2);
    assert_eq!(fs::read(scene.file("file")).expect("read"), right);
}

#[test]
fn a_damaged_leg_is_scrubbed_taken_offline_and_replaced() {
    let Some(scene) = Scene::new("legs", 5) else { return };
    scene.create(Profile::Mirror, &[0, 1], Options::default()).expect("created");
    scene.done(PoolRequest::MakeShare { pool: scene.pool(), share: "a".to_owned() });
    let before = fill(&scene.file("before"), 1, 30 * MIB);
    // The labels at both ends stay.
    let mut noise = vec![0; 20 * MIB];
    SeededRandom::new(2).fill(&mut noise);
    scene.bed.write(1, 8 << 20, &noise);
    scene.done(PoolRequest::Scrub { pool: scene.pool() });
    let now = scene.wait_until(State::Healthy);
    let last = now.history.last().expect("a scrub");
    assert!(last.complete && last.kind == Kind::Scrub, "{last:?}");
    assert!(last.result.contains("0 errors without a right copy"), "{last:?}");
    assert!(scene.member(1).member.errors.corruption > 0);
    assert_eq!(scene.member(0).member.errors.corruption, 0);
    assert_eq!(fs::read(scene.file("before")).expect("read"), before);
    scene.is_as_the_commands_have_it();
    // Offline: the pool continues, and the disk gets what it has missed.
    let member = member_name(&scene.member(1));
    scene.done(PoolRequest::Offline { pool: scene.pool(), member: member.clone() });
    let now = scene.status();
    assert_eq!(now.state, State::Degraded);
    assert!(now.reason.as_ref().is_some_and(|why| why.contains("is offline")), "{now:?}");
    scene.is_as_the_commands_have_it();
    let after = fill(&scene.file("after"), 3, 10 * MIB);
    scene.done(PoolRequest::Online { pool: scene.pool(), member: member.clone() });
    // The resilver begins a moment after the disk is online.
    let deadline = Instant::now() + e2e::patience(120);
    while scene.status().history.last().is_none_or(|last| last.kind != Kind::Resilver) {
        assert!(Instant::now() < deadline, "{:?}", scene.status());
        std::thread::sleep(Duration::from_millis(20));
    }
    scene.wait_until(State::Healthy);
    // Replaced by a disk that is usable; the old one has its label.
    let replace = |disk: usize| PoolRequest::Replace {
        pool: scene.pool(),
        member: member.clone(),
        disk: scene.disks[disk].clone(),
    };
    let refused = scene.ask(replace(0)).expect_err("refused");
    assert!(refused.contains("signature of ZFS"), "{refused}");
    scene.done(PoolRequest::Offline { pool: scene.pool(), member: member.clone() });
    scene.done(replace(2));
    scene.wait_until(State::Healthy);
    assert_eq!(scene.member(2).health, Some(Health::Online));
    scene.is_as_the_commands_have_it();
    // The other leg goes: all is on the new one.
    let member = member_name(&scene.member(0));
    scene.done(PoolRequest::Offline { pool: scene.pool(), member });
    scene.bed.drop_cache();
    assert_eq!(fs::read(scene.file("before")).expect("read"), before);
    assert_eq!(fs::read(scene.file("after")).expect("read"), after);
    // A further mirror: two disks, not one.
    let add = |disks: &[usize], role, mirror| PoolRequest::Add {
        pool: scene.pool(),
        disks: scene.names(disks),
        role,
        mirror,
    };
    let refused = scene.ask(add(&[3], Role::Data, false)).expect_err("refused");
    assert!(refused.contains("at least 2 disks"), "{refused}");
    scene.done(add(&[3, 4], Role::Log, true));
    let groups: Vec<String> = scene.status().members.into_iter().map(|one| one.group).collect();
    assert_eq!(groups, ["mirror-0", "mirror-0", "mirror-1", "mirror-1"]);
    let member = member_name(&scene.member(3));
    scene.done(PoolRequest::Remove { pool: scene.pool(), member });
    assert_eq!(scene.status().members.len(), 2);
}

#[test]
fn a_disk_of_another_pool_in_the_place_of_one_is_left() {
    let Some(mut scene) = Scene::new("other", 5) else { return };
    // Another pool, on the third disk.
    let name = std::mem::replace(&mut scene.name, format!("another{}", std::process::id()));
    scene.create(Profile::Stripe, &[2], Options::default()).expect("created");
    scene.done(PoolRequest::Export { pool: scene.pool() });
    scene.name = name;
    let options =
        Options { cache: scene.names(&[3]), spares: scene.names(&[4]), ..Options::default() };
    scene.create(Profile::Mirror, &[0, 1], options).expect("created");
    let member = member_name(&scene.member(1));
    scene.done(PoolRequest::Offline { pool: scene.pool(), member });
    // Its disk was pulled, and the one of the other pool has its name.
    let image = |at: usize| fs::read(scene.bed.image(at)).expect("read");
    run("sync", &[]);
    let other = image(2);
    let (start, end) = (MIB, other.len() - MIB);
    scene.bed.write(1, 0, &other[..start]);
    scene.bed.write(1, end as u64, &other[end..]);
    let destroy = PoolRequest::DestroyData { pool: scene.pool(), confirmation: scene.pool() };
    let Ok(PoolReply::Done(done)) = scene.ask(destroy) else { panic!("not destroyed") };
    let left = format!("labels: {} (", scene.disks[1].trim_start_matches("/dev/"));
    assert!(done.contains(&left) && done.ends_with("are not of this pool)."), "{done}");
    let now = image(1);
    assert!(now[..start] == other[..start] && now[end..] == other[end..], "it was written to");
    let Ok(PoolReply::Disks { disks, .. }) = scene.ask(PoolRequest::Disks {}) else {
        panic!("no disks")
    };
    for at in [0, 3, 4] {
        let path = Path::new(&scene.disks[at]);
        let disk = disks.iter().find(|disk| disk.path() == path).expect("listed");
        assert_eq!(disk.reason, None, "{}", path.display());
    }
}

#[test]
fn a_pool_is_exported_imported_and_destroyed() {
    let Some(mut scene) = Scene::new("life", 3) else { return };
    refused_before_a_write(&mut scene);
    scene.create(Profile::Parity1, &[0, 1, 2], Options::default()).expect("created");
    let again = scene.create(Profile::Parity1, &[0, 1, 2], Options::default());
    assert!(again.is_err_and(|why| why.contains("there is a pool")));
    scene.done(PoolRequest::MakeShare { pool: scene.pool(), share: "a".to_owned() });
    let right = fill(&scene.file("file"), 1, 10 * MIB);
    let sizes = vec![192 << 20; 3];
    let (capacity, whole) = (scene.status().capacity, layout::capacity(Profile::Parity1, &sizes));
    assert!(capacity <= whole && capacity > whole * 3 / 4, "{capacity} of {whole}");
    scene.done(PoolRequest::Configure {
        pool: scene.pool(),
        mount_degraded: Some(true),
        scrub_every_days: Some(30),
    });
    scene.done(PoolRequest::Export { pool: scene.pool() });
    assert!(!scene.keeper.at(&scene.name).exists());
    // Another machine finds it with its settings.
    let state = scene.bed.other().join("second");
    scene.keeper = Keeper::open(&scene.bed.at(), &state).expect("opened");
    let Ok(PoolReply::Disks { offers, .. }) = scene.ask(PoolRequest::Disks {}) else {
        panic!("no disks")
    };
    let offer = offers.iter().find(|offer| offer.name == scene.name).expect("offered");
    assert_eq!((offer.file_system, offer.devices, offer.missing()), (FileSystem::Zfs, 3, 0));
    let uuid = offer.uuid.clone();
    scene.bed.detach(0);
    let import = |pool: &str, degraded| PoolRequest::Import { pool: pool.to_owned(), degraded };
    let refused = scene.ask(import(&uuid, false)).expect_err("refused");
    assert!(refused.contains("disks of the pool") && refused.contains("missing"), "{refused}");
    scene.done(import(&scene.name, true));
    let now = scene.status();
    assert_eq!(now.state, State::Degraded);
    assert!(now.reason.as_ref().is_some_and(|why| why.contains("is missing")), "{now:?}");
    assert_eq!((now.mount_degraded, now.scrub_every_days), (true, Some(30)));
    assert_eq!((now.profile, now.uuid.clone()), (Some(Profile::Parity1), uuid));
    assert_eq!(fs::read(scene.file("file")).expect("read"), right);
    // Erased, the disk is a new one, which takes the place of the missing one.
    let after = fill(&scene.file("after"), 2, 10 * MIB);
    scene.disks[0] = scene.bed.attach(0);
    for offset in [0, (192 << 20) - MIB as u64] {
        scene.bed.write(0, offset, &vec![0; MIB]);
    }
    let missing = now.members.iter().find(|one| one.member.missing).expect("a missing one");
    let (member, disk) = (member_name(missing), scene.disks[0].clone());
    scene.done(PoolRequest::Replace { pool: scene.pool(), member, disk });
    scene.wait_until(State::Healthy);
    let member = member_name(&scene.member(1));
    scene.done(PoolRequest::Offline { pool: scene.pool(), member });
    scene.bed.drop_cache();
    assert_eq!(fs::read(scene.file("after")).expect("read"), after);
    let destroy = |confirmation: &str| PoolRequest::DestroyData {
        pool: scene.pool(),
        confirmation: confirmation.to_owned(),
    };
    assert!(scene.ask(destroy("other")).is_err());
    scene.done(destroy(&scene.name));
    assert!(scene.keeper.status().pools.is_empty());
    let Ok(PoolReply::Disks { disks, offers }) = scene.ask(PoolRequest::Disks {}) else {
        panic!("no disks")
    };
    assert!(offers.iter().all(|offer| offer.name != scene.name));
    for path in &scene.disks[..3] {
        let disk = disks.iter().find(|disk| disk.path() == Path::new(path)).expect("listed");
        assert_eq!(disk.reason, None, "{path}");
    }
}

/// Requests that write nothing.
fn refused_before_a_write(scene: &mut Scene) {
    scene.bed.write(2, 0, b"XFSB");
    scene.disks.push(scene.bed.small());
    let sums = scene.bed.sums();
    let log = |disks: &[usize]| Options { log: scene.names(disks), ..Options::default() };
    for (disks, options, why) in [
        (&[0, 1][..], log(&[1]), "named twice"),
        (&[0, 1], log(&[2]), "signature of XFS"),
        (&[0, 1], log(&[3]), "smaller than"),
        (&[0], Options::default(), "at least 2 disks"),
        (&[0, 1], Options { record_size: Some(5_000), ..Options::default() }, "power of two"),
        (&[0, 1], Options { log_mirror: true, ..log(&[2]) }, "mirrored log"),
    ] {
        let refused = scene.create(Profile::Mirror, disks, options).expect_err(why);
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(scene.bed.sums(), sums, "a refused request has changed a disk");
    scene.bed.write(2, 0, &[0; 4]);
}
