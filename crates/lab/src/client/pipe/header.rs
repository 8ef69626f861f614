//! Headers of calls, encoded once and copied (RFC 5531 §9), AUTH_SYS as this process (appendix A).

use wire::rpc::{Auth, AuthSys, CallHeader, Gids};
use wire::xdr::{Encode, Writer};

/// Where the transaction number stands in a header.
pub const XID_AT: usize = 0;
/// Where the procedure stands (xid, call, RPC version, program, version, procedure).
pub const PROC_AT: usize = 20;

/// An encoded call header of procedure 0.
pub fn encoded(program: u32, version: u32) -> Vec<u8> {
    // SAFETY: these calls only return numbers.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let machine = crate::proc::host_name();
    let gids = Gids::new(&groups());
    let cred = Auth::Sys(AuthSys { stamp: 0, machine: machine.as_bytes(), uid, gid, gids });
    let call = CallHeader { xid: 0, prog: program, vers: version, proc: 0, cred, verf: Auth::None };
    let mut out = Vec::new();
    call.encode(&mut Writer::new(&mut out));
    out
}

/// Appends an encoded header with another transaction number and procedure.
#[inline]
pub fn write(w: &mut Writer<'_>, header: &[u8], xid: u32, procedure: u32) {
    let start = w.len();
    w.raw(header);
    w.patch_u32(start + XID_AT, xid);
    w.patch_u32(start + PROC_AT, procedure);
}

fn groups() -> Vec<u32> {
    let mut list = [0; 64];
    // SAFETY: `list` has 64 entries; with more groups the call fails and none are sent.
    let n = unsafe { libc::getgroups(list.len() as i32, list.as_mut_ptr()) };
    list.get(..usize::try_from(n).unwrap_or(0)).unwrap_or_default().to_vec()
}
