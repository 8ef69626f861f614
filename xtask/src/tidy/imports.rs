//! Which room may import which: the table of ARCHITECTURE.md against `cargo metadata`.

use serde_json::Value;

use super::Finding;
use crate::metadata::{list, text};

/// A crate and the crates of the workspace that it may depend on.
struct Member {
    name: &'static str,
    may_import: &'static [&'static str],
}

/// The table. `sim` is for tests: only a development dependency may name it.
const MEMBERS: &[Member] = &[
    Member { name: "base", may_import: &[] },
    Member { name: "wire", may_import: &["base"] },
    Member { name: "probe", may_import: &["base"] },
    Member { name: "vfs", may_import: &["base", "probe"] },
    Member { name: "verbs", may_import: &["base"] },
    Member { name: "engine", may_import: &["base", "wire", "probe", "vfs"] },
    Member { name: "files", may_import: &["base", "wire", "probe", "vfs", "engine"] },
    Member { name: "nfs", may_import: &["base", "wire", "probe", "vfs", "engine", "verbs"] },
    Member { name: "ftp", may_import: &["base", "wire", "probe", "vfs", "engine", "files"] },
    Member { name: "web", may_import: &["base", "wire", "probe", "vfs", "engine", "files"] },
    Member {
        name: "sftp",
        may_import: &["base", "wire", "probe", "vfs", "engine", "files", "sync"],
    },
    Member { name: "iscsi", may_import: &["base", "wire", "probe", "vfs", "engine"] },
    Member { name: "smb", may_import: &["base", "wire", "probe", "vfs", "engine", "files"] },
    Member {
        name: "serve",
        may_import: &[
            "base", "wire", "probe", "vfs", "sync", "verbs", "engine", "files", "nfs", "ftp",
            "web", "sftp", "iscsi", "smb",
        ],
    },
    Member { name: "host", may_import: &["base", "probe"] },
    Member { name: "host-fabric", may_import: &["base"] },
    Member { name: "host-network", may_import: &["base"] },
    Member { name: "host-pools", may_import: &["base"] },
    Member { name: "host-hardware", may_import: &["base", "host"] },
    Member {
        name: "host-helper",
        may_import: &["base", "host-hardware", "host-network", "host-pools"],
    },
    Member { name: "head", may_import: &["base", "host", "host-network"] },
    Member { name: "analytics", may_import: &["base", "probe"] },
    Member { name: "control", may_import: &["base", "probe", "vfs", "host", "analytics"] },
    Member {
        name: "service",
        may_import: &[
            "base",
            "wire",
            "probe",
            "vfs",
            "serve",
            "host",
            "host-fabric",
            "host-hardware",
            "host-network",
            "host-pools",
            "host-helper",
            "head",
            "analytics",
            "control",
            "lab",
            "sync",
            "verbs",
        ],
    },
    Member { name: "lab-net", may_import: &["base"] },
    Member { name: "lab-program", may_import: &["base"] },
    Member {
        name: "lab",
        may_import: &["base", "wire", "probe", "host", "verbs", "lab-net", "lab-program"],
    },
    Member { name: "sync", may_import: &["base", "wire", "probe"] },
    Member { name: "sim", may_import: &["base"] },
    Member {
        name: "plimsoll",
        may_import: &[
            "base",
            "wire",
            "probe",
            "vfs",
            "serve",
            "service",
            "head",
            "host",
            "host-fabric",
            "host-hardware",
            "host-network",
            "host-pools",
            "host-helper",
            "analytics",
            "control",
            "lab",
            "sync",
            "verbs",
        ],
    },
    // The same program with services for tests.
    Member {
        name: "test-program",
        may_import: &[
            "base",
            "wire",
            "verbs",
            "probe",
            "vfs",
            "serve",
            "service",
            "head",
            "host",
            "host-fabric",
            "host-hardware",
            "host-network",
            "host-pools",
            "host-helper",
            "analytics",
            "control",
            "lab",
            "sync",
        ],
    },
    Member { name: "e2e", may_import: &["base", "wire", "sim"] },
    Member { name: "bench", may_import: &["base", "wire", "host", "lab", "e2e"] },
    Member { name: "xtask", may_import: &[] },
];

/// Checks every dependency between members of the workspace.
pub fn check(metadata: &Value) -> Vec<Finding> {
    let packages = list(metadata, "packages");
    let members: Vec<&str> = packages.iter().map(|p| text(p, "name")).collect();
    let mut findings = Vec::new();
    for package in packages {
        let name = text(package, "name");
        let Some(room) = MEMBERS.iter().find(|r| r.name == name) else {
            findings.push(finding(
                name,
                format!("{name} is not in the table of rooms (xtask, ARCHITECTURE.md)"),
            ));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let (on, kind) = (text(dependency, "name"), text(dependency, "kind"));
            let ours = members.contains(&on) && !dependency["path"].is_null();
            // Tests may use the seeded faults and the clients of the harness, and a room its own
            // parts.
            let of_tests = kind == "dev" && (["sim", "e2e", name].contains(&on));
            let allowed = room.may_import.contains(&on) || of_tests;
            if ours && !allowed {
                findings.push(finding(name, format!("{name} may not import {on}")));
            }
        }
    }
    findings
}

fn finding(name: &str, what: String) -> Finding {
    Finding { path: format!("crates/{name}/Cargo.toml"), line: 0, rule: "import", what }
}
