//! Common output of all commands: results, failures, exit codes.

pub use base::failure::{DEGRADED, Failure, OrFailure, chain};
pub use base::out::{note, offer, print};
pub use service::reach::{shell_quote, url_encode};

/// Pretty JSON of anything, with a line end.
pub fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).map_or_else(|_| "null\n".into(), |text| text + "\n")
}
