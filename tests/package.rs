//! The Debian package on a clean machine with systemd: installed it serves as its own user, with
//! its callers' rights; upgraded it keeps state and configuration; purged it leaves nothing.
//!
//! The first run makes that machine's root with debootstrap, which takes a minute.

#[path = "package/machine.rs"]
mod machine;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::process::succeed;
use e2e::server::binary;
use e2e::{has, is_root, skip};

use machine::Machine;

/// How long the journal may take to have what a service wrote.
const JOURNAL: Duration = e2e::patience(30);
/// A caller.
const ANNA: u32 = 1234;
/// Another caller.
const BERT: u32 = 77;

fn missing() -> Option<&'static str> {
    let tools = ["debootstrap", "dpkg-deb", "objdump", "unshare", "nsenter", "ip", "nfs-cat"];
    tools.into_iter().find(|tool| !has(tool))
}

/// Builds the package of the program under test.
fn package(out: &Path, version: &str) -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let own = std::env::current_exe().expect("this program's path");
    let manual = own.ancestors().nth(2).expect("the target folder").join("examples/manual");
    assert!(manual.exists(), "cargo build -p plimsoll --example manual makes {}", manual.display());
    let mut deb = Command::new(repository.join("packaging/deb"));
    deb.arg("--fast").args(["--version", version]);
    deb.arg("--binary").arg(binary()).arg("--manual").arg(manual).arg("--out").arg(out);
    let path = String::from_utf8(succeed(&mut deb)).expect("a path");
    PathBuf::from(path.trim())
}

/// The machine with a package installed on it.
struct Installed {
    machine: Machine,
}

impl Installed {
    fn install(&self, package: &Path) {
        let name = package.file_name().and_then(|n| n.to_str()).expect("a name");
        let there = format!("/root/{name}");
        fs::copy(package, self.machine.path(&there)).expect("copying the package");
        self.machine.run(&["dpkg", "--install", &there]);
        fs::remove_file(self.machine.path(&there)).expect("removing the copy");
    }

    fn active(&self) -> String {
        let show = ["systemctl", "show", "--property=ActiveState", "--value", "plimsoll"];
        self.machine.run(&show)
    }

    /// The service's process.
    fn pid(&self) -> String {
        self.machine.run(&["systemctl", "show", "--property=MainPID", "--value", "plimsoll"])
    }

    /// The journal, once it has this line: it takes what services write as it finds the time.
    fn journal_with(&self, line: &str) -> String {
        let deadline = Instant::now() + JOURNAL;
        loop {
            let journal = self.machine.run(&["journalctl", "--no-pager", "--output=cat"]);
            if journal.contains(line) {
                return journal;
            }
            assert!(Instant::now() < deadline, "{line:?} is not in the journal:\n{journal}");
        }
    }

    fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.machine.path(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// What a caller of this uid and gid gets of a file of the share.
    fn cat(&self, name: &str, uid: u32) -> Option<Vec<u8>> {
        let url = format!("nfs://127.0.0.1/export/srv/{name}?version=3&uid={uid}&gid={uid}");
        let out = self.machine.over_its_network(&["nfs-cat", &url]);
        out.status.success().then_some(out.stdout)
    }
}

/// The service runs as its own user, which alone may see its state; no log has its first password.
fn runs_as_its_own_user(on: &Installed) {
    assert_eq!(on.active(), "active");
    let uid: u32 = on.machine.run(&["id", "-u", "plimsoll"]).parse().expect("a uid");
    assert_ne!(uid, 0);
    let status = on.machine.run(&["cat", &format!("/proc/{}/status", on.pid())]);
    assert!(status.contains(&format!("Uid:\t{uid}\t{uid}\t")), "{status}");
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    let state = fs::metadata(on.machine.path("/var/lib/plimsoll")).expect("a state folder");
    assert_eq!((state.uid(), state.permissions().mode() & 0o7777), (uid, 0o700));

    let first = String::from_utf8(on.read("/var/lib/plimsoll/first-sign-in")).expect("text");
    let after = |what: &str| first.split_once(what).expect(what).1.split_whitespace().next();
    let journal = on.journal_with("plimsoll: serving /srv");
    for secret in ["?once=", "password "].map(after) {
        assert!(!journal.contains(secret.expect("a secret")), "{journal}");
    }
}

/// Each caller's own ids apply, and the caller owns what it creates.
fn acts_as_its_callers(on: &Installed) {
    on.machine.run(&["chmod", "1777", "/srv"]);
    let note = on.machine.path("/srv/note");
    fs::write(&note, "for Anna\n").expect("a file");
    fs::set_permissions(&note, fs::Permissions::from_mode(0o600)).expect("its mode");
    chown(&note, Some(ANNA), Some(ANNA)).expect("its owner");
    assert_eq!(on.cat("note", ANNA).as_deref(), Some(&b"for Anna\n"[..]));
    assert_eq!(on.cat("note", BERT), None, "nobody else's rights are the service's");

    let local = on.machine.outside().join("local");
    fs::write(&local, "made by Bert\n").expect("a local file");
    let url = format!("nfs://127.0.0.1/export/srv/made?version=3&uid={BERT}&gid={BERT}");
    let local = local.to_str().expect("a path");
    let copied = on.machine.over_its_network(&["nfs-cp", local, &url]);
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    let made = fs::metadata(on.machine.path("/srv/made")).expect("the copy");
    assert_eq!((made.uid(), made.gid()), (BERT, BERT));
}

/// Root's commands find the service, and a reload does not end it.
fn can_be_looked_after(on: &Installed) {
    on.machine.run(&["plimsoll", "nfs", "clients"]);
    let before = on.pid();
    on.machine.run(&["systemctl", "reload", "plimsoll"]);
    on.machine.run(&["plimsoll", "nfs", "clients"]);
    assert_eq!(on.pid(), before);
    on.machine.run(&["systemd-analyze", "verify", "--man=no", "plimsoll.service"]);
    // Tenths of systemd's points of exposure; what is left is what a file server must be able to.
    on.machine.run(&["systemd-analyze", "security", "--threshold=35", "plimsoll.service"]);
}

/// An upgrade restarts it; state, and a configuration that was changed, stay.
fn upgrades(on: &Installed, package: &Path) {
    let conf = on.machine.path("/etc/plimsoll/serve.conf");
    let mut text = fs::read_to_string(&conf).expect("the configuration");
    text += "PLIMSOLL_OPTIONS=--port-offset=0 --nfs-lease=60\n";
    fs::write(&conf, &text).expect("a change of it");
    let (secret, before) = (on.read("/var/lib/plimsoll/handle-secret"), on.pid());
    on.install(package);
    assert_eq!(on.active(), "active");
    assert_ne!(on.pid(), before, "the new program runs");
    let command = on.machine.run(&["cat", &format!("/proc/{}/cmdline", on.pid())]);
    assert!(command.contains("--nfs-lease=60"), "{command}");
    assert_eq!(fs::read_to_string(&conf).expect("the configuration"), text);
    assert_eq!(on.read("/var/lib/plimsoll/handle-secret"), secret);
    assert_eq!(on.cat("note", ANNA).as_deref(), Some(&b"for Anna\n"[..]));
    let version = on.machine.run(&["dpkg-query", "--show", "--showformat=${Version}", "plimsoll"]);
    assert_eq!(version, "0.1.0+1");
}

/// Removed, configuration and state stay; purged, nothing does but what was served.
fn goes(on: &Installed) {
    // As after a change of the network: what it has made stays, and the removal prints so.
    let made = "mkdir -p /var/lib/plimsoll-host/dhcp && cd /var/lib/plimsoll-host && \
                touch network.confirmed dhcp/eth0";
    on.machine.run(&["sh", "-c", made]);
    let printed = on.machine.run(&["sh", "-c", "dpkg --remove plimsoll 2>&1"]);
    let sentence = "Links, addresses and routes that Plimsoll has made stay until the next boot.";
    assert!(printed.contains(sentence), "{printed}");
    assert!(printed.contains("Addresses by DHCP stay until their leases end."), "{printed}");
    assert_eq!(on.active(), "inactive");
    assert!(on.machine.path("/etc/plimsoll/serve.conf").exists());
    assert!(on.machine.path("/var/lib/plimsoll/handle-secret").exists());

    on.machine.run(&["dpkg", "--purge", "plimsoll"]);
    let left = on.machine.run(&["find", "/", "-xdev", "-name", "*plimsoll*"]);
    assert_eq!(left, "");
    let left = on.machine.run(&["find", "/run", "/tmp", "/var/tmp", "-name", "*plimsoll*"]);
    assert_eq!(left, "");
    for database in ["passwd", "group"] {
        assert!(!on.machine.succeeds(&["getent", database, "plimsoll"]), "{database}");
    }
    assert_eq!(on.read("/srv/note"), b"for Anna\n", "what was served is the owner's");
}

#[test]
fn the_package_installs_serves_upgrades_and_goes() {
    if !is_root() {
        skip!("package", "needs root");
    }
    if let Some(tool) = missing() {
        skip!("package", "{tool} is not installed");
    }
    let machine = match Machine::boot() {
        Ok(machine) => machine,
        Err(why) => skip!("package", "{why}"),
    };
    let out = machine.outside().join("packages");
    let (first, second) = (package(&out, "0.1.0"), package(&out, "0.1.0+1"));
    let again = package(&machine.outside().join("again"), "0.1.0");
    assert!(fs::read(&first).ok() == fs::read(again).ok(), "the same tree, the same package");

    let on = Installed { machine };
    on.install(&first);
    runs_as_its_own_user(&on);
    acts_as_its_callers(&on);
    can_be_looked_after(&on);
    upgrades(&on, &second);
    goes(&on);
}

/// What the container file takes from the tree is there, and the program knows the options that it
/// passes. A build needs images from a registry, which a test does not access.
#[test]
fn the_container_file_fits_the_tree() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |name: &str| fs::read_to_string(repository.join(name)).expect(name);
    let (file, ignored) = (read("packaging/Containerfile"), read(".containerignore"));
    let mut copied = 0;
    for line in file.lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from=")) {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        for source in &words[..words.len() - 1] {
            assert!(repository.join(source).exists(), "{line}");
            let left_out = ignored.lines().any(|one| one == source.trim_end_matches('/'));
            assert!(!left_out, "{line}: .containerignore leaves it out");
            copied += 1;
        }
    }
    assert!(copied >= 3, "{file}");

    let version = read("Cargo.toml");
    let version = version.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let image = format!("library/rust:{}-", version.expect("a version").trim_matches('"'));
    assert!(file.contains(&image), "not built with {image}");

    let help = succeed(Command::new(binary()).args(["serve", "--help"]));
    let help = String::from_utf8(help).expect("text");
    let said =
        file.lines().filter(|line| ["ENTRYPOINT ", "CMD "].iter().any(|s| line.starts_with(s)));
    let said: Vec<&str> =
        said.flat_map(|line| line.split('"')).filter(|w| w.starts_with("--")).collect();
    assert_eq!(said, ["--state", "--port-offset", "--address"]);
    for option in said {
        assert!(help.contains(option), "{option} is no option of serve");
    }
}
