//! What version 4.2 adds, as the tools of a real Linux client use it: sparse files, clones and
//! copies that the server makes, extended attributes, access control lists. The host looks at the
//! files of the share directly, and the client's own counts show which operations it sent.

use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::netns::{HOST, Namespace};
use e2e::process::succeed;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::uml::{self, Guest};
use e2e::{has, skip};

/// Tools of the guest that only these checks need.
const TOOLS: [&str; 6] = ["xfs_io", "setfattr", "setfacl", "nfs4_getfacl", "fallocate", "filefrag"];

/// A file system of its own that can share blocks between files, on a loop device.
struct Disk {
    place: PathBuf,
}

impl Disk {
    /// The first of btrfs and xfs that this machine can make and mount.
    ///
    /// # Errors
    /// Why there is none.
    fn new(scratch: &Scratch) -> Result<Self, String> {
        let (image, place) = (scratch.path().join("image"), scratch.folder("disk", None));
        let mut why = String::new();
        // XFS allocates more than is written, which it gives back later: the sizes are compared.
        for (kind, options) in [("btrfs", "loop"), ("xfs", "loop,allocsize=64k")] {
            let file = std::fs::File::create(&image).expect("an image");
            // Room for btrfs's transactions; the file is sparse.
            file.set_len(2 << 30).expect("a sparse file");
            let mut mkfs = Command::new(format!("mkfs.{kind}"));
            let mut mount = Command::new("mount");
            mount.args(["-t", kind, "-o", options]).arg(&image).arg(&place);
            let tried = tool(mkfs.arg("-q").arg(&image)).and_then(|()| tool(&mut mount));
            match tried {
                Ok(()) => return Ok(Self { place }),
                Err(error) => why += &format!("{kind}: {error}; "),
            }
        }
        Err(why)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(why) = tool(Command::new("umount").arg(&self.place)) {
            println!("left mounted: {why}");
        }
    }
}

fn tool(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let why = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", why.trim())) }
}

/// A guest that has mounted a share by 4.2, and the share as the host sees it.
struct Stage {
    guest: Guest,
    server: Server,
    dir: PathBuf,
    _namespace: Namespace,
}

impl Stage {
    fn new(scratch: &Scratch, dir: PathBuf) -> Result<Self, String> {
        let namespace = uml::namespace(1)?;
        let state = scratch.folder("state", None);
        let mut options = Options::new(&dir, &state);
        options.address = HOST;
        options.namespace = Some(&namespace);
        let server = Server::start(&options);
        let mut guest = Guest::boot(&namespace, 0, scratch.path());
        guest.mount("nfs", server.nfs_port(), &server.export(), "vers=4.2");
        Ok(Self { guest, server, dir, _namespace: namespace })
    }

    /// Runs a script in the share's root; every line must succeed.
    fn run(&mut self, script: &str) -> String {
        self.guest.run(&format!("set -x; cd /mnt/nfs\n{script}"))
    }

    /// Runs a script in the share's root that prints one thing.
    fn ask(&mut self, script: &str) -> String {
        self.guest.run(&format!("cd /mnt/nfs\n{script}")).trim().to_owned()
    }

    /// How many of this operation the client has had answered.
    fn count(&mut self, op: &str) -> u64 {
        let awk = format!("awk '/^\t *{op}:/ {{ print $3 }}' /proc/self/mountstats");
        self.ask(&awk).parse().expect("a count")
    }

    /// Makes sure that the client has used an operation.
    fn has_used(&mut self, op: &str) {
        assert!(self.count(op) > 0, "the client never sent {op}\n{}", self.guest.said());
    }

    /// The output of a program of the host for a file.
    fn host(&self, program: &str, args: &[&str], file: &str) -> String {
        let mut command = Command::new(program);
        let said = succeed(command.args(args).arg(file).current_dir(&self.dir));
        String::from_utf8_lossy(&said).into_owned()
    }
}

