//! ONC Remote Procedure Call, version 2 (RFC 5531): record marking over TCP, credentials, call and
//! reply headers. The arguments and results belong to the programs.

mod auth;
mod call;
mod record;
mod reply;

pub use auth::{AUTH_TLS, Auth, AuthSys, Gids, STARTTLS};
pub use call::{CallError, CallHeader, open_call};
pub use record::{
    Framed, Framer, RecordError, RecordMark, begin_record, end_record, end_record_with_tail,
};
pub use reply::{
    Accepted, AuthStat, Denied, REPLY_SUCCESS_LEN, ReplyBody, ReplyHeader, auth_error,
    garbage_args, proc_unavail, prog_mismatch, prog_unavail, rpc_mismatch, starttls, success,
    system_err,
};

/// The only version of ONC RPC in use.
pub const RPC_VERSION: u32 = 2;

#[cfg(test)]
mod tests;
