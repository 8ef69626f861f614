//! Limits of the test service (`docs/protocols/echo.md`).

use std::time::Duration;

/// Longest line in bytes, without its end: a screen of text, and small compared with any budget.
pub const ECHO_LINE_MAX: usize = 4 << 10;
/// Bytes that a connection receives before they are answered: some lines of that length. As much
/// again may wait to be sent.
pub const ECHO_RECEIVE: usize = 16 << 10;
/// Time until a user must have signed in: clients that only occupy a connection are disconnected.
pub const ECHO_SIGN_IN_TIME_MAX: Duration = Duration::from_secs(30);
/// Time without a line after which a connection is closed, unless set otherwise.
pub const ECHO_IDLE: Duration = Duration::from_secs(300);
