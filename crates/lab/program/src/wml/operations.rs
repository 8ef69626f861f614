//! Names of flowops, and what each needs.

use crate::program::Op;

/// What a set has to have for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// The operation names a set of files.
    Files,
    /// The operation names a set with directories to list.
    Directories,
    /// The operation names a set with leaf directories.
    LeafDirs,
    /// The operation names a set, or a file is open where it works.
    File,
}

/// A flowop.
pub enum Support {
    /// One that is done.
    Op(Op, Needs),
    /// One that is refused, and what to do instead.
    Refused(&'static str),
}

/// Finds a flowop by its name.
pub fn find(name: &str) -> Option<Support> {
    use Needs::{Directories, File, Files, LeafDirs, Nothing};
    let (op, needs) = match name {
        "read" => (Op::Read, File),
        "write" | "aiowrite" => (Op::Write, File),
        "readwholefile" => (Op::ReadFile, File),
        "writewholefile" => (Op::WriteFile, File),
        "appendfile" => (Op::Append, File),
        "appendfilerand" => (Op::AppendRandom, File),
        "openfile" => (Op::Open, Files),
        "createfile" => (Op::Create, Files),
        "closefile" => (Op::Close, Nothing),
        "deletefile" => (Op::Remove, File),
        "statfile" => (Op::Stat, File),
        "fsync" => (Op::Sync, Nothing),
        "fsyncset" => (Op::SyncSet, Files),
        "makedir" => (Op::MakeDir, LeafDirs),
        "removedir" => (Op::RemoveDir, LeafDirs),
        "listdir" => (Op::List, Directories),
        "aiowait" => (Op::Join, Nothing),
        "delay" => (Op::Delay, Nothing),
        "hog" => (Op::Burn, Nothing),
        "block" => (Op::Block, Nothing),
        "wakeup" => (Op::Wake, Nothing),
        "semblock" => (Op::Take, Nothing),
        "sempost" => (Op::Post, Nothing),
        "eventlimit" => (Op::LimitEvents, Nothing),
        "opslimit" => (Op::LimitActs, Nothing),
        "iopslimit" => (Op::LimitTransfers, Nothing),
        "bwlimit" => (Op::LimitBytes, Nothing),
        "finishoncount" => (Op::FinishCount, Nothing),
        "finishonbytes" => (Op::FinishBytes, Nothing),
        "print" => return Some(Support::Refused("a thread prints nothing: use echo, or omit it")),
        "testrandvar" => {
            return Some(Support::Refused("it measures nothing on a target: omit it"));
        }
        _ => return None,
    };
    Some(Support::Op(op, needs))
}
