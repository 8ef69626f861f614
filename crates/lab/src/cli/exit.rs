//! Exit statuses of the commands of the laboratory.

/// Done, but an agent was lost, a clock is off, or a step was not steady.
pub const EXIT_DEGRADED: u8 = 3;
