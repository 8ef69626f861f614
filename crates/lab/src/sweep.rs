//! The sweep over distance and window: what one connection, or several, carry over an emulated
//! link, point by point, compared with the throughput that a model predicts.
//!
//! Every point has a link of its own ([`crate::bridge`], as a child of this program) between two
//! network namespaces that are made for it. A link that was late invalidates what was measured over
//! it: the point is measured again, and if that does not help it is marked as spoiled.
//!
//! - [`model`]: what a window, a distance and a rate allow. [`plan`]: which points; the figures of
//!   the source, 5 to 7, among them. [`carrier`]: what carries. [`link`]: the namespaces and the
//!   bridge.
//! - [`transport`]: the interface of a carrier. [`carriers`]: all of them: [`stop_and_wait`] and
//!   [`stream`], [`sockets`] being their connections; [`nfs`], [`files`] and [`dsync`], over a
//!   [`server`] of this program's own. [`turns`]: blocks of several, one after the other.
//! - [`diagnosis`]: TCP's accounting of a server's connections. [`limiter`]: from TCP's own
//!   accounting to a name. [`run`]: the rounds.
//! - [`record`] has the results, [`text`] formats them as text, [`cli`] is `plimsoll lab sweep`.

pub mod carrier;
pub mod carriers;
pub mod cli;
pub mod diagnosis;
pub mod dsync;
pub mod files;
pub mod limiter;
pub mod link;
pub mod model;
pub mod nfs;
pub mod plan;
pub mod record;
pub mod run;
pub mod server;
pub mod sockets;
pub mod stop_and_wait;
pub mod stream;
pub mod text;
pub mod transport;
pub mod turns;

pub use plan::Plan;
pub use record::Sweep;
