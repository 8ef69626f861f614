//! The shell on a fake server: what lines do, what they say, and what is sent.

mod completion;
pub mod fake;
mod lines;
mod scripts;
mod values;
