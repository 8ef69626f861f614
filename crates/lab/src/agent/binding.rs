//! What identifies one TLS connection, and the certificate of a side.

use aws_lc_rs::digest::{SHA256, digest};

/// SHA-256 of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Of a certificate, DER.
    pub fn of(certificate: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, certificate).as_ref());
        Self(bytes)
    }
}

/// What identifies one TLS connection: no other has the same exporter, and both certificates.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// Keying material exported from the connection (RFC 8446 §7.5).
    pub exporter: [u8; 32],
    /// Certificate of the side that listens.
    pub listener: Fingerprint,
    /// Certificate of the side that calls.
    pub caller: Fingerprint,
}
