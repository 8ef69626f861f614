//! Shares are found by path and handle; a read-only one refuses.
