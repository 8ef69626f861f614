//! FTP (RFC 959) and what was added to it: commands and replies, both directions, as bytes.
//!
//! - [`line`]: lines of the control connection, with what Telnet puts between their bytes.
//! - [`verb`]: the commands by name and number; [`request`]: a command with its parameters.
//! - [`reply`]: replies of one and of several lines.
//! - [`addr`]: addresses of data connections (PORT and PASV; RFC 2428: EPRT and EPSV).
//! - [`date`]: times (RFC 3659 §2.3).
//! - [`facts`]: the machine's listing, MLST and MLSD (RFC 3659 §7).
//! - [`list`]: the listing for people, LIST.
//! - [`ascii`]: line ends of the ASCII type.
//!
//! Names are bytes: UTF-8 is what both sides should send (RFC 2640), and is not enforced.

pub mod addr;
pub mod ascii;
pub mod date;
pub mod facts;
pub mod line;
pub mod list;
pub mod reply;
pub mod request;
pub mod verb;

pub use request::Request;
pub use verb::Verb;

/// What is wrong with a command or a reply: the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The line is longer than any command.
    #[error("Command too long")]
    TooLong,
    /// There is no such command.
    #[error("Unrecognized command")]
    Unknown,
    /// The command is known, and not offered.
    #[error("Command not supported")]
    NotOffered,
    /// A parameter is missing.
    #[error("Syntax error: command needs an argument")]
    Missing,
    /// There is a parameter too many.
    #[error("Syntax error: command does not accept arguments")]
    Unexpected,
    /// A number is none, or too large.
    #[error("Invalid parameter: number out of range")]
    Number,
    /// An address as of PORT is none.
    #[error("Invalid PORT format")]
    Port,
    /// An address as of EPRT is none.
    #[error("Invalid EPRT format")]
    Eprt,
    /// What should be an address of a reply is none.
    #[error("this is not an address and port")]
    Address,
    /// The family of an address is neither 1 nor 2 (RFC 2428 §2).
    #[error("Network protocol not supported, use (1,2)")]
    Family,
    /// A time is none.
    #[error("Invalid time format: YYYYMMDDHHMMSS")]
    Time,
    /// A parameter has a value that does not exist here.
    #[error("This parameter is not supported")]
    Parameter,
    /// A byte that no line may have.
    #[error("Invalid byte in the command")]
    Byte,
    /// What should be a reply does not begin with its code.
    #[error("a reply without a code")]
    Code,
}

#[cfg(test)]
mod tests;
