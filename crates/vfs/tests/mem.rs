//! The back end in memory, held to the conformance suite.

use vfs::conformance::{self, Bench};
use vfs::mem::MemFs;

#[test]
fn conforms() {
    let fs = MemFs::new(vfs::share::tag("test"), 1 << 30);
    conformance::run(&Bench { fs, privileged: true, reopen: None });
}
