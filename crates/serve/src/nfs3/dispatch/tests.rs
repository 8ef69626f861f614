//! A failure made without its handler has the form of its procedure's result.

use wire::nfs3::*;
use wire::rpc::ReplyHeader;
use wire::xdr::{Decode, DecodeError};

use super::*;

fn decodes<'a, O: Decode<'a>, F: Decode<'a>>(mut r: Reader<'a>) -> Result<(), DecodeError> {
    let result = Res::<O, F>::decode(&mut r)?;
    assert_eq!(result.status(), Nfsstat3::IO);
    r.finish()
}

#[test]
fn failures_decode_as_their_procedure() {
    for proc in 1..22 {
        let mut out = ReplyBuf::default();
        let mut facts = OpRecord { protocol: 1, op: proc, bytes: 9, ..OpRecord::default() };
        failure(7, Status::Io, &mut out, &mut facts);
        assert_eq!((facts.status, facts.bytes), (5, 0));
        let mut r = Reader::new(&out.as_slice()[4..]);
        assert_eq!(ReplyHeader::decode(&mut r).unwrap().xid, 7);
        match Proc(u32::from(proc)) {
            Proc::GETATTR => decodes::<Fattr3, ()>(r),
            Proc::RENAME => decodes::<RenameWcc, RenameWcc>(r),
            Proc::LINK => decodes::<LinkWcc, LinkWcc>(r),
            Proc::LOOKUP | Proc::ACCESS | Proc::READLINK | Proc::READ => {
                decodes::<(), PostOpAttr>(r)
            }
            Proc::READDIR | Proc::READDIRPLUS | Proc::FSSTAT | Proc::FSINFO | Proc::PATHCONF => {
                decodes::<(), PostOpAttr>(r)
            }
            _ => decodes::<(), WccData>(r),
        }
        .unwrap_or_else(|e| panic!("{}: {e}", Proc::name(u32::from(proc))));
    }
}
