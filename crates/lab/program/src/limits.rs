//! Bounds of programs and file sets. A program is text that a user wrote, possibly with a mistake
//! in a count: each bound refuses it in words before memory or a disk is full.

/// Bytes of one program as text. The longest of Filebench's own has 14 KiB.
pub const TEXT_MAX: usize = 1 << 20;
/// Tokens of one program.
pub const TOKENS_MAX: usize = 200_000;
/// Composites within composites. A composite that contains itself would have no end.
pub const NESTING_MAX: usize = 8;
/// Composites of a program after they were expanded. Ones without acts would multiply at each
/// level, to all memory from a few lines.
pub const COMPOSITES_MAX: usize = 100_000;
/// Bytes of the name of an act, with those of the composites around it: each act has its own copy.
pub const NAME_MAX: usize = 1_024;
/// Acts of a program after composites were expanded.
pub const ACTS_MAX: usize = 10_000;
/// Threads of a program, on all machines together.
pub const THREADS_MAX: u64 = 100_000;
/// File sets of a program.
pub const SETS_MAX: usize = 1_000;
/// Files or leaf directories of a set; 20 million have 5 MiB of bits.
pub const ENTRIES_MAX: u64 = 20_000_000;
/// Directories of a set: a width of 1 would make chains without end.
pub const DIRECTORIES_MAX: usize = 4_000_000;
/// Directories above a file; a path stays below 1,024 bytes, what protocols and systems accept.
pub const DEPTH_MAX: u32 = 64;
/// Files that a thread has open at once, as Filebench.
pub const FDS_MAX: usize = 128;
/// Bytes of one read or write: more would be a buffer of this size in each thread.
pub const IO_MAX: u64 = 64 << 20;
/// Bytes of one file.
pub const FILE_MAX: u64 = 1 << 44;
/// Where writes in sequence start again at the beginning of a file, if it is not longer: Filebench
/// writes on until the disk is full.
pub const SEQUENCE_MAX: u64 = 1 << 30;
/// Segments of a table of probabilities.
pub const SEGMENTS_MAX: usize = 1_000;
/// Nested expressions and braces.
pub const EXPRESSION_MAX: usize = 64;
