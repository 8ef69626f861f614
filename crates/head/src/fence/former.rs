//! What is known of the process of a former owner: whether it is gone.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use super::{Claim, OWNER, OwnerFile, boot_id, lock, process, read, write};

/// Whether it is known that the process of a former owner is gone: its head has seen its end, or it
/// was on this machine and has ended, with this start of the machine or an earlier one.
pub(super) fn is_gone(former: &OwnerFile, head: &str, path: &Path) -> bool {
    let here = former.boot == boot_id();
    let of_this_head = former.head == head && !former.boot.is_empty();
    former.head.is_empty()
        || former.released
        || here && !process::has_open(former.pid, path)
        || of_this_head && !here
}

/// Why a resource is not taken over.
pub(super) fn unfenced(former: &OwnerFile, claim: &Claim, reports: &str) -> String {
    let (head, name) = (&former.head, &claim.resource);
    format!(
        "nothing keeps the former owner {head} from writing{reports}: start {head}, configure \
         fence_program, or make sure that {head} is down and run `plimsoll head takeover {name} \
         --unfenced`"
    )
}

/// Enters in the file `owner` that the process of an ownership is gone; false if the file is of
/// another ownership by now.
///
/// # Errors
/// The file system's.
pub fn release(state: &Path, number: u64) -> io::Result<bool> {
    let file = OpenOptions::new().read(true).write(true).open(state.join(OWNER))?;
    if !lock(&file)? {
        return Ok(false);
    }
    let content = read(&file)?;
    if content.number != number {
        return Ok(false);
    }
    write(&file, &OwnerFile { released: true, ..content }).map(|()| true)
}
