//! Network devices, and what the kernel has for long links and remote memory.

use std::fs;
use std::path::Path;

use host::Root;
use host::inventory::Inventory;

use super::finding::Finding;
use super::machine::first_line;
use crate::sys;

/// Everything about networks but ports.
pub fn findings() -> Vec<Finding> {
    vec![
        offloads(),
        Finding::new(
            "netem",
            "the kernel could emulate long links for the lab",
            "links as they are",
            "the kernel module sch_netem",
        )
        .not_used()
        .present(module("sch_netem")),
        Finding::new(
            "RDMA",
            "data could move between machines without their processors",
            "TCP; this version uses nothing else",
            "an RDMA adapter and its driver",
        )
        .not_used()
        .present(fs::read_dir("/sys/class/infiniband").is_ok_and(|mut d| d.next().is_some())),
    ]
}

/// Of all devices that are up and lead out of the machine.
fn offloads() -> Finding {
    let finding = Finding::new(
        "NIC offloads",
        "packets are cut and joined by the network device or its driver",
        "the processor does it, which costs it more per byte",
        "ethtool -K DEVICE tso on gro on",
    );
    let nics = Inventory::read(&Root::default()).nics;
    let outside = nics.iter().filter(|nic| nic.driver.is_some() && nic.state == "up");
    let asked: Vec<(&str, sys::Offloads)> = outside
        .filter_map(|nic| Some((nic.name.as_str(), sys::offloads(&nic.name).ok()?)))
        .collect();
    if asked.is_empty() {
        return finding.unknown("no network device that tells");
    }
    let all = asked.iter().all(|(_, has)| has.segmentation && has.receive);
    let words = |(name, has): &(&str, sys::Offloads)| {
        let said = |there, what| format!("{} {what}", if there { "with" } else { "without" });
        let (tso, gro) = (said(has.segmentation, "TSO"), said(has.receive, "GRO"));
        format!("{name} {tso}, {gro}")
    };
    finding.is(all, asked.iter().map(words).collect::<Vec<_>>().join("; "))
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
