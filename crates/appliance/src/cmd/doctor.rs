//! `plimsoll doctor`: what this machine has, and what is used instead of what it lacks. Everything
//! is found by trying, not by versions or user ids.

use std::fs::{self, File};
use std::io::{Error, ErrorKind};
use std::path::Path;

use serde::Serialize;

use crate::cli::DoctorArgs;
use crate::out::{self, Failure};
use crate::sys;

/// One thing looked for.
#[derive(Debug, Serialize)]
struct Finding {
    id: &'static str,
    /// What it is good for.
    sentence: &'static str,
    /// `yes`, `no`, or `unknown`.
    state: &'static str,
    /// What was found.
    found: String,
    /// What is used without it.
    instead: &'static str,
    /// How to get it.
    advice: &'static str,
}

/// Runs the command.
///
/// # Errors
/// Only if the directory or the output cannot be used: something missing is an answer.
pub fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let dir = File::open(&args.dir)
        .map_err(|e| Failure::of(&format!("examine {}", args.dir.display()), &e))?;
    let findings = examine(&args.dir, &dir);
    if args.json {
        return out::print(&out::json(&findings));
    }
    out::print(&table(&args.dir, &findings))
}

fn table(dir: &Path, findings: &[Finding]) -> String {
    let mut text = format!("This machine, with {}\n\n", dir.display());
    for f in findings {
        let mark = match f.state {
            "yes" => "ok",
            "no" => "--",
            _ => "??",
        };
        text += &format!("  {mark}  {:<18} {}\n", f.id, f.found);
        if f.state != "yes" {
            text += &format!("      {:<18} {}\n", "", f.sentence);
            text += &format!("      {:<18} used instead: {}\n", "", f.instead);
            if !f.advice.is_empty() {
                text += &format!("      {:<18} to get it: {}\n", "", f.advice);
            }
        }
    }
    text
}

fn examine(path: &Path, dir: &File) -> Vec<Finding> {
    let (named, opened) = sys::try_handles(dir);
    let mut findings = machine();
    findings.push(tried(
        Finding {
            id: "kernel handles",
            sentence: "file handles that survive everything",
            state: "",
            found: String::new(),
            instead: "handles of inode and parent with a durable table",
            advice: "a file system that can be exported (ext4, xfs, btrfs, tmpfs)",
        },
        named,
    ));
    findings.push(tried(
        Finding {
            id: "privilege",
            sentence: "callers' own ids decide about rights, and files open by handle",
            state: "",
            found: String::new(),
            instead: "everything acts as the serving user",
            advice: "start as root, on a file system with kernel handles",
        },
        opened,
    ));
    findings.push(match sys::try_nowait(path) {
        Some(result) => tried(nowait(), result),
        None => Finding {
            state: "unknown",
            found: "no file can be made in this directory to try".into(),
            ..nowait()
        },
    });
    findings.push(rpc_with_tls());
    findings.extend(kernel());
    findings.extend(network());
    findings
}

/// In the program itself, so that it cannot be missing.
fn rpc_with_tls() -> Finding {
    Finding {
        id: "RPC with TLS",
        sentence: "NFS clients that ask for it (xprtsec=tls) are encrypted",
        state: "yes",
        found: "TLS 1.3, offered to every client that asks".into(),
        instead: "",
        advice: "",
    }
}

fn nowait() -> Finding {
    Finding {
        id: "RWF_NOWAIT",
        sentence: "cached reads are answered without a change of thread",
        state: "",
        found: String::new(),
        instead: "reads go to the pool of threads",
        advice: "ext4, xfs or btrfs; tmpfs needs none",
    }
}

