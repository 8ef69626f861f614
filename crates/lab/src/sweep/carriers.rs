//! The carriers over the link of a point: TCP as it is ([`super::stop_and_wait`],
//! [`super::stream`]), or a protocol ([`super::nfs`], [`super::files`], [`super::dsync`]).

use super::carrier::Kind;
use super::plan::Carrier;
use super::transport::Transport;
use super::{dsync, files, nfs, stop_and_wait, stream};

/// The implementation of a carrier.
pub fn of(carrier: Carrier) -> &'static dyn Transport {
    match carrier.kind() {
        Kind::StopAndWait => &stop_and_wait::StopAndWait,
        Kind::Stream => &stream::Stream,
        Kind::Nfs => &nfs::Nfs,
        Kind::Files(_) => &files::Files,
        Kind::Dsync => &dsync::Dsync,
    }
}
