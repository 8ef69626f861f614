//! Bytes made by hand from RFC 1813: one message of each shape.

use super::*;

#[track_caller]
fn golden<'a, T>(value: T, expect: &'a [u8])
where
    T: Encode + crate::xdr::Decode<'a> + PartialEq + std::fmt::Debug,
{
    assert_eq!(encoded(&value), expect);
    assert_eq!(decode_all(expect), Ok(value));
}

#[test]
fn getattr_reply() {
    let mut expect = words(&[0]);
    expect.extend_from_slice(&words(&SOME_ATTR));
    assert_eq!(expect.len(), 4 + FATTR3_LEN);
    golden::<GetattrRes>(Res::Ok(some_attr()), &expect);
    golden::<GetattrRes>(Res::Fail(Nfsstat3::STALE, ()), &words(&[70]));
}

#[test]
fn read_call_and_reply() {
    let call = ReadArgs { file: Fh3(b"hand"), offset: 1 << 32 | 7, count: 4096 };
    golden(call, &words(&[4, 0x6861_6e64, 1, 7, 4096]));
    let mut expect = words(&[0, 1]);
    expect.extend_from_slice(&words(&SOME_ATTR));
    expect.extend_from_slice(&words(&[5, 1, 5, 0x6865_6c6c, 0x6f00_0000]));
    let ok = ReadResOk { file_attributes: Some(some_attr()), count: 5, eof: true, data: b"hello" };
    golden::<ReadRes<'_>>(Res::Ok(ok), &expect);
}

#[test]
fn write_call_and_reply() {
    let call = WriteArgs {
        file: Fh3(b"hand"),
        offset: 2,
        count: 3,
        stable: StableHow::FILE_SYNC,
        data: b"abc",
    };
    golden(call, &words(&[4, 0x6861_6e64, 0, 2, 3, 2, 3, 0x6162_6300]));
    let time = |seconds| Nfstime3 { seconds, nseconds: 0 };
    let before = WccAttr { size: 9, mtime: time(1), ctime: time(2) };
    let ok = WriteResOk {
        file_wcc: WccData { before: Some(before), after: None },
        count: 3,
        committed: StableHow::UNSTABLE,
        verf: *b"verifier",
    };
    let expect = words(&[0, 1, 0, 9, 1, 0, 2, 0, 0, 3, 0, 0x7665_7269, 0x6669_6572]);
    golden::<WriteRes>(Res::Ok(ok), &expect);
}

#[test]
fn create_exclusive_call() {
    let where_ = DiropArgs { dir: Fh3(b"dir!"), name: Filename3(b"new") };
    let call = CreateArgs { where_, how: CreateHow::Exclusive(*b"\0\x01\x02\x03\x04\x05\x06\x07") };
    let expect = [4, 0x6469_7221, 3, 0x6e65_7700, 2, 0x0001_0203, 0x0405_0607];
    golden(call, &words(&expect));
}

#[test]
fn create_guarded_call_and_reply() {
    let where_ = DiropArgs { dir: Fh3(b"dir!"), name: Filename3(b"new") };
    let set = Sattr3 {
        mode: Some(0o600),
        size: Some(0),
        atime: SetTime::ServerTime,
        mtime: SetTime::ClientTime(Nfstime3 { seconds: 5, nseconds: 6 }),
        ..Sattr3::default()
    };
    let call = CreateArgs { where_, how: CreateHow::Guarded(set) };
    let expect = words(&[
        4,
        0x6469_7221,
        3,
        0x6e65_7700, // where
        1,           // GUARDED
        1,
        0o600,
        0,
        0,
        1,
        0,
        0, // mode, no uid, no gid, size 0
        1,
        2,
        5,
        6, // server's time, client's time
    ]);
    golden(call, &expect);
    let ok = NewResOk { obj: Some(Fh3(b"f")), obj_attributes: None, dir_wcc: WccData::default() };
    golden::<CreateRes<'_>>(Res::Ok(ok), &words(&[0, 1, 1, 0x6600_0000, 0, 0, 0]));
}

