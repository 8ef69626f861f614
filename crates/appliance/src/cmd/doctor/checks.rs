//! Everything that is looked for, in the order of the report.

use base::protocol::Service;
use base::protocol::ports::{ADMIN, PORTMAP};

use super::finding::Use::{Optional, Serving, SomeClients};
use super::finding::{Check, Outcome};
use super::look::{self, first_line};
use super::ports::port;
use super::rdma;
use crate::sys;

/// The checks.
pub static CHECKS: [Check; 28] = [
    // The machine itself.
    Check::new("kernel", Serving, |_| Outcome::is(true, first_line("/proc/sys/kernel/osrelease"))),
    Check::new("cores", Serving, look::cores),
    Check::new("memory", Serving, look::memory)
        .good_for(
            "the flight recorder has 256 MiB, and so have the request buffers of each service",
        )
        .instead("both are reduced in proportion to the available memory")
        .advice("4 GiB or more; check MemoryMax= of the service manager"),
    Check::new("open files", Serving, look::descriptors)
        .good_for("descriptors for connections and open files")
        .instead("fewer connections and a smaller cache of open files")
        .advice("ulimit -Hn 65536, or LimitNOFILE= of the service manager"),
    Check::new("time", Serving, look::clock)
        .good_for("file times and statistics agree between machines")
        .instead("unsynchronised local clock")
        .advice("chrony, or timedatectl set-ntp true"),
    // What this process may do.
    Check::new("callers' ids", Serving, look::callers)
        .good_for("access is checked with each caller's uid, gid and groups")
        .instead("all access uses the identity of the server")
        .advice("start as root or as the installed service"),
    Check::new("kernel handles", Serving, look::handles)
        .good_for("persistent file handles")
        .instead("handles from inode and parent, with a durable table")
        .advice(
            "CAP_DAC_READ_SEARCH, and a file system that can be exported (ext4, xfs, btrfs, tmpfs)",
        ),
    // What the file system of the directory can do, and room for the state.
    Check::new("RWF_NOWAIT", Serving, look::nowait)
        .good_for("cached reads are served without a thread switch")
        .instead("reads use the thread pool")
        .advice("a directory on ext4, xfs or btrfs"),
    Check::new("RESOLVE_CACHED", Serving, look::cached_lookups)
        .good_for("cached lookups are served without a thread switch")
        .instead("lookups use the thread pool")
        .advice("Linux 5.12 or newer"),
    Check::new("inotify watches", Serving, look::watches)
        .good_for("delegations are recalled when local programs change files")
        .instead("no delegations on files that cannot be watched")
        .advice("sysctl fs.inotify.max_user_watches=524288"),
    Check::new("attributes", SomeClients, look::attributes)
        .good_for("NFSv4.2 clients can store extended attributes")
        .instead("extended attributes are reported as unsupported")
        .advice("ext4, xfs or btrfs; tmpfs since Linux 6.6"),
    Check::new("access lists", SomeClients, look::access_lists)
        .good_for("POSIX ACLs are enforced and visible to NFSv4 clients")
        .instead("only permission bits are enforced")
        .advice("mount the file system with acl"),
    Check::new("shared blocks", SomeClients, look::shared_blocks)
        .good_for("NFSv4.2 clients can clone and copy files without moving data")
        .instead("COPY copies the data on the server, CLONE is not supported")
        .advice("xfs with reflink=1, or btrfs"),
    // Quotas are optional: their absence is not a defect.
    Check::new("quotas", SomeClients, look::quotas)
        .good_for("quotas of the file system are enforced and reported per user")
        .instead("all users share the free space")
        .advice("mount with usrquota, quotaon(8)"),
    Check::new("O_TMPFILE", Optional, |place| Outcome::tried(look::unnamed_file(place).map(drop)))
        .good_for("uploads could use O_TMPFILE")
        .instead("none; this version does not use it")
        .advice("ext4, xfs, btrfs or tmpfs"),
    Check::new("space for state", Serving, look::room)
        .good_for("statistics, keys and configuration are stored; about 1 GiB per busy year")
        .instead("statistics are lost when the file system is full")
        .advice("--state DIR on a larger file system"),
    // The ports that would be listened on.
    Check::new("NFS port", Serving, |place| port(place, Service::EXPORTING[0].ports()[0]))
        .good_for("NFS is available on its standard port")
        .instead("none; `serve` fails to start")
        .advice(OTHER_PORT),
    Check::new("admin port", Serving, |place| port(place, ADMIN))
        .good_for("browser interface and API are available")
        .instead("none; `serve` fails to start")
        .advice(OTHER_PORT),
    Check::new("port mapper", Serving, |place| port(place, PORTMAP))
        .good_for("NFSv3 clients can use locks")
        .instead("NFSv3 clients mount with nolock")
        .advice(OTHER_PORT),
    // Network devices, and what the kernel has for long links and remote memory.
    Check::new("NIC offloads", Serving, look::offloads)
        .good_for("segmentation and reassembly by the network device or driver")
        .instead("segmentation on the CPU, at a higher cost per byte")
        .advice("ethtool -K DEVICE tso on gro on"),
    Check::new("netem", Optional, |_| Outcome::present(look::module("sch_netem")))
        .good_for("the kernel could emulate links for the lab")
        .instead("no emulation by the kernel")
        .advice("the kernel module sch_netem"),
    Check::new("RDMA", SomeClients, |_| rdma::device())
        .good_for("NFS transfers data without copies by the CPU")
        .instead("NFS over TCP")
        .advice("an RDMA adapter and its driver"),
    Check::new("RDMA libraries", SomeClients, |_| rdma::libraries())
        .good_for("the RDMA device can be used")
        .instead("NFS over TCP")
        .advice("apt install libibverbs1 librdmacm1 ibverbs-providers"),
    Check::new("locked memory", SomeClients, |_| rdma::locked_memory())
        .good_for("buffers of RDMA connections can be registered")
        .instead("NFS over TCP once the limit is reached")
        .advice("LimitMEMLOCK=infinity of the service manager, or ulimit -l"),
    Check::new("TLS", Serving, look::tls)
        .good_for("encryption for NFS clients (xprtsec=tls) and the browser"),
    // What the kernel could do more. None of it is used by this version's serving.
    Check::new("kernel TLS", Optional, |_| Outcome::tried(sys::try_kernel_tls()))
        .good_for("encrypted files could be sent without a copy")
        .instead("TLS in user space; this version does not use kernel TLS")
        .advice("modprobe tls"),
    Check::new("io_uring", Optional, |_| Outcome::tried(sys::try_io_uring()))
        .good_for("file operations could be batched in one system call")
        .instead("thread pool; this version does not use io_uring")
        .advice("Linux 5.6 or newer, sysctl kernel.io_uring_disabled=0"),
    Check::new("TCP segments", SomeClients, |_| look::segments())
        .good_for("sizes of TCP segments by context, and duplicate acknowledgements by client")
        .instead("mean size of segments, from the counters of IP")
        .advice("Linux 5.8 or newer with CONFIG_DEBUG_INFO_BTF"),
];

const OTHER_PORT: &str = "stop the program that uses it, or choose --port-offset N";
