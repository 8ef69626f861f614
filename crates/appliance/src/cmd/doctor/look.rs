//! How each thing is looked for: by trying it, where it can be tried.

use std::fs::{self, File};
use std::io::Result;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use base::units;
use host::Root;
use host::inventory::Inventory;
use host::segments::{Observer, Tier, Unavailable};
use serve::transport::raise_descriptor_limit;
use vfs::host::acting;
use vfs::host::sys::{self as calls, extents, xattr};

use super::Target;
use super::finding::{Outcome, State, why_not};
use crate::cmd::memory;
use crate::sys;

/// Some thousand connections and as many open files.
const DESCRIPTORS: u64 = 20_000;
/// Statistics of a busy year, keys and configuration fit.
const STATE_ROOM: u64 = 1 << 30;
/// Below that a few clients with delegations use all watches up.
const WATCHES_FEW: u64 = 8192;
/// Longest access control list that Linux keeps.
const ACL_MAX: usize = 65_536;
/// Bytes that every file system can share: its block.
const BLOCK: usize = 65_536;
/// What cannot be tried because no file can be made in the directory.
const NO_FILE: &str = "no test file can be created in this directory";
/// Names of the rights that acting as others takes, by bit (capabilities(7)).
const RIGHTS: [(u32, &str); 7] = [
    (0, "CHOWN"),
    (1, "DAC_OVERRIDE"),
    (2, "DAC_READ_SEARCH"),
    (3, "FOWNER"),
    (4, "FSETID"),
    (6, "SETGID"),
    (7, "SETUID"),
];

/// The first line of a file of the kernel's.
pub fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or("unknown").to_owned()
}

/// Whether a kernel module is loaded, built in, or there to be loaded.
pub fn module(name: &str) -> bool {
    if Path::new("/sys/module").join(name).exists() {
        return true;
    }
    let dir = Path::new("/lib/modules").join(first_line("/proc/sys/kernel/osrelease"));
    ["modules.builtin", "modules.dep"].iter().any(|list| {
        fs::read_to_string(dir.join(list)).is_ok_and(|text| text.contains(&format!("/{name}.ko")))
    })
}

/// A file without a name, gone when it is closed (O_TMPFILE).
pub fn unnamed_file(place: &Target<'_>) -> Result<File> {
    File::options().read(true).write(true).custom_flags(libc::O_TMPFILE).open(place.path)
}

pub fn cores(_: &Target<'_>) -> Outcome {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Outcome::is(true, cores.to_string())
}

pub fn memory(_: &Target<'_>) -> Outcome {
    let (Some(memory), sizes) = memory::here() else {
        return Outcome::unknown("/proc/meminfo cannot be read");
    };
    let found = format!("{}, {}", units::bytes(memory.bytes as f64), memory.bound);
    match sizes.reduced() {
        None => Outcome::is(true, found),
        Some(reduced) => Outcome::is(false, format!("{found}: {reduced}")),
    }
}

pub fn descriptors(_: &Target<'_>) -> Outcome {
    let most = raise_descriptor_limit().unwrap_or(0);
    Outcome::is(most >= DESCRIPTORS, format!("at most {most}"))
}

pub fn clock(_: &Target<'_>) -> Outcome {
    match sys::clock_is_kept() {
        Ok(true) => Outcome::is(true, "the clock is synchronised"),
        Ok(false) => Outcome::is(false, "the clock is not synchronised"),
        Err(e) => Outcome::unknown(e.to_string()),
    }
}

pub fn callers(_: &Target<'_>) -> Outcome {
    let own = acting::own();
    if acting::can_switch() {
        return Outcome::is(true, format!("uid {} can impersonate callers", own.uid));
    }
    let rights = calls::capabilities().map_or(0, |own| own.effective);
    let lacks = RIGHTS.iter().filter(|(bit, _)| rights >> bit & 1 == 0);
    let lacks = lacks.map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    let found = if lacks.is_empty() { " cannot impersonate callers" } else { ", without " };
    Outcome::is(false, format!("uid {}{found}{lacks}", own.uid))
}

/// Whether files have kernel handles, and whether this process may open by them.
pub fn handles(place: &Target<'_>) -> Outcome {
    let dir = place.dir.as_fd();
    let handle = calls::handle_of(dir, c"");
    let opened = handle.and_then(|handle| calls::open_by_handle(dir, &handle, libc::O_PATH));
    Outcome::tried(opened.map(drop))
}

