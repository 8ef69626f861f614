//! Room `wire`: the messages of the protocols, as types that both encode and decode themselves.
//!
//! It does no I/O and reads no clock. Decoding borrows from the bytes it is given, costs time
//! proportional to their length at worst, and gives every length a maximum and a named error.
//!
//! *Layout*
//! - [`xdr`]: External Data Representation (RFC 4506): reader, writer, the two codec traits.
//! - [`rpc`]: ONC RPC version 2 (RFC 5531): record marking, calls, replies, credentials.
//! - [`nfs3`]: NFS version 3 (RFC 1813): all 22 procedures.
//! - [`nfs4`]: NFS version 4, minor versions 0 (RFC 7530), 1 (RFC 8881) and 2 (RFC 7862, RFC 8276).
//! - [`mount3`]: MOUNT version 3 (RFC 1813, appendix I).
//! - [`nlm4`], [`nsm`]: locks of NFSv3 clients, and notifications of restarts (X/Open XNFS).
//! - [`bridge`]: frames and greetings of the link emulator.
//! - [`ftp`]: FTP (RFC 959, RFC 2389, RFC 2428, RFC 3659): lines, commands, replies, facts.
//! - [`dav`]: what WebDAV adds to HTTP (RFC 4918): its XML, its headers.
//! - [`dsync`]: messages between the two sides of a synchronisation of directories.
//! - [`ssh`]: messages, keys and the transport of SSH (RFC 4251 to 4254).
//! - [`http`]: heads of requests, targets, chunks, dates of HTTP (RFC 9110, RFC 9112).
//! - [`iscsi`]: iSCSI (RFC 7143): PDUs, digests, text negotiation, login, CHAP.
//! - [`portmap`]: port mapper version 2 and rpcbind versions 3 and 4 (RFC 1833), types only.
//! - [`rpcrdma`]: RPC over RDMA version 1 (RFC 8166, RFC 8267, RFC 8797): headers, chunks.
//! - [`scsi`]: commands, sense data and parameters of SCSI (SPC-5, SBC-4).
//! - [`sftp`]: the SSH File Transfer Protocol, version 3, with OpenSSH's extensions.
//! - [`smb`]: SMB 2.1 to 3.1.1 (MS-SMB2), NTLM and SPNEGO, and its keys.
//! - `echo`: the test service (RFC 862 with a sign-in), in builds for it.

#![forbid(unsafe_code)]

#[macro_use]
pub mod xdr;

pub mod bridge;
pub mod dav;
pub mod dsync;
#[cfg(any(test, feature = "test-services"))]
pub mod echo;
pub mod ftp;
#[doc(hidden)]
pub mod fuzz;
pub mod http;
pub mod iscsi;
pub mod mount3;
pub mod nfs3;
pub mod nfs4;
pub mod nlm4;
pub mod nsm;
pub mod portmap;
pub mod rpc;
pub mod rpcrdma;
pub mod scsi;
pub mod sftp;
pub mod smb;
pub mod ssh;

#[cfg(test)]
mod arb;
