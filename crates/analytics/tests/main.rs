//! The tests of recording, querying and the formats of recorded statistics, in one program: each is
//! linked with everything.

mod exact;
mod kept;
mod memory;
mod scripts;
mod sums;