#[test]
fn setattr_call_with_guard() {
    let guard = Some(Nfstime3 { seconds: 7, nseconds: 8 });
    let new_attributes = Sattr3 { uid: Some(1), gid: Some(2), ..Sattr3::default() };
    let call = SetattrArgs { object: Fh3(b"hand"), new_attributes, guard };
    golden(call, &words(&[4, 0x6861_6e64, 0, 1, 1, 1, 2, 0, 0, 0, 1, 7, 8]));
}

#[test]
fn mknod_calls() {
    let where_ = DiropArgs { dir: Fh3(b""), name: Filename3(b"n") };
    let spec = Specdata3 { specdata1: 1, specdata2: 3 };
    let call = MknodArgs { where_, what: MknodData::Chr(Sattr3::default(), spec) };
    golden(call, &words(&[0, 1, 0x6e00_0000, 4, 0, 0, 0, 0, 0, 0, 1, 3]));
    let call = MknodArgs { where_, what: MknodData::Fifo(Sattr3::default()) };
    golden(call, &words(&[0, 1, 0x6e00_0000, 7, 0, 0, 0, 0, 0, 0]));
    let call = MknodArgs { where_, what: MknodData::Other(Ftype3::DIR) };
    golden(call, &words(&[0, 1, 0x6e00_0000, 2]));
}

#[test]
fn symlink_and_rename_calls() {
    let where_ = DiropArgs { dir: Fh3(b""), name: Filename3(b"n") };
    let call = SymlinkArgs {
        where_,
        symlink_attributes: Sattr3::default(),
        symlink_data: Nfspath3(b"/to"),
    };
    golden(call, &words(&[0, 1, 0x6e00_0000, 0, 0, 0, 0, 0, 0, 3, 0x2f74_6f00]));
    let to = DiropArgs { dir: Fh3(b"d"), name: Filename3(b"m") };
    let call = RenameArgs { from: where_, to };
    golden(call, &words(&[0, 1, 0x6e00_0000, 1, 0x6400_0000, 1, 0x6d00_0000]));
}

#[test]
fn fsinfo_and_pathconf_replies() {
    let ok = FsinfoResOk {
        obj_attributes: None,
        rtmax: 1,
        rtpref: 2,
        rtmult: 3,
        wtmax: 4,
        wtpref: 5,
        wtmult: 6,
        dtpref: 7,
        maxfilesize: 8,
        time_delta: Nfstime3 { seconds: 9, nseconds: 10 },
        properties: FSF3_LINK | FSF3_SYMLINK | FSF3_HOMOGENEOUS | FSF3_CANSETTIME,
    };
    golden::<FsinfoRes>(Res::Ok(ok), &words(&[0, 0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 10, 0x1b]));
    let ok = PathconfResOk {
        obj_attributes: None,
        linkmax: 1,
        name_max: 255,
        no_trunc: true,
        chown_restricted: true,
        case_insensitive: false,
        case_preserving: true,
    };
    golden::<PathconfRes>(Res::Ok(ok), &words(&[0, 0, 1, 255, 1, 1, 0, 1]));
}

#[test]
fn readdirplus_reply() {
    let bytes = words(&[
        0,
        0,
        0x6364_6566,
        0x6768_696a, // OK, no attributes, verifier
        1,
        0,
        42,
        1,
        0x6100_0000,
        0,
        1,
        0,
        1,
        2,
        0x6162_0000, // 42 "a" cookie 1, handle "ab"
        1,
        0,
        43,
        2,
        0x6262_0000,
        0,
        2,
        0,
        0, // 43 "bb" cookie 2, nothing else
        0,
        1, // no more, eof
    ]);
    let Res::Ok(ok) = decode_all::<ReaddirplusRes<'_>>(&bytes).unwrap() else { panic!() };
    let plain = |fileid, name, cookie, name_handle| Entryplus3 {
        fileid,
        name: Filename3(name),
        cookie,
        name_attributes: None,
        name_handle,
    };
    let expect = [plain(42, b"a", 1, Some(Fh3(b"ab"))), plain(43, b"bb", 2, None)];
    assert_eq!(ok.entries.iter().collect::<Vec<_>>(), expect);
    assert_eq!((ok.cookieverf, ok.eof), (*b"cdefghij", true));
    assert_eq!(encoded(&Res::<_, PostOpAttr>::Ok(ok)), bytes);
}
