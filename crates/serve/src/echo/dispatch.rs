//! What a line comes to.

use std::net::IpAddr;
use std::sync::Arc;

use vfs::identity::Person;
use wire::echo::{Op, SignIn, Status, answer, text};

use super::Core;
use crate::exec::DispatchResult;

/// The result of a line: the user that has signed in by it, and the operation to record.
pub(super) struct Outcome {
    pub person: Option<Arc<Person>>,
    pub op: Op,
    pub status: Status,
}

/// The first line: signs in a user from this address, and appends the response to `out`.
pub(super) async fn sign_in(core: &Core, from: IpAddr, line: &[u8], out: &mut Vec<u8>) -> Outcome {
    let (person, status) = match SignIn::decode(text(line)) {
        Err(_) => (None, Status::Malformed),
        Ok(SignIn { user, password }) => {
            let server = &core.server;
            let judged = server.sign_ins.password(&server.identity, from, user, password).await;
            match judged {
                Ok(person) => (Some(person), Status::Ok),
                Err(_) => (None, Status::Refused),
            }
        }
    };
    out.extend_from_slice(answer(person.is_some()));
    Outcome { person, op: Op::SignIn, status }
}

/// A line of a signed-in user: appends it to `out`.
pub(super) fn echo(line: &[u8], out: &mut Vec<u8>) -> DispatchResult {
    out.extend_from_slice(line);
    DispatchResult::Done
}
