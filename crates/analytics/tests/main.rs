//! The tests of recording, querying and the formats of recorded statistics, in one program: each is
//! linked with everything.

mod exact;
mod memory;
mod recorded;
mod scripts;
mod sums;