fn kernel() -> Vec<Finding> {
    vec![
        tried(
            Finding {
                id: "RESOLVE_CACHED",
                sentence: "cached lookups are answered without a change of thread",
                state: "",
                found: String::new(),
                instead: "lookups go to the pool of threads",
                advice: "Linux 5.12 or newer",
            },
            sys::try_resolve_cached(),
        ),
        tried(
            Finding {
                id: "io_uring",
                sentence: "many file operations per system call",
                state: "",
                found: String::new(),
                instead: "a pool of threads",
                advice: "Linux 5.6 or newer, sysctl kernel.io_uring_disabled=0",
            },
            sys::try_io_uring(),
        ),
        tried(
            Finding {
                id: "eBPF",
                sentence: "statistics from inside the kernel",
                state: "",
                found: String::new(),
                instead: "the counters of /proc",
                advice: "root or CAP_BPF",
            },
            sys::try_bpf(),
        ),
        present(
            Finding {
                id: "kernel TLS",
                sentence: "encrypted files leave without a copy",
                state: "",
                found: String::new(),
                instead: "TLS in the program",
                advice: "modprobe tls",
            },
            has_word("/proc/sys/net/ipv4/tcp_available_ulp", "tls") || module("tls"),
        ),
    ]
}

fn network() -> Vec<Finding> {
    vec![
        present(
            Finding {
                id: "netem",
                sentence: "the kernel emulates long links",
                state: "",
                found: String::new(),
                instead: "our own link emulator",
                advice: "the kernel module sch_netem",
            },
            module("sch_netem"),
        ),
        present(
            Finding {
                id: "RDMA",
                sentence: "data moves between machines without their processors",
                state: "",
                found: String::new(),
                instead: "TCP",
                advice: "an RDMA adapter and its driver",
            },
            fs::read_dir("/sys/class/infiniband").is_ok_and(|mut d| d.next().is_some()),
        ),
    ]
}

fn machine() -> Vec<Finding> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let release = first_line("/proc/sys/kernel/osrelease");
    let memory = memory_bytes();
    let files = sys::file_limit().map_or(0, |(_, hard)| hard);
    let fact =
        |id, found| Finding { id, sentence: "", state: "yes", found, instead: "", advice: "" };
    vec![
        fact("kernel", release),
        fact("cores", cores.to_string()),
        Finding {
            sentence: "the flight recorder alone keeps 256 MiB",
            state: if memory >= 1 << 30 { "yes" } else { "no" },
            instead: "the same, but the page cache will be small",
            advice: "1 GiB or more",
            ..fact("memory", base::units::bytes(memory as f64))
        },
        Finding {
            sentence: "descriptors for connections and open files",
            state: if files >= 20_000 { "yes" } else { "no" },
            instead: "fewer connections and a smaller cache of open files",
            advice: "ulimit -Hn 65536, or LimitNOFILE= of the service manager",
            ..fact("open files", format!("at most {files}"))
        },
    ]
}

fn tried(finding: Finding, result: std::io::Result<()>) -> Finding {
    match result {
        Ok(()) => Finding { state: "yes", found: "works".into(), ..finding },
        Err(e) => Finding { state: "no", found: why_not(&e), ..finding },
    }
}

fn why_not(error: &Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => "not allowed for this user".into(),
        ErrorKind::Unsupported => "this kernel or file system does not have it".into(),
        _ if error.raw_os_error() == Some(libc::ENOSYS) => "this kernel does not have it".into(),
        _ => error.to_string(),
    }
}

fn present(finding: Finding, there: bool) -> Finding {
    let (state, found) = if there { ("yes", "present") } else { ("no", "absent") };
    Finding { state, found: found.into(), ..finding }
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or("unknown").to_owned()
}

fn has_word(path: &str, word: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.split_whitespace().any(|w| w == word))
}

/// Whether a kernel module is loaded, built in, or there to be loaded.
fn module(name: &str) -> bool {
    if Path::new("/sys/module").join(name).exists() {
        return true;
    }
    let dir = Path::new("/lib/modules").join(first_line("/proc/sys/kernel/osrelease"));
    ["modules.builtin", "modules.dep"].iter().any(|list| {
        fs::read_to_string(dir.join(list)).is_ok_and(|text| text.contains(&format!("/{name}.ko")))
    })
}

fn memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
