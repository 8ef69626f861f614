//! Lines to type to use a unit.

use std::net::SocketAddr;
use std::path::PathBuf;

use serve::iscsi::Iscsi as Server;

use crate::reach;

/// The portal for initiators: the first one that is configured, or the address on which the service
/// listens.
pub fn portal(server: &Server, listens: SocketAddr) -> SocketAddr {
    server.settings().portals.first().copied().unwrap_or(listens)
}

/// How a unit is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LunAccess {
    /// `PROJECT/NAME`.
    pub name: String,
    /// Where initiators connect, with an address that another host can use.
    pub portal: String,
    /// The name of the target.
    pub target: String,
    /// The number of the unit there.
    pub number: u16,
    /// Whether initiators are identified by their names alone; else they sign in by CHAP.
    pub is_open: bool,
    /// The name that initiators sign in with; `None` where each initiator of a group has its own.
    pub user: Option<String>,
    /// The file of the secret that goes with it, unless the configuration has one.
    pub secret_file: Option<PathBuf>,
}

impl LunAccess {
    /// The URL of the unit, without a name or a secret.
    pub fn url(&self) -> String {
        format!("iscsi://{}/{}/{}", self.portal, self.target, self.number)
    }
}

/// The lines for a unit at a target, with an address that another host can use; with the name and
/// the secret that initiators sign in with, or with words in their places.
pub fn lines(
    at: SocketAddr,
    target: &str,
    number: u16,
    sign_in: Option<(&str, &str)>,
) -> Vec<String> {
    let (user, secret) = sign_in.unwrap_or(("USER", "SECRET"));
    let at = reach::host(at);
    let url = format!("iscsi://{user}%{secret}@{at}/{target}/{number}");
    let set = |what: &str, value: &str| {
        format!(
            "iscsiadm -m node -T {target} -p {at} -o update -n node.session.auth.{what} -v {value}"
        )
    };
    vec![
        format!("qemu-img info '{url}'"),
        format!("iscsiadm -m node -T {target} -p {at} -o new"),
        set("authmethod", "CHAP"),
        set("username", user),
        set("password", secret),
        format!("iscsiadm -m node -T {target} -p {at} --login"),
    ]
}

#[cfg(test)]
mod tests;
