//! A failure made without its handler has the form of its procedure's result.

use wire::nfs3::*;
use wire::xdr::{Decode, DecodeError};

use super::*;

fn decodes<'a, O: Decode<'a>, F: Decode<'a>>(mut r: Reader<'a>) -> Result<(), DecodeError> {
    let result = Res::<O, F>::decode(&mut r)?;
    assert_eq!(result.status(), Nfsstat3::IO);
    r.finish()
}

#[test]
fn failures_decode_as_their_procedure() {
    let nfs3 = Nfs3(Arc::new(Service {
        shares: Arc::default(),
        mounts: std::sync::Mutex::default(),
        verifier: [0; 8],
    }));
    for proc in 1..22 {
        let mut out = ReplyBuf::default();
        assert_eq!(nfs3.fail(proc, Status::Io, &mut out), 5);
        let r = Reader::new(out.as_slice());
        match Proc(proc) {
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
        .unwrap_or_else(|e| panic!("{}: {e}", Proc::name(proc)));
    }
}
