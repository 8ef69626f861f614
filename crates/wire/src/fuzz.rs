//! One function per fuzz target: takes any bytes, must not panic, and checks that whatever can be
//! decoded means the same after encoding and decoding it again. Shared by `fuzz/` (coverage-guided,
//! nightly compiler) and `tests/fuzz_smoke.rs` (every test run). Not part of the interface.
//!
//! Every target returns whether it took the bytes as a message, so that seeds can be checked too.

use crate::http::chunked::{ChunkStep, Chunks};
use crate::http::head::{self, Head};
use crate::http::{date, select, target};
use crate::rpc::{self, CallHeader, Framed, Framer, ReplyHeader};
use crate::xdr::{Decode, Encode, Reader, Writer, decode_all};
use crate::{dav, dsync, mount3, nfs3, nfs4, nlm4, nsm, portmap, sftp};

mod bridge;
#[cfg(any(test, feature = "test-services"))]
mod echo;
mod ftp;
mod iscsi;
mod rpcrdma;
mod scsi;
mod smb;
mod ssh;
#[cfg(test)]
mod tests;

pub use bridge::bridge;
#[cfg(any(test, feature = "test-services"))]
pub use echo::echo;
pub use ftp::any as ftp_any;
pub use iscsi::{iscsi_login, iscsi_pdu};
pub use rpcrdma::rpcrdma_header;
pub use scsi::{scsi_cdb, scsi_data};
pub use smb::{smb_contexts, smb_descriptor, smb_message, smb_rpc, smb_sign_in};
pub use ssh::{ssh_key, ssh_message, ssh_transport};

