//! The sum of a file's content: what is kept of it, or what is read.

use std::borrow::Borrow;
use std::io;

use base::clock::NS_PER_S;
use base::limits::{DSYNC_COARSE_NS, DSYNC_STILL_NS};

use super::record::State;
use crate::digest;
use crate::tree::{ScannedEntry, Tree};

/// BLAKE3 of a file's content: what is kept, or what is read. `slot` is from
/// [`super::Side::enter`].
///
/// # Errors
/// It cannot be opened or read.
pub fn content<T: Tree, F: Borrow<T::File>>(
    tree: &T,
    (path, slot): (&[u8], Option<u64>),
    seen: &ScannedEntry,
    open: impl FnOnce() -> io::Result<F>,
) -> io::Result<[u8; 32]> {
    let Some(side) = tree.index() else { return digest::content(tree, open()?.borrow()) };
    if let Some(sum) = side.known(path, seen) {
        return Ok(sum);
    }
    let file = open()?;
    let began_ns = side.index.clock.wall_ns();
    let before = tree.look_open(file.borrow())?;
    let sum = digest::content(tree, file.borrow())?;
    if let (Some(slot), Some(state)) = (slot, State::of(&before))
        && is_still(began_ns, state.ctime_ns)
        && State::of(&tree.look_open(file.borrow())?).as_ref() == Some(&state)
    {
        side.fill(slot, &state, &sum);
    }
    Ok(sum)
}

/// Whether the next change of a file would have another time than the last one had. What was
/// changed within the tick of the clock in which it is read could be changed once more in it.
pub(super) fn is_still(now_ns: u64, ctime_ns: i128) -> bool {
    let coarse = ctime_ns.rem_euclid(i128::from(NS_PER_S)) == 0;
    let tick = if coarse { DSYNC_COARSE_NS } else { DSYNC_STILL_NS };
    i128::from(now_ns) - ctime_ns >= tick
}
