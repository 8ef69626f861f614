//! Shares.
