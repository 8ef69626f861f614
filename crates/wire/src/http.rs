//! What is text in HTTP (RFC 9110, RFC 9112): heads of requests, targets, header fields, chunks,
//! dates, ranges, entity tags. Frames of HTTP/2 are a library's.

pub mod chunked;
pub mod date;
pub mod fields;
pub mod head;
pub mod select;
pub mod target;
