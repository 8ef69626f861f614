//! The ground floor: time and randomness as traits, named limits, histogram buckets, byte pools.
//!
//! Every other crate may import this one; it imports none of the workspace and knows nothing of
//! storage.
//!
//! - [`claim`]: marks on files of logical units, for programs on this machine.
//! - [`clock`]: where time comes from ([`clock::Clock`]), and the cheap stamps of the request path.
//! - [`base64`]: base 64, both ways.
//! - [`protocol`]: the registry of protocols, services and URL schemes.
//! - [`failure`]: why something was not done, for people. [`out`]: standard output of commands.
//! - [`random`]: where randomness comes from; the same seed gives the same run.
//! - [`der`]: reading what is in a certificate.
//! - [`limits`]: every limit, timeout and size of the program, each with its reason.
//! - [`buckets`]: log-linear buckets, shared by heat maps, reports and the recorder.
//! - [`local_time`]: points of time as people write them, in the time zone of this machine.
//! - [`lock_order`]: mutexes with a rank, taken in a stated order.
//! - [`log`]: the log of the running server.
//! - [`memory`]: what was freed goes back to the system.
//! - [`node`]: how rooms declare the nodes of the one tree of administration.
//! - [`peer`]: the site that an address stands for.
//! - [`permits`]: permits for connections, with a part for each client.
//! - [`refusals`]: requests refused at limits, by limit.
//! - [`tally`]: counts and permits for each address. [`throttle`]: waits after wrong passwords.
//! - [`tcp_info`]: what the kernel knows of a TCP connection.
//! - [`text`]: bytes in hexadecimal, and escaped for URLs.
//! - [`units`]: figures for people: bytes, rates, times.
//! - [`wait_queue`]: waits for parts of something limited, in order.

pub mod base64;
pub mod buckets;
pub mod claim;
pub mod clock;
pub mod der;
pub mod failure;
pub mod limits;
pub mod local_time;
pub mod lock_order;
pub mod log;
pub mod md4;
pub mod memory;
pub mod node;
pub mod out;
pub mod peer;
pub mod permits;
pub mod protocol;
pub mod random;
pub mod refusals;
pub mod tally;
pub mod tcp_info;
pub mod text;
pub mod throttle;
pub mod units;
pub mod wait_queue;
