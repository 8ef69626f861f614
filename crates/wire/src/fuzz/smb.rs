//! Targets of SMB: messages of both directions, sign-in, pipes, security descriptors.

use crate::smb::charge::Payload;
use crate::smb::codec::{Field, Result};
use crate::smb::dir::{self, Level, Pattern};
use crate::smb::header::{Command, HEADER, Header, Messages, flags};
use crate::smb::security::Descriptor;
use crate::smb::{
    class, contexts, create, durable, info, io, ioctl, lease, lock, negotiate, notify, ntlm, rpc,
    session, spnego, tree, utf16,
};

/// What `decode` takes of a message must mean the same after `put`.
fn same<T: PartialEq + std::fmt::Debug>(
    message: &[u8],
    decode: impl Fn(&[u8]) -> Result<T>,
    put: impl Fn(&T, &mut Vec<u8>),
) -> bool {
    let Ok(first) = decode(message) else { return false };
    let mut again = message.get(..HEADER).unwrap_or_default().to_vec();
    put(&first, &mut again);
    assert_eq!(decode(&again).as_ref(), Ok(&first));
    true
}

/// The same for types that borrow from the message.
macro_rules! smb_same {
    ($type:ty, $message:expr, $put:expr) => {{
        let message: &[u8] = $message;
        match <$type>::decode(message) {
            Ok(first) => {
                let mut again = message.get(..HEADER).unwrap_or_default().to_vec();
                let put: fn(&$type, &mut Vec<u8>) = $put;
                put(&first, &mut again);
                assert_eq!(<$type>::decode(&again).as_ref(), Ok(&first));
                true
            }
            Err(_) => false,
        }
    }};
}

/// A frame: each message of its compound, by its command and direction.
pub fn smb_message(data: &[u8]) -> bool {
    let mut taken = 0;
    for message in Messages::new(data) {
        let Ok((header, message)) = message else { return false };
        let mut again = Vec::new();
        header.put(&mut again);
        assert_eq!(Header::decode(&again), Ok(header));
        let is_taken = match header.has(flags::RESPONSE) {
            true => response(header.command, message),
            false => request(header.command, message),
        };
        if !is_taken {
            return false;
        }
        taken += 1;
    }
    taken > 0
}