pub fn nowait(place: &Target<'_>) -> Outcome {
    let dir = calls::statfs(place.dir.as_fd());
    if dir.is_ok_and(|stats| stats.f_type == libc::TMPFS_MAGIC) {
        return Outcome::is(true, "not needed: files are in memory");
    }
    let file = unnamed_file(place).ok().filter(|file| file.write_all_at(&[1], 0).is_ok());
    file.map_or(Outcome::unknown(NO_FILE), |file| {
        Outcome::tried(calls::read_at(file.as_fd(), &mut [0], 0, true).map(drop))
    })
}

pub fn cached_lookups(_: &Target<'_>) -> Outcome {
    const RESOLVE_CACHED: u64 = 0x20;
    Outcome::tried(calls::open_at2(calls::here(), c"/", libc::O_PATH, RESOLVE_CACHED).map(drop))
}

pub fn watches(place: &Target<'_>) -> Outcome {
    if let Err(e) = sys::try_watch(place.path) {
        return Outcome::tried(Err(e));
    }
    let most: u64 = first_line("/proc/sys/fs/inotify/max_user_watches").parse().unwrap_or(0);
    Outcome::is(most >= WATCHES_FEW, format!("at most {most}"))
}

pub fn attributes(place: &Target<'_>) -> Outcome {
    let Ok(file) = unnamed_file(place) else { return Outcome::unknown(NO_FILE) };
    Outcome::tried(xattr::set(file.as_fd(), c"user.plimsoll-doctor", b"1", 0))
}

pub fn access_lists(place: &Target<'_>) -> Outcome {
    match xattr::get(place.dir.as_fd(), c"system.posix_acl_access", ACL_MAX) {
        Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => Outcome::is(false, why_not(&e)),
        // ENODATA: the file system supports access lists, this directory has none.
        Err(e) if e.raw_os_error() != Some(libc::ENODATA) => Outcome::unknown(e.to_string()),
        _ => Outcome::is(true, "works"),
    }
}

/// Clones an unnamed file.
pub fn shared_blocks(place: &Target<'_>) -> Outcome {
    match (unnamed_file(place), unnamed_file(place)) {
        (Ok(from), Ok(to)) if from.write_all_at(&[1; BLOCK], 0).is_ok() => {
            Outcome::tried(extents::clone((from.as_fd(), 0), (to.as_fd(), 0), 0))
        }
        _ => Outcome::unknown(NO_FILE),
    }
}

pub fn quotas(place: &Target<'_>) -> Outcome {
    match sys::quotas_are_on(place.dir) {
        Ok(true) => Outcome::is(true, "on for users"),
        Ok(false) => Outcome::is(false, "off"),
        Err(e) => Outcome::unknown(why_not(&e)),
    }
}

/// The state may not exist yet: then what is above it counts.
pub fn room(place: &Target<'_>) -> Outcome {
    let above = place.state.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let free = match calls::bytes_free(above) {
        Ok(free) => free,
        Err(e) => return Outcome::unknown(e.to_string()),
    };
    let found = format!("{} free for {}", units::bytes(free as f64), place.state.display());
    Outcome::is(free >= STATE_ROOM, found)
}

/// Of all devices that are up and lead out of the machine.
pub fn offloads(_: &Target<'_>) -> Outcome {
    let nics = Inventory::read(&Root::default()).nics;
    let outside = nics.iter().filter(|nic| nic.driver.is_some() && nic.state == "up");
    let asked = outside.filter_map(|nic| Some((&nic.name, sys::offloads(&nic.name).ok()?)));
    let asked: Vec<(&String, (bool, bool))> = asked.collect();
    if asked.is_empty() {
        return Outcome::unknown("no network device reports it");
    }
    let words = |(name, (tso, gro)): &(&String, (bool, bool))| {
        let with = |there: &bool| if *there { "with" } else { "without" };
        format!("{name} {} TSO, {} GRO", with(tso), with(gro))
    };
    let all = asked.iter().all(|(_, (tso, gro))| *tso && *gro);
    Outcome::is(all, asked.iter().map(words).collect::<Vec<_>>().join("; "))
}

/// The programs are loaded as `serve` does, and are gone with the answer.
pub fn segments() -> Outcome {
    match Observer::start(&Root::default()) {
        Ok(_) => Outcome::is(true, Tier::Programs.to_string()),
        Err(why) => {
            let rights = matches!(why, Unavailable::Rights);
            let advice = rights.then_some("root, or CAP_BPF and CAP_PERFMON");
            Outcome(State::No, Tier::Counters(why).to_string(), advice)
        }
    }
}

/// TLS is in the program.
pub fn tls(_: &Target<'_>) -> Outcome {
    let aes = fs::read_to_string("/proc/cpuinfo")
        .is_ok_and(|text| text.split_whitespace().any(|word| word == "aes"));
    let by = if aes { "in hardware" } else { "in software" };
    Outcome::is(true, format!("1.3, in user space; AES {by}"))
}
