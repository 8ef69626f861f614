//! The tree over HTTP.

pub use crate::tree::tests::tree;
