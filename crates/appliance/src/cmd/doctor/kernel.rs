//! What the kernel could do more. None of it is used by this version's serving.

use super::finding::Finding;
use crate::sys;

/// Everything about it, and TLS, which is in the program.
pub fn findings() -> Vec<Finding> {
    let aes = std::fs::read_to_string("/proc/cpuinfo")
        .is_ok_and(|text| text.split_whitespace().any(|word| word == "aes"));
    let by = if aes { "by the processor" } else { "without help of the processor" };
    vec![
        Finding::new(
            "TLS",
            "NFS clients that ask for it (xprtsec=tls), and the browser, are encrypted",
            "",
            "",
        )
        .is(true, format!("1.3, in the program; AES {by}")),
        Finding::new(
            "kernel TLS",
            "encrypted files could leave without a copy",
            "TLS in the program; this version uses nothing else",
            "modprobe tls",
        )
        .not_used()
        .tried(sys::try_kernel_tls()),
        Finding::new(
            "io_uring",
            "many file operations could go with one system call",
            "a pool of threads; this version uses nothing else",
            "Linux 5.6 or newer, sysctl kernel.io_uring_disabled=0",
        )
        .not_used()
        .tried(sys::try_io_uring()),
        Finding::new(
            "eBPF",
            "statistics could come from inside the kernel",
            "the counters of /proc; this version uses nothing else",
            "root or CAP_BPF",
        )
        .not_used()
        .tried(sys::try_bpf()),
    ]
}
