//! Runs of `plimsoll dsync` from and to the share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::process::{DEADLINE, run, succeed};
use e2e::server::binary;
use e2e::smb::scene::{SHARE, Scene, USER};
use e2e::tree::{code, output_text};
use serde_json::json;

use crate::lock_table::second::Operation;
use crate::lock_table::{Outcome, refused};

/// The exit status of a run in which some files failed.
const SOME_FAILED: i32 = 3;

/// How runs begin.
pub(super) struct Dsync {
    folder: PathBuf,
    there: String,
}

impl Dsync {
    /// Gives the user a key.
    pub fn new(scene: &Scene) -> Self {
        let folder = scene.scratch.folder("dsync", None);
        let key = folder.join("key");
        succeed(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key));
        let public = fs::read_to_string(key.with_extension("pub")).expect("a key");
        let user = format!("/configuration/users/{USER}");
        scene.change(&json!([{"set": user, "property": "ssh_keys", "value": [public.trim()]}]));
        let there = format!("dsync://{USER}@127.0.0.1:{}/{SHARE}", 218 + scene.server.offset);
        Self { folder, there }
    }

    /// An empty folder.
    fn empty(&self, name: &str) -> PathBuf {
        let folder = self.folder.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        folder
    }

    fn run(&self, from: &Path, to: &Path, options: &[&str]) -> Outcome {
        let at = self.folder.display();
        let rsh = format!(
            "ssh -F none -q -o BatchMode=yes -o StrictHostKeyChecking=no -o IdentitiesOnly=yes \
             -o UserKnownHostsFile={at}/known -i {at}/key"
        );
        let mut command = Command::new(binary());
        command.arg("dsync").arg(from).arg(to).args(["--rsh", &rsh]).args(options);
        let output = run(&mut command, DEADLINE);
        match code(&output) {
            0 => Ok(()),
            1 | SOME_FAILED => Err(refused("reported as failed by dsync")),
            other => panic!("exit status {other}: {}", output_text(&output)),
        }
    }

    pub fn perform(&self, operation: Operation, name: &str) -> Outcome {
        let there = PathBuf::from(&self.there);
        match operation {
            Operation::Read => self.run(&there, &self.empty("to"), &[]),
            Operation::Write => {
                let from = self.empty("from");
                fs::write(from.join(name), "another length").expect("a file");
                self.run(&from, &there, &[])
            }
            Operation::Remove => self.run(&self.empty("none"), &there, &["--delete"]),
            other => unreachable!("not by dsync: {other:?}"),
        }
    }
}