fn request(command: Command, message: &[u8]) -> bool {
    // Any values of the fields result in a number of credits.
    assert!((1..=1 << 20).contains(&Payload::of(command, message).charge()));
    match command {
        Command::NEGOTIATE => same(message, negotiate::Request::decode, |r, out| r.put(out, 0)),
        Command::SESSION_SETUP => {
            smb_same!(session::Request<'_>, message, |r, out| r.put(out))
        }
        Command::TREE_CONNECT => smb_same!(tree::Request<'_>, message, |r, out| r.put(out)),
        Command::CREATE => {
            let taken = smb_same!(create::Request<'_>, message, |r, out| r.put(out, 0));
            if let Ok(request) = create::Request::decode(message) {
                leases(request.contexts);
                let _ = utf16::decode_name(request.name);
            }
            taken
        }
        Command::CLOSE => same(message, create::CloseRequest::decode, |r, out| r.put_body(out)),
        Command::FLUSH => same(message, io::FlushRequest::decode, |r, out| r.put_body(out)),
        Command::READ => same(message, io::ReadRequest::decode, |r, out| r.put(out)),
        Command::WRITE => smb_same!(io::WriteRequest<'_>, message, |r, out| r.put(out)),
        Command::CHANGE_NOTIFY => {
            same(message, notify::ChangeNotify::decode, |r, out| r.put_body(out))
        }
        Command::LOCK => same(message, lock::Request::decode, |r, out| r.put(out)),
        Command::IOCTL => {
            if let Ok(request) = ioctl::Request::decode(message) {
                let _ = ioctl::ValidateNegotiate::decode(request.input);
                let _ = ioctl::CopyChunks::decode(request.input);
            }
            smb_same!(ioctl::Request<'_>, message, |r, out| r.put(out))
        }
        Command::QUERY_DIRECTORY => {
            if let Ok(request) = dir::Request::decode(message)
                && request.pattern.len() <= 64
                && let Ok(pattern) = Pattern::decode(request.pattern)
            {
                let _ = pattern.matches(request.pattern);
            }
            smb_same!(dir::Request<'_>, message, |r, out| r.put(out))
        }
        Command::QUERY_INFO => smb_same!(info::QueryRequest<'_>, message, |r, out| r.put(out)),
        Command::OPLOCK_BREAK => same(message, lease::Ack::decode, |r, out| r.put(out)),
        Command::SET_INFO => {
            if let Ok(request) = info::SetRequest::decode(message) {
                let _ = class::NewName::decode(request.data);
            }
            smb_same!(info::SetRequest<'_>, message, |r, out| r.put(out))
        }
        _ => same(message, session::Empty::decode, |r, out| r.put_body(out)),
    }
}

fn response(command: Command, message: &[u8]) -> bool {
    match command {
        Command::NEGOTIATE => same(message, negotiate::Response::decode, |r, out| r.put(out, 0)),
        Command::SESSION_SETUP => smb_same!(session::Response<'_>, message, |r, out| r.put(out)),
        Command::TREE_CONNECT => same(message, tree::Response::decode, |r, out| r.put_body(out)),
        Command::CREATE => smb_same!(create::Response<'_>, message, |r, out| r.put(out)),
        Command::OPLOCK_BREAK => same(message, lease::Notice::decode, |r, out| r.put(out)),
        Command::CLOSE => same(message, create::CloseResponse::decode, |r, out| r.put_body(out)),
        Command::READ => io::read_data(message).is_ok(),
        Command::WRITE => same(message, io::WriteResponse::decode, |r, out| r.put_body(out)),
        Command::IOCTL => smb_same!(ioctl::Response<'_>, message, |r, out| r.put(out, 0)),
        Command::QUERY_DIRECTORY | Command::QUERY_INFO => {
            let Ok(output) = dir::output(message) else { return false };
            for level in [Level::Directory, Level::Both, Level::IdBoth, Level::Names] {
                let _ = dir::entries(level, output);
            }
            true
        }
        _ => same(message, session::Empty::decode, |r, out| r.put_body(out)),
    }
}

/// Leases of create contexts mean the same once more.
fn leases(list: &[u8]) {
    let list = contexts::decode(list).unwrap_or_default();
    for context in list.iter().filter(|context| context.name == contexts::LEASE) {
        if let Ok(lease) = lease::Lease::decode(context.data) {
            let mut again = Vec::new();
            lease.put(&mut again);
            assert_eq!(again, context.data);
        }
    }
}

/// Contexts of durable handles and of applications mean the same once more.
fn durable_handles(list: &[u8]) {
    for context in contexts::decode(list).unwrap_or_default() {
        let mut again = Vec::new();
        match context.name {
            contexts::DURABLE_V2 => {
                let Ok(one) = durable::DurableV2::decode(context.data) else { continue };
                one.put(&mut again);
            }
            contexts::DURABLE_V2_RECONNECT => {
                let Ok(one) = durable::ReconnectV2::decode(context.data) else { continue };
                one.put(&mut again);
            }
            contexts::APP_INSTANCE => {
                let Ok(one) = durable::AppInstance::decode(context.data) else { continue };
                one.put(&mut again);
            }
            contexts::APP_VERSION => {
                let Ok(one) = durable::AppVersion::decode(context.data) else { continue };
                one.put(&mut again);
            }
            contexts::DURABLE_RECONNECT => {
                let Ok(file) = durable::reconnect_v1(context.data) else { continue };
                file.put(&mut again);
            }
            _ => continue,
        }
        assert_eq!(again, context.data);
    }
}

/// Create contexts: they are the same once more.
pub fn smb_contexts(data: &[u8]) -> bool {
    let Ok(first) = contexts::decode(data) else { return false };
    let mut again = Vec::new();
    contexts::put(&first, &mut again);
    assert_eq!(contexts::decode(&again).as_ref(), Ok(&first));
    leases(data);
    durable_handles(data);
    !first.is_empty()
}

/// Tokens of a sign-in: SPNEGO, or plain NTLM.
pub fn smb_sign_in(data: &[u8]) -> bool {
    let token = match spnego::client(data) {
        Ok(token) => token.token.unwrap_or_default(),
        Err(_) => data,
    };
    match ntlm::kind(token) {
        Ok(ntlm::Kind::Negotiate) => ntlm::negotiate_flags(token).is_ok(),
        Ok(ntlm::Kind::Challenge) => {
            let Ok(challenge) = ntlm::Challenge::decode(token) else { return false };
            assert_eq!(ntlm::Challenge::decode(&challenge.encode()), Ok(challenge));
            true
        }
        Ok(ntlm::Kind::Authenticate) => {
            let Ok(auth) = ntlm::Authenticate::decode(token) else { return false };
            let _ = (auth.text(auth.user), ntlm::response_facts(auth.nt));
            let _ = ntlm::session_key([1; 16], &auth);
            assert_eq!(ntlm::verify(&[1; 16], &[2; 8], auth.nt), None);
            true
        }
        Err(_) => token.is_empty() && spnego::client(data).is_ok(),
    }
}

/// A PDU on a pipe.
pub fn smb_rpc(data: &[u8]) -> bool {
    let share = rpc::ShareInfo { name: "share".into(), kind: 0, remark: String::new() };
    let server = rpc::Server { name: "server".into(), shares: vec![share] };
    let _ = rpc::shares(data);
    rpc::Association::default().answer(data, &server).is_ok()
}

/// A security descriptor: it means the same once more, without what is not looked at.
pub fn smb_descriptor(data: &[u8]) -> bool {
    let Ok(first) = Descriptor::decode(data) else { return false };
    let mut again = Vec::new();
    first.put(&mut again);
    assert_eq!(Descriptor::decode(&again), Ok(first));
    true
}

#[cfg(test)]
mod tests;
