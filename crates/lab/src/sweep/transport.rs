//! What a carrier does over the link of a point, and why a point has no figure.

use super::limiter::Tcp;
use super::plan::{At, Plan};
use crate::bridge::device::DeviceError;
use crate::bridge::scene::{Scene, SceneError};
use crate::client::ClientError;
use std::io;

/// What was carried.
#[derive(Debug, Clone, PartialEq)]
pub struct Carried {
    /// Bytes per second, all connections together.
    pub bytes_s: f64,
    /// A round trip with nothing else in flight, seconds.
    pub rtt_s: f64,
    /// TCP's accounting of the same time, all connections together; `None` where it is not seen.
    pub tcp: Option<Tcp>,
}

/// Why a point has no figure.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A namespace.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Anything else of the machine.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The link.
    #[error(transparent)]
    Scene(#[from] SceneError),
    /// The server beyond it, or what came from there.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server did not start.
    #[error("the server behind the link is not ready: {0}")]
    Server(String),
    /// It stood, and carried nothing.
    #[error("no data arrived over the emulated link")]
    Nothing,
}

/// Names what was tried.
pub fn tried(what: &'static str) -> impl FnOnce(io::Error) -> SweepError {
    move |source| SweepError::Io { what, source }
}

/// A carrier of data.
pub trait Transport {
    /// Carries from one end of the link to the other, for as long as the plan specifies.
    ///
    /// # Errors
    /// What failed; the link then has ended or the machine refuses.
    fn carry(&self, plan: &Plan, at: &At, link: &Scene) -> Result<Carried, SweepError>;
}
