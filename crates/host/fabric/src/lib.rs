//! The InfiniBand fabric of this machine, by management datagrams (MADs) over
//! `/dev/infiniband/umad*`, without libibumad.
//!
//! - [`mad`]: one datagram, both directions. [`attribute`]: what it contains, both directions.
//! - [`transport`]: what sends and receives them, as a trait. [`umad`]: the devices of Linux.
//!   [`fake`]: a simulated fabric with losses, for tests.
//! - [`exchange`]: several requests in flight, timeouts, retries; replies that belong to none are
//!   ignored and counted.
//! - [`walk`]: nodes, ports and links by directed routes. [`counters`]: the counters of each port,
//!   and their differences.
//! - [`monitor`]: both at an interval, as a report. [`problem`]: what is wrong with a fabric.
//!
//! Names and offsets are those of the InfiniBand Architecture Specification, volume 1, chapters 13
//! to 16. Requests that change a fabric are never sent; `Set` is there for tests.

pub mod attribute;
pub mod counters;
pub mod exchange;
pub mod fake;
pub mod mad;
pub mod monitor;
pub mod problem;
pub mod transport;
pub mod umad;
pub mod walk;