/// A target: its name (also of its corpus folder) and its function.
pub type Target = (&'static str, fn(&[u8]) -> bool);

/// All targets.
pub const TARGETS: &[Target] = &[
    ("rpc_record", rpc_record),
    ("rpc_call", rpc_call),
    ("nfs3_args", nfs3_args),
    ("nfs3_res", nfs3_res),
    ("mount3", mount3_any),
    ("nfs4_compound", nfs4_compound),
    ("nlm4", nlm4_any),
    ("ftp", ftp::any),
    ("dav_xml", dav_xml),
    ("dav_if", dav_if),
    ("sftp", sftp_packets),
    ("ssh_message", ssh_message),
    ("ssh_key", ssh_key),
    ("ssh_transport", ssh_transport),
    ("http_head", http_head),
    ("http_chunks", http_chunks),
    ("http_fields", http_fields),
    ("bridge", bridge),
    ("dsync", dsync_frames),
    ("iscsi_pdu", iscsi_pdu),
    ("iscsi_login", iscsi_login),
    ("scsi_cdb", scsi_cdb),
    ("scsi_data", scsi_data),
    ("smb_message", smb_message),
    ("smb_contexts", smb_contexts),
    ("smb_sign_in", smb_sign_in),
    ("smb_rpc", smb_rpc),
    ("smb_descriptor", smb_descriptor),
    ("rpcrdma_header", rpcrdma_header),
    #[cfg(any(test, feature = "test-services"))]
    ("echo", echo),
];

macro_rules! round_trip {
    ($type:ty, $bytes:expr) => {{
        let first = decode_all::<$type>($bytes);
        if let Ok(first) = &first {
            let mut again = Vec::new();
            first.encode(&mut Writer::new(&mut again));
            assert_eq!(decode_all::<$type>(&again).as_ref(), Ok(first));
        }
        first.is_ok()
    }};
}

/// A stream of records: the framer's answer at every length must agree with that for the whole.
pub fn rpc_record(data: &[u8]) -> bool {
    let (mut framer, mut partial) = (Framer::new(), Framer::new());
    let (mut rest, mut records) = (data, 0);
    loop {
        match framer.next(rest) {
            Ok(Framed::Record { body, consumed }) => {
                // A byte less is not enough, and the framer knows how much is at least missing.
                let less = &rest[..consumed - 1];
                match partial.next(less) {
                    Ok(Framed::Need(n)) => assert!(n > less.len() && n <= consumed),
                    other => panic!("record of {consumed} bytes, but a byte less gives {other:?}"),
                }
                let mut sent = Vec::new();
                let w = &mut Writer::new(&mut sent);
                let mark = rpc::begin_record(w);
                w.raw(body);
                rpc::end_record(w, mark);
                let whole = Framed::Record { body, consumed: sent.len() };
                assert_eq!(partial.next(&sent), Ok(whole));
                rest = &rest[consumed..];
                records += 1;
            }
            Ok(Framed::Need(n)) => {
                assert!(n > rest.len() && n <= Framer::INPUT_MAX);
                return records > 0 && rest.is_empty();
            }
            Err(_) => return false,
        }
    }
}

/// The header of a call or of a reply.
pub fn rpc_call(data: &[u8]) -> bool {
    let mut reply = Vec::new();
    match rpc::open_call(data) {
        Ok((call, args)) => {
            let mut again = Vec::new();
            call.encode(&mut Writer::new(&mut again));
            assert_eq!(decode_all::<CallHeader<'_>>(&again), Ok(call));
            assert!(args.rest().len() <= data.len());
            return true;
        }
        Err(error) => {
            if error.encode_reply(&mut Writer::new(&mut reply)) {
                assert!(decode_all::<ReplyHeader<'_>>(&reply).is_ok());
            }
        }
    }
    round_trip!(ReplyHeader<'_>, data)
}

/// The arguments of an NFSv3 procedure; its number comes first.
pub fn nfs3_args(data: &[u8]) -> bool {
    use nfs3::*;
    let mut r = Reader::new(data);
    let Ok(proc) = r.u32("proc") else { return false };
    let rest = r.rest();
    match Proc(proc) {
        Proc::NULL => rest.is_empty(),
        Proc::GETATTR => round_trip!(GetattrArgs<'_>, rest),
        Proc::SETATTR => round_trip!(SetattrArgs<'_>, rest),
        Proc::LOOKUP => round_trip!(LookupArgs<'_>, rest),
        Proc::ACCESS => round_trip!(AccessArgs<'_>, rest),
        Proc::READLINK => round_trip!(ReadlinkArgs<'_>, rest),
        Proc::READ => round_trip!(ReadArgs<'_>, rest),
        Proc::WRITE => round_trip!(WriteArgs<'_>, rest),
        Proc::CREATE => round_trip!(CreateArgs<'_>, rest),
        Proc::MKDIR => round_trip!(MkdirArgs<'_>, rest),
        Proc::SYMLINK => round_trip!(SymlinkArgs<'_>, rest),
        Proc::MKNOD => round_trip!(MknodArgs<'_>, rest),
        Proc::REMOVE | Proc::RMDIR => round_trip!(RemoveArgs<'_>, rest),
        Proc::RENAME => round_trip!(RenameArgs<'_>, rest),
        Proc::LINK => round_trip!(LinkArgs<'_>, rest),
        Proc::READDIR => round_trip!(ReaddirArgs<'_>, rest),
        Proc::READDIRPLUS => round_trip!(ReaddirplusArgs<'_>, rest),
        Proc::FSSTAT => round_trip!(FsstatArgs<'_>, rest),
        Proc::FSINFO => round_trip!(FsinfoArgs<'_>, rest),
        Proc::PATHCONF => round_trip!(PathconfArgs<'_>, rest),
        Proc::COMMIT => round_trip!(CommitArgs<'_>, rest),
        _ => false,
    }
}

/// The results of an NFSv3 procedure; its number comes first.
pub fn nfs3_res(data: &[u8]) -> bool {
    use nfs3::*;
    let mut r = Reader::new(data);
    let Ok(proc) = r.u32("proc") else { return false };
    let rest = r.rest();
    match Proc(proc) {
        Proc::NULL => rest.is_empty(),
        Proc::GETATTR => round_trip!(GetattrRes, rest),
        Proc::SETATTR => round_trip!(SetattrRes, rest),
        Proc::LOOKUP => round_trip!(LookupRes<'_>, rest),
        Proc::ACCESS => round_trip!(AccessRes, rest),
        Proc::READLINK => round_trip!(ReadlinkRes<'_>, rest),
        Proc::READ => round_trip!(ReadRes<'_>, rest),
        Proc::WRITE => round_trip!(WriteRes, rest),
        Proc::CREATE | Proc::MKDIR | Proc::SYMLINK | Proc::MKNOD => {
            round_trip!(CreateRes<'_>, rest)
        }
        Proc::REMOVE | Proc::RMDIR => round_trip!(RemoveRes, rest),
        Proc::RENAME => round_trip!(RenameRes, rest),
        Proc::LINK => round_trip!(LinkRes, rest),
        Proc::READDIR => round_trip!(ReaddirRes<'_>, rest) && entries_agree(rest, false),
        Proc::READDIRPLUS => round_trip!(ReaddirplusRes<'_>, rest) && entries_agree(rest, true),
        Proc::FSSTAT => round_trip!(FsstatRes, rest),
        Proc::FSINFO => round_trip!(FsinfoRes, rest),
        Proc::PATHCONF => round_trip!(PathconfRes, rest),
        Proc::COMMIT => round_trip!(CommitRes, rest),
        _ => false,
    }
}

/// A listing written entry by entry must equal the decoded one.
fn entries_agree(res: &[u8], plus: bool) -> bool {
    use nfs3::*;
    let (mut again, limit) = (Vec::new(), u32::MAX);
    let w = &mut Writer::new(&mut again);
    if plus {
        let Ok(Res::Ok(ok)) = decode_all::<ReaddirplusRes<'_>>(res) else { return true };
        let mut list = ReaddirplusEncoder::begin(w, limit, limit);
        for e in ok.entries.iter() {
            let handle = e.name_handle.map(|handle| handle.0);
            assert!(list.add(e.fileid, e.name.0, e.cookie, &e.name_attributes, handle));
        }
        list.finish(ok.dir_attributes.as_ref(), ok.cookieverf, ok.eof);
        let decoded = decode_all::<ReaddirplusRes<'_>>(&again);
        let Ok(Res::Ok(other)) = decoded else { panic!("listing written: {decoded:?}") };
        assert!(ok.entries.iter().eq(other.entries.iter()));
    } else {
        let Ok(Res::Ok(ok)) = decode_all::<ReaddirRes<'_>>(res) else { return true };
        let mut list = ReaddirEncoder::begin(w, limit);
        for e in ok.entries.iter() {
            assert!(list.add(e.fileid, e.name.0, e.cookie));
        }
        list.finish(ok.dir_attributes.as_ref(), ok.cookieverf, ok.eof);
        let decoded = decode_all::<ReaddirRes<'_>>(&again);
        let Ok(Res::Ok(other)) = decoded else { panic!("listing written: {decoded:?}") };
        assert!(ok.entries.iter().eq(other.entries.iter()));
    }
    true
}

/// A message of MOUNT or the port mapper, selected by the first number.
pub fn mount3_any(data: &[u8]) -> bool {
    let mut r = Reader::new(data);
    let Ok(which) = r.u32("which") else { return false };
    let rest = r.rest();
    match which {
        0 => round_trip!(mount3::MntArgs<'_>, rest),
        1 => round_trip!(mount3::MntRes<'_>, rest),
        2 => round_trip!(mount3::DumpRes<'_>, rest),
        3 => round_trip!(mount3::ExportRes<'_>, rest),
        4 => round_trip!(portmap::Mapping, rest),
        5 => round_trip!(portmap::DumpRes, rest),
        6 => round_trip!(portmap::Rpcb<'_>, rest),
        7 => round_trip!(portmap::RpcbDumpRes<'_>, rest),
        _ => false,
    }
}

/// A message of NLM or NSM, selected by the first number.
pub fn nlm4_any(data: &[u8]) -> bool {
    let mut r = Reader::new(data);
    let Ok(which) = r.u32("which") else { return false };
    let rest = r.rest();
    for proc in nlm4::Proc::ALL {
        assert!(nlm4::handle_in(*proc, rest).is_none_or(|fh| fh.len() <= rest.len()));
    }
    match which {
        0 => round_trip!(nlm4::TestArgs<'_>, rest),
        1 => round_trip!(nlm4::TestRes<'_>, rest),
        2 => round_trip!(nlm4::LockArgs<'_>, rest),
        3 => round_trip!(nlm4::CancelArgs<'_>, rest),
        4 => round_trip!(nlm4::UnlockArgs<'_>, rest),
        5 => round_trip!(nlm4::Nlm4Res<'_>, rest),
        6 => round_trip!(nlm4::ShareArgs<'_>, rest),
        7 => round_trip!(nlm4::ShareRes<'_>, rest),
        8 => round_trip!(nlm4::NotifyArgs<'_>, rest),
        9 => round_trip!(nsm::StatArgs<'_>, rest),
        10 => round_trip!(nsm::SmStatRes, rest),
        11 => round_trip!(nsm::MonArgs<'_>, rest),
        12 => round_trip!(nsm::MonId<'_>, rest),
        13 => round_trip!(nsm::MyId<'_>, rest),
        14 => round_trip!(nsm::NotifyArgs<'_>, rest),
        _ => false,
    }
}

/// Operations one by one, until one is wrong: each must mean the same once more.
macro_rules! operations {
    ($type:ident, $r:expr, $count:expr) => {{
        let mut all = true;
        for _ in 0..$count {
            let before = $r.rest();
            if $type::decode(&mut $r).is_err() {
                all = false;
                break;
            }
            let used = before.len() - $r.rest().len();
            assert!(round_trip!($type<'_>, before.get(..used).unwrap_or_default()));
        }
        all && $r.rest().is_empty()
    }};
}

/// A COMPOUND or CB_COMPOUND, or the results of one, selected by the first number.
pub fn nfs4_compound(data: &[u8]) -> bool {
    use nfs4::*;
    let mut r = Reader::new(data);
    let Ok(which) = r.u32("which") else { return false };
    match which {
        0 => match CompoundArgs::decode(&mut r) {
            Ok(head) => operations!(ArgOp, r, head.count),
            Err(_) => false,
        },
        1 => match CompoundRes::decode(&mut r) {
            Ok(head) => operations!(ResOp, r, head.count),
            Err(_) => false,
        },
        2 => match CbCompoundArgs::decode(&mut r) {
            Ok(head) => operations!(CbArgOp, r, head.count),
            Err(_) => false,
        },
        3 => match CbCompoundRes::decode(&mut r) {
            Ok(head) => operations!(CbResOp, r, head.count),
            Err(_) => false,
        },
        4 => round_trip!(Attrs4<'_>, r.rest()),
        _ => false,
    }
}

/// A body of WebDAV: what is taken means the same when it is written and read again.
pub fn dav_xml(data: &[u8]) -> bool {
    use dav::xml::{Element, Writer};
    let _ = (dav::body::Find::parse(data), dav::body::LockInfo::parse(data));
    if let Ok(patches) = dav::body::Patch::parse(data) {
        assert!(!patches.is_empty());
    }
    let Ok(element) = Element::parse(data) else { return false };
    let mut text = String::new();
    Writer::new(&mut text).element(&element);
    // Output declares its namespaces repeatedly: it may exceed the input limit.
    if text.len() <= base::limits::DAV_BODY_MAX {
        match Element::parse(text.as_bytes()) {
            Ok(again) => assert_eq!(again, element),
            // Declarations that are new count as attributes do.
            Err(error) => assert_eq!(error, dav::xml::XmlError::TooLarge),
        }
    }
    true
}

/// The headers of WebDAV: `If` means the same when it is written and read again.
pub fn dav_if(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let _ = (dav::header::timeout(text), dav::header::lock_token(text));
    if let Some(target) = dav::header::target(text) {
        assert!(target.path.starts_with('/'));
    }
    let Ok(header) = dav::if_header::If::parse(text) else { return false };
    let again = header.to_string();
    match dav::if_header::If::parse(&again) {
        Ok(again) => assert_eq!(again, header),
        Err(error) => assert_eq!(error, dav::if_header::IfError::TooLarge),
    }
    true
}

/// A stream of dsync's frames, of either direction: each must mean the same once more.
pub fn dsync_frames(data: &[u8]) -> bool {
    let (mut rest, mut frames) = (data, 0);
    while let Some((head, after)) = rest.split_first_chunk() {
        let Ok(length) = dsync::frame::length(*head) else { return false };
        let Some((body, left)) = after.split_at_checked(length) else { return false };
        if !round_trip!(dsync::Message<'_>, body) {
            return false;
        }
        (rest, frames) = (left, frames + 1);
    }
    frames > 0 && rest.is_empty()
}

/// A stream of SFTP packets, of either direction: each must mean the same once more.
pub fn sftp_packets(data: &[u8]) -> bool {
    let (mut rest, mut packets) = (data, 0);
    loop {
        match sftp::packet::cut(rest) {
            Ok(Ok(packet)) => {
                if !sftp_packet(packet) {
                    return false;
                }
                rest = rest.get(packet.consumed..).unwrap_or_default();
                packets += 1;
            }
            Ok(Err(need)) => {
                assert!(need > rest.len());
                return packets > 0 && rest.is_empty();
            }
            Err(_) => return false,
        }
    }
}

fn sftp_packet(packet: sftp::packet::Packet<'_>) -> bool {
    use sftp::{PacketType, Reply, Request};
    if matches!(packet.kind, PacketType::INIT | PacketType::VERSION) {
        return round_trip!(sftp::packet::Hello<'_>, packet.body);
    }
    let mut r = Reader::new(packet.body);
    let Ok(id) = r.u32("id") else { return false };
    let mut again = Vec::new();
    if let Ok(Some(request)) = Request::decode(packet.kind, &mut r.clone()) {
        request.put(&mut Writer::new(&mut again), id);
        let mut r = Reader::new(again.get(9..).unwrap_or_default());
        assert_eq!(Request::decode(packet.kind, &mut r), Ok(Some(request)));
        return true;
    }
    if let Ok(Some(reply)) = Reply::decode(packet.kind, &mut r) {
        // Words that an old server leaves out are sent as empty ones.
        reply.put(&mut Writer::new(&mut again), id);
        assert!(matches!(sftp::packet::cut(&again), Ok(Ok(_))));
        return true;
    }
    false
}

/// A head of HTTP/1.1: found at the same place whatever the pieces; its target names something
/// below the top, and the same after encoding and decoding it.
pub fn http_head(data: &[u8]) -> bool {
    let found = head::whole(data, 0);
    let half = data.len() / 2;
    let before = head::whole(data.get(..half).unwrap_or_default(), 0);
    if let (Ok(None), Ok(Some(end))) = (&before, &found) {
        assert_eq!(head::whole(data, half), Ok(Some(*end)));
    }
    let Ok(Some(end)) = found else { return false };
    assert!(end <= data.len());
    let Ok(head) = Head::parse(data.get(..end).unwrap_or_default()) else { return false };
    let path = &head.target.path;
    assert!(!path.contains(&0));
    if path != b"*" {
        let again = target::decode_path(target::percent_encode(path).as_bytes());
        assert_eq!(again.map(|(path, _)| path).as_ref(), Ok(path));
    }
    for (_, value) in head.headers.iter() {
        if let Some(when) = std::str::from_utf8(value).ok().and_then(date::parse) {
            assert_eq!(date::parse(&date::write(when)), Some(when));
        }
    }
    true
}

/// Data and its length, of a body in chunks that comes in pieces of this length.
fn chunks(data: &[u8], piece: usize) -> Option<(Vec<u8>, usize)> {
    let (mut chunks, mut all, mut at) = (Chunks::default(), Vec::new(), 0);
    while !chunks.has_ended() {
        let rest = data.get(at..).filter(|rest| !rest.is_empty())?;
        match chunks.step(rest.get(..piece).unwrap_or(rest)).ok()? {
            ChunkStep::Skip(count) => at += count,
            ChunkStep::Data(count) => {
                all.extend_from_slice(rest.get(..count).unwrap_or_default());
                at += count;
            }
            ChunkStep::End => break,
        }
    }
    Some((all, at))
}

/// A body in chunks: the same data, and the same end, whatever the pieces.
pub fn http_chunks(data: &[u8]) -> bool {
    let whole = chunks(data, usize::MAX);
    for piece in [1, 7] {
        assert_eq!(chunks(data, piece), whole);
    }
    whole.is_some()
}

/// Fields that select, and forms: ranges lie within the file, whatever its size (the first eight
/// bytes), in order and apart if any were merged; tags are parts of the field.
pub fn http_fields(data: &[u8]) -> bool {
    let Some((size, value)) = data.split_first_chunk() else { return false };
    let size = u64::from_be_bytes(*size);
    for tag in select::tags(value) {
        if let select::Tag::Entity { tag, .. } = tag {
            assert!(tag.len() >= 2 && tag.starts_with(b"\"") && tag.ends_with(b"\""));
        }
    }
    if let Some((host, path)) = target::authority(value) {
        assert!(host.len() + path.len() <= value.len());
    }
    let text = String::from_utf8_lossy(value);
    let _ = (target::form_value(&text, "a"), crate::http::head::check_host(value));
    let select::Selection::Ranges(parts) = select::ranges(value, size) else { return false };
    assert!(!parts.is_empty() && parts.len() <= base::limits::HTTP_RANGES_MAX);
    assert!(parts.iter().all(|(start, end)| start < end && *end <= size));
    let mut sorted = parts;
    sorted.sort_unstable();
    assert!(sorted.windows(2).all(|two| two[0].1 < two[1].0), "they overlap or touch");
    true
}
