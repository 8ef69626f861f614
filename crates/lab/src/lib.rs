//! The load lab: its own clients, many of them, started together, raised step by step until
//! throughput levels, and a verdict on what stopped it.
//!
//! Data flows one way: job → [`conduct`] → agent → [`workload`] → [`client`] → socket. The lab
//! meets the server as bytes on a socket, and its statistics through [`conduct::server`].
//!
//! - [`pattern`]: content that is a pure function of (seed, file, offset).
//! - [`client`]: targets: NFS, services that transfer files, a local path, and nothing at all (what
//!   the generator itself costs).
//! - [`workload`]: which operation comes next.
//! - [`job`]: an experiment as a TOML file.
//! - [`agent`]: one client process, and the protocol it is conducted by.
//! - [`conduct`]: clock offsets, the common start, steps, steady state, lost clients.
//! - [`limit`]: from evidence to the name of the limiter; a pure function.
//! - [`verdict`]: what a run shows beyond that: how it scales, what each resource is used for,
//!   which client was served differently; [`ab`]: whether two builds or targets differ; pure as
//!   well.
//! - [`shape`]: arrivals by a schedule instead of threads that wait.
//! - [`record`], [`report`]: `result.json` and the page made from it; [`archive`]: all of it, with
//!   the request and checksums; [`operations`]: a hash of what the clients were given to do.
//! - [`measure`]: a run repeated because it was disturbed, or until its interval is narrow.
//! - [`limits`]: the Performance Limit Summary, a column for each target.
//! - [`programs`]: programs in the language of Filebench; [`iozone`]: IOzone's throughput mode.
//! - [`suite`]: the suites of the sources: sequential reads, and the table of Filebench.
//! - [`transfer`]: the comparison of protocols by whole files.
//! - [`sweep`]: one connection or several over distances and windows, compared with a model.
//! - [`net`]: network profiles.
//! - [`bridge`]: a link between two networks that is slow, far and lossy as wanted.
//! - [`cli`]: `plimsoll lab …`.
//! - [`desk`]: runs that a server makes for its users; [`node`]: how they are declared.
//! - [`observe`]: the server as its machine shows it.
//! - [`proc`] reads the entries of `/proc` for a process and its machine.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod ab;
pub mod agent;
pub mod archive;
pub mod bridge;
pub mod cli;
pub mod client;
pub mod conduct;
pub mod desk;
pub mod hist;
pub mod iozone;
pub mod job;
pub mod limit;
pub mod limits;
pub mod measure;
pub mod net;
pub mod node;
pub mod observe;
pub mod operations;
pub mod pattern;
pub mod proc;
pub mod programs;
pub mod prove;
pub mod record;
pub mod report;
pub mod shape;
pub mod suite;
pub mod sweep;
pub mod transfer;
pub mod verdict;
pub mod workload;
