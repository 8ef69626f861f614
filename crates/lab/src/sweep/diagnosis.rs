//! TCP's accounting of connections with sockets of another program: by the kernel's own diagnosis,
//! sock_diag(7), queried in the network namespace where they are.

use super::transport::SweepError;
use crate::bridge::device::{DeviceError, NetworkNamespace};
use base::tcp_info::TcpInfo;
use host::socket_diagnosis::{ESTABLISHED, SocketDiagnosis};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// Connections, by the port of the end that is looked at and that of the other.
pub type TcpInfoByPorts = BTreeMap<(u16, u16), TcpInfo>;

/// Reads the connections of a namespace.
#[derive(Debug)]
pub struct Diagnosis(Mutex<SocketDiagnosis>);

impl Diagnosis {
    /// Of the namespace of a place.
    ///
    /// # Errors
    /// No such namespace, or the kernel has no such sockets.
    pub fn open(place: &NetworkNamespace) -> Result<Self, SweepError> {
        let what = || "ask the kernel about connections".to_owned();
        let refused = |source| DeviceError::Refused { what: what(), source };
        let open = || SocketDiagnosis::open().map_err(refused);
        Ok(Self(Mutex::new(place.within(open)?)))
    }

    /// All established connections over IPv4, by the port of the end that is here and that of the
    /// other; `None` if they are not seen.
    pub fn all(&self) -> Option<TcpInfoByPorts> {
        let mut diagnosis = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = TcpInfoByPorts::new();
        let keep = &mut |message: host::socket_diagnosis::Message<'_>| {
            seen.extend(message.ports().zip(message.info()));
            ControlFlow::Continue(())
        };
        diagnosis.dump(libc::AF_INET, ESTABLISHED, keep).ok()?;
        Some(seen)
    }

    /// The end here of the connection with the port `peer` at its other end; `None` if it is not
    /// seen.
    pub fn of(&self, peer: u16) -> Option<TcpInfo> {
        self.all()?.into_iter().find(|((_, port), _)| *port == peer).map(|(_, info)| info)
    }
}

#[cfg(test)]
mod tests;
