//! The shell on a fake server: the effect of lines, their output, and the requests.

mod completion;
pub mod fake;
mod lines;
mod scripts;
mod values;
