//! Linux's own initiator (open-iscsi, with its disk driver) against units: it finds the target and
//! signs in, a file system on a unit stays whole while connections are cut, a bit that is flipped
//! on the way is found by the digest, one of two paths may go, and two initiators exclude each
//! other by persistent reservations. Units grow and are copied under load.
//!
//! Guest side: `uml/iscsi.sh`, `uml/blocks.c`.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use e2e::api::{self, Api};
use e2e::iscsi::Access;
use e2e::iscsi::relay::Relay;
use e2e::netns::{HOST, Namespace};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::uml::{self, Guest, Task};
use e2e::{has, skip};

#[path = "kernel_iscsi/live.rs"]
mod live;
#[path = "kernel_iscsi/reservations.rs"]
mod reservations;

/// Port of iSCSI.
const PORT: u16 = 3260;
/// What relays listen at.
const RELAYS: [u16; 2] = [4260, 4261];
/// Seconds for which connections are cut, unless the environment sets them.
const CUTTING: u64 = 30;
/// How often a connection is cut.
const EVERY: Duration = Duration::from_secs(3);
/// Where Debian's kernel has the initiator.
const MODULES: &str = "/usr/lib/uml/modules";

/// Why open-iscsi cannot run in a guest here.
fn unavailable() -> Option<String> {
    let tools = ["iscsid", "iscsiadm", "sg_persist", "dmsetup", "mkfs.ext4"];
    let missing: Vec<_> = tools.into_iter().filter(|tool| !has(tool)).collect();
    if !missing.is_empty() {
        return Some(format!("not installed: {}", missing.join(", ")));
    }
    let kernels = std::fs::read_dir(MODULES).into_iter().flatten().flatten();
    let has_initiator =
        |path: std::path::PathBuf| path.join("kernel/drivers/scsi/iscsi_tcp.ko").exists();
    if !uml::is_debian() || !kernels.map(|entry| entry.path()).any(has_initiator) {
        return Some("the kernel of guests has no initiator (iscsi_tcp)".to_owned());
    }
    uml::unavailable()
}

/// A server with a unit, and guests that can be its initiators.
struct Stage {
    guests: Vec<Guest>,
    server: Server,
    access: Access,
    namespace: Namespace,
    scratch: Scratch,
}

fn serve(namespace: &Namespace, scratch: &Scratch) -> Server {
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut options = Options::new(&dir, &state);
    options.address = HOST;
    options.namespace = Some(namespace);
    options.offset = Some(0);
    options.args = ["--lun", "disk=64M"].map(Into::into).to_vec();
    Server::start(&options)
}

impl Stage {
    /// `replacement`: seconds after which what waits for a lost connection fails.
    fn new(guests: u8, replacement: u32) -> Result<Self, String> {
        let namespace = uml::namespace(guests)?;
        let scratch = Scratch::new("kernel-iscsi");
        let server = serve(&namespace, &scratch);
        let access = Access::of(&scratch.path().join("state"));
        let guests = (0..guests).map(|number| {
            let guest = Guest::boot(&namespace, number, scratch.path());
            let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("uml/iscsi.sh");
            std::fs::copy(functions, guest.share().join("iscsi.sh")).expect("its functions");
            guest
        });
        let mut stage = Self { guests: guests.collect(), server, access, namespace, scratch };
        for number in 0..stage.guests.len() {
            stage.run(number, &format!("REPLACEMENT={replacement}\nstart"));
        }
        Ok(stage)
    }

    fn script(&self, number: usize, lines: &str) -> String {
        let Access { target, secret } = &self.access;
        format!(
            "NAME=iqn.2026-01.test:guest{number} TARGET={target} SECRET={secret}\n\
             . /mnt/host/iscsi.sh\n{lines}"
        )
    }

    /// Runs lines in a guest, which must all succeed; what they write.
    fn run(&mut self, number: usize, lines: &str) -> String {
        let script = self.script(number, lines);
        self.guests[number].run(&script)
    }

    /// Runs lines in a guest; the status and what they write.
    fn ends(&mut self, number: usize, lines: &str) -> (i32, String) {
        let script = self.script(number, lines);
        let task = self.guests[number].begin(&script);
        self.guests[number].end(&task)
    }

    fn begin(&mut self, number: usize, lines: &str) -> Task {
        let script = self.script(number, lines);
        self.guests[number].begin(&script)
    }

    /// A relay before the server, by its number.
    fn relay(&self, number: usize) -> Relay {
        let server: SocketAddr = format!("{HOST}:{PORT}").parse().expect("an address");
        let at = SocketAddr::new(server.ip(), RELAYS[number]);
        Relay::start(&self.namespace, at, server)
    }

