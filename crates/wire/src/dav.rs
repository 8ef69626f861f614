//! WebDAV (RFC 4918): what it adds to HTTP. Its XML in and out, the bodies and headers of its
//! methods.
//!
//! - [`xml`]: a strict reader of small XML documents with namespaces (no DTD, no entities of the
//!   document's own, every size bounded), and the writer.
//! - [`body`]: what PROPFIND, PROPPATCH and LOCK ask for.
//! - [`if_header`]: `If` (§10.4), the conditions on entity tags and locks.
//! - [`header`]: `Depth`, `Timeout`, `Overwrite`, `Lock-Token`, `Destination`.

pub mod body;
pub mod header;
pub mod if_header;
pub mod xml;

/// The namespace of RFC 4918.
pub const DAV: &str = "DAV:";
/// The namespace of the properties that Windows sets.
pub const WIN32: &str = "urn:schemas-microsoft-com:";
