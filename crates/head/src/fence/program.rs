//! A program of the administrator that switches a head off: by its power supply or its hypervisor.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Fence, OwnerFile};
use crate::lease;

/// How long the program may take: a management controller answers within seconds.
const TIME: Duration = Duration::from_secs(30);
/// How often its end is looked for.
const EVERY: Duration = Duration::from_millis(20);

/// Runs a program with the names of the head and of the resource; success means that the head
/// cannot write any more.
#[derive(Debug, Clone)]
pub struct ProgramFence {
    /// The program.
    pub program: PathBuf,
}

impl Fence for ProgramFence {
    fn name(&self) -> &'static str {
        "program"
    }

    fn fence(&self, resource: &str, former: &OwnerFile, _path: &Path) -> Result<bool, String> {
        if former.head.is_empty() {
            return Ok(false);
        }
        let mut command = Command::new(&self.program);
        command.arg(&former.head).arg(resource);
        run(command, &self.program).map(|()| true)
    }
}

/// Runs a command of this program until it succeeds, fails, or takes too long.
pub(super) fn run(mut command: Command, program: &Path) -> Result<(), String> {
    let program = program.display();
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().map_err(|e| format!("{program}: {e}"))?;
    let until = lease::now() + TIME;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("{program}: {status}")),
            Ok(None) if lease::now() < until => std::thread::sleep(EVERY),
            Ok(None) => {
                let _gone = child.kill();
                let _reaped = child.wait();
                return Err(format!("{program} takes too long"));
            }
            Err(e) => return Err(e.to_string()),
        }
    }
}