    /// The unit as the server keeps it.
    fn unit(&self) -> Vec<u8> {
        let path = self.scratch.path().join("state/luns/disk.lun");
        std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }
}

/// What lies before the server for a guest.
fn portal(port: u16) -> String {
    format!("{HOST}:{port}")
}

#[test]
fn a_linux_initiator_finds_the_target_and_both_authenticate() {
    if let Some(why) = unavailable() {
        skip!("kernel-iscsi", "{why}");
    }
    let _turn = uml::turn();
    let started = api::now();
    let mut stage = match Stage::new(1, 120) {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-iscsi", "{why}"),
    };
    let at = portal(PORT);
    let found = stage.run(0, &format!("iscsiadm -m discovery -t st -p {at}"));
    assert_eq!(found.trim(), format!("{at},1 {}", stage.access.target));
    let session = stage.run(0, &format!("node {at} --login; iscsiadm -m session -P 2; disk sda"));
    for line in ["HeaderDigest: CRC32C", "DataDigest: CRC32C", "username: plimsoll"] {
        assert!(session.contains(line), "{session}");
    }
    stage.run(0, &format!("node {at} --logout"));
    // The target proves itself as well, if it is asked to: with the right secret it is let in, and
    // with another one the initiator does not believe it.
    let (user, own) = Access::own(&stage.scratch.path().join("state"));
    let set = |what: &str, value: &str| format!("set_node {at} node.session.auth.{what} {value}\n");
    let both = set("username_in", &user) + &set("password_in", &own);
    let login = format!("node {at} --login");
    let logout = format!("node {at} --logout");
    stage.run(0, &format!("{both}{login}\n{logout}"));
    let other = set("password_in", "another-secret-of-it");
    let (status, said) = stage.ends(0, &format!("{other}{login}"));
    assert_ne!(status, 0, "the target was believed: {said}");
    // An initiator without the secret is refused, and counted.
    let api = Api::new(&stage.scratch.path().join("state"));
    let wrong = set("password_in", &own) + &set("password", "a-secret-of-nobody");
    let (status, said) = stage.ends(0, &format!("{wrong}{login}"));
    assert!(status != 0 && said.contains("authoriz"), "{said}");
    api.wait_counter("iscsi.failures", started, 1);
    let wrong = format!(
        "sed -i 's/^\\(discovery.*password\\) =.*/\\1 = a-secret-of-nobody/' \
         /etc/iscsi/iscsid.conf\niscsiadm -m discovery -t st -p {at}"
    );
    let (status, said) = stage.ends(0, &wrong);
    assert!(status != 0 && !said.contains(&stage.access.target), "{said}");
    assert!(stage.server.stop().success());
}

/// How long connections are cut in a run.
fn cutting() -> Duration {
    let seconds = std::env::var("PLIMSOLL_ISCSI_CUT_S").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(CUTTING))
}

/// Stops the program that writes and reads; everything that it wrote must be there.
fn end_blocks(stage: &mut Stage, task: &Task) -> String {
    stage.guests[0].run("touch /tmp/stop");
    let (status, log) = stage.guests[0].end(task);
    assert!(status == 0 && log.contains("wrote "), "{log}\n{}", stage.guests[0].said());
    log
}

#[test]
fn a_file_system_stays_whole_while_connections_are_cut() {
    if let Some(why) = unavailable() {
        skip!("kernel-iscsi-cut", "{why}");
    }
    let _turn = uml::turn();
    let mut stage = match Stage::new(1, 120) {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-iscsi-cut", "{why}"),
    };
    let relay = stage.relay(0);
    let at = portal(RELAYS[0]);
    stage.guests[0].install("blocks");
    stage.run(
        0,
        &format!(
            "node {at} -o new\nnode {at} --login\ndisk sda\nmkfs.ext4 -q -F /dev/sda\n\
             mount /dev/sda /mnt/nfs"
        ),
    );
    let task = stage.begin(0, "exec blocks writer /mnt/nfs/blocks /tmp/stop 1");
    let (end, mut cuts) = (Instant::now() + cutting(), 0);
    while Instant::now() < end {
        // The next cut comes into work: after the first operations since the last one.
        stage.guests[0].event("writer at");
        let next = Instant::now() + EVERY;
        while Instant::now() < next {
            stage.guests[0].event("writer at");
        }
        relay.cut();
        cuts += 1;
        while stage.guests[0].forget("writer at") {}
    }
    stage.guests[0].event("writer at");
    let log = end_blocks(&mut stage, &task);
    assert!(relay.carried() > cuts, "{} sessions for {cuts} cuts", relay.carried());
    stage.run(0, &format!("umount /mnt/nfs\nfsck.ext4 -fn /dev/sda\nnode {at} --logout"));
    println!("{cuts} cuts, {}", log.trim());
    assert!(stage.server.stop().success());
}