/// Holes cost nothing, are found, are made, and a copy keeps them.
fn sparse_files(stage: &mut Stage) {
    stage.run(
        "truncate -s 1G sparse
         printf x | dd of=sparse bs=1 seek=500000000 conv=notrunc,fsync 2>/dev/null
         [ $(stat -c %s sparse) = 1073741824 ]
         [ $(du -k sparse | cut -f1) -lt 1024 ]
         xfs_io -r -c 'seek -a -r 0' sparse
         set -- $(xfs_io -r -c 'seek -d 0' sparse | awk '/DATA/ { print $2 }')
         [ $1 -gt 499000000 ] && [ $1 -le 500000000 ]
         set -- $(xfs_io -r -c 'seek -h 500000000' sparse | awk '/HOLE/ { print $2 }')
         [ $1 -gt 500000000 ] && [ $1 -lt 501000000 ]
         cp --sparse=auto --reflink=never sparse again
         sync -f again
         [ $(stat -c %s again) = 1073741824 ]
         [ $(du -k again | cut -f1) -lt 1024 ]
         [ \"$(od -An -c -j 499999999 -N 3 again | tr -d ' ')\" = '\\0x\\0' ]",
    );
    stage.has_used("SEEK");
    stage.run(
        "dd if=/dev/urandom of=solid bs=1M count=8 conv=fsync 2>/dev/null
         fallocate -p -o 1M -l 6M solid
         sync -f solid
         [ $(stat -c %s solid) = 8388608 ]
         [ $(du -k solid | cut -f1) -lt 3072 ]
         head -c 6M /dev/zero >/tmp/zeros
         tail -c +1048577 solid | head -c 6M | cmp - /tmp/zeros
         fallocate -l 16M room
         [ $(stat -c %s room) = 16777216 ]
         [ $(du -k room | cut -f1) -ge 16384 ]
         head -c 6M room | cmp - /tmp/zeros",
    );
    stage.has_used("DEALLOCATE");
    stage.has_used("ALLOCATE");
    let du = stage.host("du", &["-k"], "again");
    let kilobytes = du.split_whitespace().next().and_then(|k| k.parse::<u64>().ok());
    assert!(kilobytes.is_some_and(|k| k < 1024), "on the host: {du}");
}

/// Which bytes there are does not depend on how they are read; see also `kernel_read_plus.rs`.
fn reads_with_holes(stage: &mut Stage) {
    stage.run(
        "truncate -s 4M mixed
         for at in 0 1 5 100 300 301; do
             head -c 4096 /dev/urandom | dd of=mixed bs=4096 seek=$at conv=notrunc,fsync 2>/dev/null
         done
         sync -f mixed
         echo 3 >/proc/sys/vm/drop_caches
         sha256sum <mixed >/mnt/host/mixed.sum
         dd if=mixed of=/tmp/direct iflag=direct bs=64k 2>/dev/null
         cmp mixed /tmp/direct",
    );
    let seen = std::fs::read_to_string(stage.guest.share().join("mixed.sum")).expect("a sum");
    let there = stage.host("sha256sum", &[], "mixed");
    let first = |text: &str| text.split_whitespace().next().unwrap_or_default().to_owned();
    assert_eq!(first(&seen), first(&there));
}

/// The server copies, whatever the file system.
fn copies(stage: &mut Stage) {
    stage.run(
        "dd if=/dev/urandom of=original bs=1M count=24 conv=fsync 2>/dev/null
         cp --reflink=auto original copied
         cmp original copied
         xfs_io -f -c 'copy_range -s 1000 -d 77 -l 5000000 original' part
         [ $(stat -c %s part) = 5000077 ]
         tail -c +1001 original | head -c 5000000 >/tmp/wanted
         tail -c +78 part | cmp - /tmp/wanted",
    );
    stage.has_used("COPY");
}

/// A clone shares its blocks with the original, and goes its own way after it is changed.
fn clones(stage: &mut Stage) {
    stage.run(
        "cp --reflink=always original cloned
         cmp original cloned
         sync -f cloned",
    );
    stage.has_used("CLONE");
    let extents = stage.host("filefrag", &["-v"], "cloned");
    assert!(extents.contains("shared"), "{extents}");
    stage.run(
        "sha256sum original >/tmp/original.sum
         dd if=/dev/urandom of=cloned bs=4k count=3 seek=100 conv=notrunc,fsync 2>/dev/null
         ! cmp -s original cloned
         sha256sum -c --quiet /tmp/original.sum",
    );
}

/// User attributes travel both ways, with any bytes, and the list of them.
fn extended_attributes(stage: &mut Stage) {
    stage.run(
        "mkdir labelled; echo text >labelled/file
         for name in labelled labelled/file; do
             setfattr -n user.colour -v green $name
             setfattr -n user.bytes -v 0x00ff0a00 $name
             [ \"$(getfattr --only-values -n user.colour $name)\" = green ]
             setfattr -n user.colour -v blue $name
             [ \"$(getfattr --only-values -n user.colour $name)\" = blue ]
             [ $(getfattr $name | grep -c ^user.) = 2 ]
             ! getfattr -n user.none $name
         done
         setfattr -x user.bytes labelled/file
         [ $(getfattr labelled/file | grep -c ^user.) = 1 ]
         ! setfattr -x user.bytes labelled/file
         ! setfattr -n trusted.no -v x labelled/file
         setfattr -n user.long -v $(head -c 1500 /dev/zero | tr '\\0' x) labelled/file
         [ $(getfattr --only-values -n user.long labelled/file | wc -c) = 1500 ]
         cp --preserve=xattr labelled/file labelled/other
         [ \"$(getfattr --only-values -n user.colour labelled/other)\" = blue ]",
    );
    for op in ["SETXATTR", "GETXATTR", "LISTXATTRS", "REMOVEXATTR"] {
        stage.has_used(op);
    }
    let seen = stage.host("getfattr", &["-d", "-e", "hex"], "labelled");
    assert!(seen.contains("user.bytes=0x00ff0a00") && seen.contains("user.colour=0x626c7565"));
    stage.host("setfattr", &["-n", "user.colour", "-v", "from the host"], "labelled/other");
    let seen = "echo 3 >/proc/sys/vm/drop_caches; \
                getfattr --only-values -n user.colour labelled/other";
    assert_eq!(stage.ask(seen), "from the host");
}

/// POSIX lists of the share are seen as NFSv4's and may be changed as such.
fn access_control_lists(stage: &mut Stage) {
    stage.run("mkdir lists; echo text >lists/file; chmod 640 lists/file");
    stage.host("setfacl", &["-m", "u:1234:rw,g:77:r"], "lists/file");
    let list = stage.run("echo 3 >/proc/sys/vm/drop_caches; nfs4_getfacl lists/file");
    let entry = |who: &str| list.lines().find(|line| line.contains(who)).map(str::to_owned);
    let user = entry(":1234:").unwrap_or_else(|| panic!("{list}"));
    let rights = user.rsplit(':').next().unwrap_or_default();
    assert!(user.starts_with("A::") && rights.contains('r') && rights.contains('w'), "{list}");
    let group = entry(":77:").unwrap_or_else(|| panic!("{list}"));
    assert!(
        group.starts_with("A:g:") && !group.rsplit(":").next().unwrap_or("w").contains("w"),
        "{list}"
    );

    stage.run("nfs4_setfacl -a A::4321:R lists/file; nfs4_getfacl lists/file");
    let there = stage.host("getfacl", &["-n", "-p"], "lists/file");
    for line in ["user:4321:r--", "user:1234:rw-", "group:77:r--", "other::---"] {
        assert!(there.contains(line), "{line}\n{there}");
    }
    // A folder's default list is what its new files begin with, and the umask is not (RFC 8275).
    stage.host("setfacl", &["-d", "-m", "u::rwx,u:1234:rwx,g::rwx,o::r,m::rwx"], "lists");
    stage.run(
        "umask 077
         touch lists/inherits plain
         [ $(stat -c %a plain) = 600 ]
         [ $(stat -c %a lists/inherits) = 664 ]
         nfs4_getfacl lists/inherits | grep ':1234:'
         nfs4_getfacl lists | grep '^A:.*i.*:1234:'",
    );
}

#[test]
fn a_linux_client_has_what_version_4_2_adds() {
    if let Some(why) = uml::unavailable() {
        skip!("kernel-v4-features", "{why}");
    }
    let missing: Vec<_> = TOOLS.into_iter().filter(|tool| !has(tool)).collect();
    if !missing.is_empty() {
        skip!("kernel-v4-features", "not installed: {}", missing.join(", "));
    }
    let _turn = uml::turn();
    let scratch = Scratch::new("kernel-v4-features");
    let disk = Disk::new(&scratch);
    let share = disk.as_ref().map_or_else(|_| scratch.path(), |disk: &Disk| Path::new(&disk.place));
    let dir = share.join("data");
    e2e::scratch::make_folder(&dir, None);
    let mut stage = match Stage::new(&scratch, dir) {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-v4-features", "{why}"),
    };
    sparse_files(&mut stage);
    reads_with_holes(&mut stage);
    copies(&mut stage);
    match &disk {
        Ok(_) => clones(&mut stage),
        Err(why) => println!("SKIP kernel-v4-clones: {why}"),
    }
    extended_attributes(&mut stage);
    access_control_lists(&mut stage);
    assert!(stage.server.stop().success(), "SIGTERM ends it cleanly");
}
