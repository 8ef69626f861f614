//! Lines to type to use a unit.

use std::net::SocketAddr;

use serve::iscsi::Iscsi as Server;

use crate::reach;

/// Where initiators are told to connect: the first portal that is set, or where the service
/// listens.
pub fn portal(server: &Server, listens: SocketAddr) -> SocketAddr {
    server.settings().portals.first().copied().unwrap_or(listens)
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