/// Writes 8 MiB through a bit that is flipped on the way; whether the unit has what was meant.
fn survives_flip(stage: &mut Stage, relay: &Relay, digests: &str) -> bool {
    let at = portal(RELAYS[0]);
    stage.run(
        0,
        &format!(
            "set_node {at} 'node.conn[0].iscsi.HeaderDigest' {digests}\n\
             set_node {at} 'node.conn[0].iscsi.DataDigest' {digests}\n\
             node {at} --login\ndisk sda\n\
             head -c 8M /dev/zero | tr '\\0' Z >/mnt/host/meant"
        ),
    );
    let before = relay.flipped();
    relay.flip_after(3 << 20);
    stage.run(0, "dd if=/mnt/host/meant of=/dev/sda bs=1M oflag=direct");
    assert_eq!(relay.flipped(), before + 1, "a bit was flipped");
    stage.run(0, &format!("node {at} --logout"));
    let meant = std::fs::read(stage.guests[0].share().join("meant")).expect("what was meant");
    stage.unit()[..meant.len()] == meant
}

#[test]
fn a_bit_flipped_on_the_way_is_found_by_the_digest() {
    if let Some(why) = unavailable() {
        skip!("kernel-iscsi-digest", "{why}");
    }
    let _turn = uml::turn();
    let mut stage = match Stage::new(1, 120) {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-iscsi-digest", "{why}"),
    };
    let relay = stage.relay(0);
    stage.run(0, &format!("node {} -o new", portal(RELAYS[0])));
    let api = Api::new(&stage.scratch.path().join("state"));
    let from = api::now();
    assert!(survives_flip(&mut stage, &relay, "CRC32C"), "the flipped bit is in the file");
    let to = api::now() + 1;
    api.wait_for_second(to);
    let aborted = api.count("iscsi.ops[status=ABORTED COMMAND]", (from, to));
    assert_eq!(aborted, 1, "for the data whose digest does not fit");
    // The flip is real: without digests it is not detected.
    assert!(!survives_flip(&mut stage, &relay, "None"), "nothing was flipped");
    assert!(stage.server.stop().success());
}

#[test]
fn one_of_two_paths_may_go() {
    if let Some(why) = unavailable() {
        skip!("kernel-iscsi-paths", "{why}");
    }
    let _turn = uml::turn();
    let mut stage = match Stage::new(1, 1) {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-iscsi-paths", "{why}"),
    };
    let relays = [0, 1].map(|number| stage.relay(number));
    stage.guests[0].install("blocks");
    let logins: String =
        RELAYS.map(|port| format!("node {0} -o new\nnode {0} --login\n", portal(port))).concat();
    stage.run(
        0,
        &format!(
            "load drivers/md/dm-mod drivers/md/dm-multipath drivers/md/dm-round-robin\n\
             {logins}disk sda\ndisk sdb\n\
             cmp /sys/block/sda/device/vpd_pg83 /sys/block/sdb/device/vpd_pg83\n\
             paths='1 1 round-robin 0 2 1 8:0 1 8:16 1'\n\
             dmsetup --noudevsync create paths --table \
             \"0 $(cat /sys/block/sda/size) multipath 1 queue_if_no_path 0 $paths\"\n\
             dmsetup mknodes\n\
             mkfs.ext4 -q -F /dev/mapper/paths\n\
             mount /dev/mapper/paths /mnt/nfs"
        ),
    );
    let task = stage.begin(0, "exec blocks writer /mnt/nfs/blocks /tmp/stop 2");
    let rounds = e2e::env_number("PLIMSOLL_ISCSI_PATH_ROUNDS", 1) as usize;
    for (relay, path) in relays.iter().zip(["8:0", "8:16"]).cycle().take(2 * rounds) {
        stage.guests[0].event("writer at");
        relay.set_cut(true);
        // dm has marked the path as failed, and the writer continues over the other one.
        stage.run(
            0,
            &format!("until dmsetup status paths | grep -q '{path} F'; do sleep 0.1; done"),
        );
        stage.guests[0].forget("writer at");
        stage.guests[0].event("writer at");
        stage.guests[0].event("writer at");
        relay.set_cut(false);
        let back = format!(
            "until [ \"$(cat /sys/block/{}/device/state)\" = running ]; do sleep 0.1; done\n\
             dmsetup message paths 0 reinstate_path {path}",
            if path == "8:0" { "sda" } else { "sdb" },
        );
        stage.run(0, &back);
    }
    let log = end_blocks(&mut stage, &task);
    stage.run(0, "umount /mnt/nfs\nfsck.ext4 -fn /dev/mapper/paths");
    println!("both paths were lost in turn, {}", log.trim());
    assert!(stage.server.stop().success());
}
