//! Replication without its runs: when it is due, what a place can be, what a run tells, and what is
//! kept of it.
