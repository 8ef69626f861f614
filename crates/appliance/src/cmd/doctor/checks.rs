//! Everything that is looked for, in the order of the report.

use base::protocol::Service;
use base::protocol::ports::{ADMIN, PORTMAP};

use super::finding::Use::{Later, Serving, SomeClients};
use super::finding::{Check, Outcome};
use super::look::{self, first_line};
use super::ports::port;
use crate::sys;

/// The checks.
pub static CHECKS: [Check; 26] = [
    // The machine itself.
    Check::new("kernel", Serving, |_| Outcome::is(true, first_line("/proc/sys/kernel/osrelease"))),
    Check::new("cores", Serving, look::cores),
    Check::new("memory", Serving, look::memory)
        .good_for(
            "the flight recorder keeps 256 MiB, and each service may hold as much of requests",
        )
        .instead("both are smaller, in proportion to the memory that this process may use")
        .advice("4 GiB or more, and no less in MemoryMax= of the service manager"),
    Check::new("open files", Serving, look::descriptors)
        .good_for("descriptors for connections and open files")
        .instead("fewer connections and a smaller cache of open files")
        .advice("ulimit -Hn 65536, or LimitNOFILE= of the service manager"),
    Check::new("time", Serving, look::clock)
        .good_for("times of files and statistics agree between machines")
        .instead("this machine's own clock, as it goes")
        .advice("chrony, or timedatectl set-ntp true"),
    // What this process may do.
    Check::new("callers' ids", Serving, look::callers)
        .good_for("each caller's own uid, gid and groups decide about rights")
        .instead("everything acts as the serving user")
        .advice("start as root, or as the installed service"),
    Check::new("kernel handles", Serving, look::handles)
        .good_for("file handles that survive everything")
        .instead("handles of inode and parent with a durable table")
        .advice(
            "CAP_DAC_READ_SEARCH, and a file system that can be exported (ext4, xfs, btrfs, tmpfs)",
        ),
    // What the file system of the directory can do, and room for the state.
    Check::new("RWF_NOWAIT", Serving, look::nowait)
        .good_for("cached reads are answered without a change of thread")
        .instead("reads go to the pool of threads")
        .advice("a directory on ext4, xfs or btrfs"),
    Check::new("RESOLVE_CACHED", Serving, look::cached_lookups)
        .good_for("cached lookups are answered without a change of thread")
        .instead("lookups go to the pool of threads")
        .advice("Linux 5.12 or newer"),
    Check::new("inotify watches", Serving, look::watches)
        .good_for("clients with delegations hear of what programs on this machine change")
        .instead("files that cannot be watched are not delegated")
        .advice("sysctl fs.inotify.max_user_watches=524288"),
    Check::new("attributes", SomeClients, look::attributes)
        .good_for("NFSv4.2 clients keep extended attributes of their own with files")
        .instead("clients are told that there are none")
        .advice("ext4, xfs or btrfs; tmpfs from Linux 6.6 on"),
    Check::new("access lists", SomeClients, look::access_lists)
        .good_for(
            "POSIX access control lists of files decide about rights, and NFSv4 clients see them",
        )
        .instead("the permission bits alone decide")
        .advice("a file system mounted with acl"),
    Check::new("shared blocks", SomeClients, look::shared_blocks)
        .good_for("NFSv4.2 clients clone and copy files without moving data")
        .instead("COPY moves the data on this machine, and CLONE is refused")
        .advice("xfs with reflink=1, or btrfs"),
    // Nothing is missing where nobody has asked for them.
    Check::new("quotas", SomeClients, look::quotas)
        .good_for("each user may write what the file system's quota leaves him, and is told so")
        .instead("the room on the file system is everybody's")
        .advice("mount with usrquota, quotaon(8)"),
    Check::new("O_TMPFILE", Later, |place| Outcome::tried(look::unnamed_file(place).map(drop)))
        .good_for("files could be complete before they have a name")
        .instead("files are made under their names; this version does nothing else")
        .advice("ext4, xfs, btrfs or tmpfs"),
    Check::new("room for state", Serving, look::room)
        .good_for("statistics, keys and configuration are kept, 1 GiB for a busy year")
        .instead("statistics are lost when the file system is full")
        .advice("--state DIR on a larger file system"),
    // The ports that would be listened on.
    Check::new("NFS port", Serving, |place| port(place, Service::EXPORTING[0].ports()[0]))
        .good_for("clients find NFS where they look for it")
        .instead("nothing: serving refuses to start")
        .advice(OTHER_PORT),
    Check::new("admin port", Serving, |place| port(place, ADMIN))
        .good_for("the browser interface and the API answer")
        .instead("nothing: serving refuses to start")
        .advice(OTHER_PORT),
    Check::new("port mapper", Serving, |place| port(place, PORTMAP))
        .good_for("NFSv3 clients find the service for locks")
        .instead("NFSv3 clients mount with nolock")
        .advice(OTHER_PORT),
    // Network devices, and what the kernel has for long links and remote memory.
    Check::new("NIC offloads", Serving, look::offloads)
        .good_for("packets are cut and joined by the network device or its driver")
        .instead("the processor does it, which costs it more per byte")
        .advice("ethtool -K DEVICE tso on gro on"),
    Check::new("netem", Later, |_| Outcome::present(look::module("sch_netem")))
        .good_for("the kernel could emulate long links for the lab")
        .instead("links as they are")
        .advice("the kernel module sch_netem"),
    Check::new("RDMA", Later, |_| Outcome::present(look::is_filled("/sys/class/infiniband")))
        .good_for("data could move between machines without their processors")
        .instead("TCP; this version uses nothing else")
        .advice("an RDMA adapter and its driver"),
    Check::new("TLS", Serving, look::tls)
        .good_for("NFS clients that ask for it (xprtsec=tls), and the browser, are encrypted"),
    // What the kernel could do more. None of it is used by this version's serving.
    Check::new("kernel TLS", Later, |_| Outcome::tried(sys::try_kernel_tls()))
        .good_for("encrypted files could leave without a copy")
        .instead("TLS in the program; this version uses nothing else")
        .advice("modprobe tls"),
    Check::new("io_uring", Later, |_| Outcome::tried(sys::try_io_uring()))
        .good_for("many file operations could go with one system call")
        .instead("a pool of threads; this version uses nothing else")
        .advice("Linux 5.6 or newer, sysctl kernel.io_uring_disabled=0"),
    Check::new("eBPF", Later, |_| Outcome::tried(sys::try_bpf()))
        .good_for("statistics could come from inside the kernel")
        .instead("the counters of /proc; this version uses nothing else")
        .advice("root or CAP_BPF"),
];

const OTHER_PORT: &str = "end what has it, or --port-offset N";
