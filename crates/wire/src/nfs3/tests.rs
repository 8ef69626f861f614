//! Tests of the NFSv3 messages: numbers against RFC 1813, round trips and prefixes of every type,
//! and, in the modules below, golden bytes and the replies that are written piece by piece.

use proptest::prelude::*;

use super::*;
use crate::arb::Gen;
use crate::xdr::{DecodeError, Encode, Writer, decode_all};

mod golden;
mod listings;
mod read_reply;

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut Writer::new(&mut bytes));
    bytes
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Attributes in which every member differs.
fn some_attr() -> Fattr3 {
    let time = |seconds| Nfstime3 { seconds, nseconds: seconds + 1 };
    Fattr3 {
        ftype: Ftype3::REG,
        mode: 0o644,
        nlink: 3,
        uid: 1000,
        gid: 100,
        size: 0x1_0000_0002,
        used: 0x2_0000_1000,
        rdev: Specdata3 { specdata1: 8, specdata2: 9 },
        fsid: 0xaaaa_0000_bbbb,
        fileid: 0xcccc_0000_dddd,
        atime: time(100),
        mtime: time(200),
        ctime: time(300),
    }
}

/// The same in XDR words.
const SOME_ATTR: [u32; 21] = [
    1, 0o644, 3, 1000, 100, 1, 2, 2, 0x1000, 8, 9, 0xaaaa, 0xbbbb, 0xcccc, 0xdddd, 100, 101, 200,
    201, 300, 301,
];

#[test]
fn procedures_have_the_numbers_of_the_rfc() {
    let table = [
        "null",
        "getattr",
        "setattr",
        "lookup",
        "access",
        "readlink",
        "read",
        "write",
        "create",
        "mkdir",
        "symlink",
        "mknod",
        "remove",
        "rmdir",
        "rename",
        "link",
        "readdir",
        "readdirplus",
        "fsstat",
        "fsinfo",
        "pathconf",
        "commit",
    ];
    assert_eq!(Proc::COUNT, 22);
    for (number, name) in (0..).zip(table) {
        assert_eq!(Proc::name(number), name);
        assert_eq!(Proc::ALL[number as usize], Proc(number));
    }
    assert_eq!(Proc::name(22), "unknown");
    assert_eq!(Proc::COMMIT, Proc(21));
}

#[test]
fn statuses_have_the_numbers_of_the_rfc() {
    let table = [
        (0, "NFS3_OK"),
        (1, "NFS3ERR_PERM"),
        (2, "NFS3ERR_NOENT"),
        (5, "NFS3ERR_IO"),
        (6, "NFS3ERR_NXIO"),
        (13, "NFS3ERR_ACCES"),
        (17, "NFS3ERR_EXIST"),
        (18, "NFS3ERR_XDEV"),
        (19, "NFS3ERR_NODEV"),
        (20, "NFS3ERR_NOTDIR"),
        (21, "NFS3ERR_ISDIR"),
        (22, "NFS3ERR_INVAL"),
        (27, "NFS3ERR_FBIG"),
        (28, "NFS3ERR_NOSPC"),
        (30, "NFS3ERR_ROFS"),
        (31, "NFS3ERR_MLINK"),
        (63, "NFS3ERR_NAMETOOLONG"),
        (66, "NFS3ERR_NOTEMPTY"),
        (69, "NFS3ERR_DQUOT"),
        (70, "NFS3ERR_STALE"),
        (71, "NFS3ERR_REMOTE"),
        (10001, "NFS3ERR_BADHANDLE"),
        (10002, "NFS3ERR_NOT_SYNC"),
        (10003, "NFS3ERR_BAD_COOKIE"),
        (10004, "NFS3ERR_NOTSUPP"),
        (10005, "NFS3ERR_TOOSMALL"),
        (10006, "NFS3ERR_SERVERFAULT"),
        (10007, "NFS3ERR_BADTYPE"),
        (10008, "NFS3ERR_JUKEBOX"),
    ];
    let ours: Vec<_> = Nfsstat3::ALL.iter().map(|s| (s.0, s.name())).collect();
    assert_eq!(ours, table);
    assert_eq!(Nfsstat3(4711).name(), "NFS3ERR_unknown");
    assert_eq!(format!("{:?}", Nfsstat3(4711)), "Nfsstat3(4711)");
}

#[test]
fn file_types_have_the_numbers_of_the_rfc() {
    let ours: Vec<_> = Ftype3::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(ours, ["NF3REG", "NF3DIR", "NF3BLK", "NF3CHR", "NF3LNK", "NF3SOCK", "NF3FIFO"]);
    assert_eq!((Ftype3::REG.0, Ftype3::FIFO.0), (1, 7));
}

