//! Devices that appear after the helper has started: those of a slow driver after a boot, or of a
//! card that is plugged in or reset. The kernel's list of links is compared with the one before.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::keeper::Keeper;

/// The links of this machine, each with the file of its number.
const LINKS: &str = "/sys/class/net";
/// How often the list is read: some files in memory, against seconds that a driver takes.
const EVERY: Duration = Duration::from_secs(3);
/// How long after steps that were refused others are taken: each is written to the log.
const AGAIN: Duration = Duration::from_secs(60);

/// Links by name, with the kernel's number: a link that comes back has another one.
type Links = BTreeMap<String, String>;

/// Configures devices as they appear, in a thread of this process.
///
/// # Errors
/// The operating system's.
pub(crate) fn follow(keeper: Arc<Mutex<Keeper>>) -> io::Result<()> {
    let run = move || {
        let (mut known, mut appeared) = (links(Path::new(LINKS)), BTreeSet::new());
        let mut pause = EVERY;
        loop {
            std::thread::sleep(pause);
            let now = links(Path::new(LINKS));
            appeared.extend(new(&known, &now));
            known = now;
            let followed = keeper.lock().unwrap_or_else(PoisonError::into_inner).follow(&appeared);
            pause = if followed.is_err() { AGAIN } else { EVERY };
            match followed {
                Ok(true) => appeared.clear(),
                Ok(false) => {}
                Err(refusal) => base::error!("host", "{refusal}"),
            }
        }
    };
    std::thread::Builder::new().name("appear".to_owned()).spawn(run).map(drop)
}

fn links(folder: &Path) -> Links {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let link = |entry: std::fs::DirEntry| {
        // One that has gone since has none.
        let number = std::fs::read_to_string(entry.path().join("ifindex")).ok()?;
        Some((entry.file_name().into_string().ok()?, number))
    };
    entries.filter_map(link).collect()
}

/// Names of links that were not in the list before.
fn new(before: &Links, now: &Links) -> BTreeSet<String> {
    let is_new = |(name, number): &(&String, &String)| before.get(*name) != Some(*number);
    now.iter().filter(is_new).map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests;