#[test]
fn unknown_numbers_survive() {
    let failed: GetattrRes = Res::Fail(Nfsstat3(4711), ());
    assert_eq!(decode_all(&encoded(&failed)), Ok(failed));
    let bytes = words(&[4711]);
    assert_eq!(decode_all(&bytes), Ok(StableHow(4711)));
}

#[test]
fn unknown_discriminants_are_named() {
    let create = words(&[1, 0, 1, 0x6100_0000, 3]);
    let error = DecodeError::BadValue { what: "createmode3", got: 3 };
    assert_eq!(decode_all::<CreateArgs<'_>>(&create), Err(error));
    let setattr = words(&[0, 0, 0, 0, 0, 3, 0, 0]);
    let error = DecodeError::BadValue { what: "time_how", got: 3 };
    assert_eq!(decode_all::<SetattrArgs<'_>>(&setattr), Err(error));
    let setattr = words(&[0, 7]);
    assert!(matches!(
        decode_all::<SetattrArgs<'_>>(&setattr),
        Err(DecodeError::BadValue { got: 7, .. })
    ));
}

#[test]
fn errors_name_the_member() {
    let handle = words(&[65]);
    let error = DecodeError::TooLong { what: "nfs_fh3", max: 64, got: 65 };
    assert_eq!(decode_all::<GetattrArgs<'_>>(&handle), Err(error));
    let read = words(&[0, 0, 0]);
    let error = DecodeError::Short { what: "ReadArgs.count" };
    assert_eq!(decode_all::<ReadArgs<'_>>(&read), Err(error));
    let write = words(&[0, 0, 0, 4, 0, 4]);
    let error = DecodeError::Short { what: "WriteArgs.data" };
    assert_eq!(decode_all::<WriteArgs<'_>>(&write), Err(error));
    // A name beyond NAME_MAX is for the server to refuse, not for the decoder.
    let name = vec![b'n'; 256];
    let what = DiropArgs { dir: Fh3(b""), name: Filename3(&name) };
    assert!(decode_all::<LookupArgs<'_>>(&encoded(&LookupArgs { what })).is_ok());
}

/// Encodes arbitrary values of each type, expects the same back, and an error for every prefix.
macro_rules! round_trips {
    ($entropy:expr, $($type:ty),* $(,)?) => {$({
        let value: $type = Gen::new($entropy).arb();
        let bytes = encoded(&value);
        prop_assert_eq!(decode_all::<$type>(&bytes), Ok(value));
        for end in 0..bytes.len() {
            let short = matches!(
                decode_all::<$type>(&bytes[..end]),
                Err(DecodeError::Short { .. })
            );
            prop_assert!(short, "{} of {} bytes of {}", end, bytes.len(), stringify!($type));
        }
        let mut longer = bytes;
        longer.push(0);
        prop_assert_eq!(decode_all::<$type>(&longer), Err(DecodeError::Trailing));
    })*};
}

proptest! {
    #[test]
    fn arguments_round_trip(entropy in proptest::collection::vec(any::<u8>(), 0..700)) {
        round_trips!(
            &entropy,
            GetattrArgs<'_>, SetattrArgs<'_>, LookupArgs<'_>, AccessArgs<'_>, ReadlinkArgs<'_>,
            ReadArgs<'_>, WriteArgs<'_>, CreateArgs<'_>, MkdirArgs<'_>, SymlinkArgs<'_>,
            MknodArgs<'_>, RemoveArgs<'_>, RmdirArgs<'_>, RenameArgs<'_>, LinkArgs<'_>,
            ReaddirArgs<'_>, ReaddirplusArgs<'_>, FsstatArgs<'_>, FsinfoArgs<'_>,
            PathconfArgs<'_>, CommitArgs<'_>,
        );
    }

    #[test]
    fn results_round_trip(entropy in proptest::collection::vec(any::<u8>(), 0..700)) {
        round_trips!(
            &entropy,
            GetattrRes, SetattrRes, LookupRes<'_>, AccessRes, ReadlinkRes<'_>, ReadRes<'_>,
            WriteRes, CreateRes<'_>, MkdirRes<'_>, SymlinkRes<'_>, MknodRes<'_>, RemoveRes,
            RmdirRes, RenameRes, LinkRes, ReaddirRes<'_>, ReaddirplusRes<'_>, FsstatRes,
            FsinfoRes, PathconfRes, CommitRes,
        );
    }
}
