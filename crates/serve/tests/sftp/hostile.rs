//! Peers that violate the protocol, or request too much.

use base::limits::{SFTP_HANDLES_MAX, SFTP_PACKET_MAX};
use serve::sftp::conn::Ended;
use vfs::share::Service;
use wire::sftp::{Extended, OpenFlags, Request, StatusCode, Str};

use crate::client::*;
use crate::scene::Scene;

fn scene() -> Scene {
    Scene::in_memory(Service::Sftp)
}

#[test]
fn invalid_requests_are_answered() {
    with_client(&scene(), |_, mut c, _| async move {
        // An unknown type, and one that only servers send.
        c.raw(&[0, 0, 0, 5, 77, 0, 0, 0, 200]);
        assert_eq!(c.answer(200).await, Got::Status(StatusCode::OP_UNSUPPORTED));
        c.raw(&[0, 0, 0, 9, 101, 0, 0, 0, 201, 0, 0, 0, 0]);
        assert_eq!(c.answer(201).await, Got::Status(StatusCode::OP_UNSUPPORTED));
        // A path that is longer than its packet, and one longer than any.
        c.raw(&[0, 0, 0, 10, 17, 0, 0, 0, 202, 0, 0, 0, 9, b'x']);
        assert_eq!(c.answer(202).await, Got::Status(StatusCode::BAD_MESSAGE));
        c.raw(&[0, 0, 0, 10, 17, 0, 0, 0, 203, 0xff, 0, 0, 9, b'x']);
        assert_eq!(c.answer(203).await, Got::Status(StatusCode::BAD_MESSAGE));
        let unknown = Request::Extended(Extended::Unknown(Str(b"none@example.org"), b"x"));
        assert_eq!(c.call(unknown).await, Got::Status(StatusCode::OP_UNSUPPORTED));
        for handle in [b"".as_slice(), b"1", b"\0\0\0\0", b"\xff\xff\xff\xff", b"12345"] {
            assert_eq!(c.call(read(handle, 0, 1)).await, Got::Status(StatusCode::FAILURE));
            assert_eq!(c.call(close(handle)).await, Got::Status(StatusCode::FAILURE));
        }
        assert_eq!(c.list(b"/").await, [b"share"]);
    });
}

#[test]
fn what_is_no_packet_ends_the_channel() {
    let too_long = (SFTP_PACKET_MAX as u32 + 1).to_be_bytes();
    let cases: [Vec<u8>; 4] = [
        too_long.to_vec(),
        vec![0, 0, 0, 0],
        // INIT once more, and a request without an id.
        vec![0, 0, 0, 5, 1, 0, 0, 0, 3],
        vec![0, 0, 0, 3, 17, 0, 0],
    ];
    for bytes in cases {
        with_client(&scene(), move |_, mut c, _| async move {
            c.raw(&bytes);
            let ended = c.ended().await;
            assert!(matches!(ended, Err(Ended::Packet(_) | Ended::Unexpected(_))), "{ended:?}");
        });
    }
}

#[test]
fn handles_are_limited_and_not_taken_for_others() {
    with_client(&scene(), |core, mut c, _| async move {
        c.put_file(b"/share/f", b"x").await;
        let mut handles = Vec::new();
        for _ in 0..SFTP_HANDLES_MAX {
            handles.push(c.call(open(b"/share/f", OpenFlags::READ)).await.handle());
        }
        let more = c.call(open(b"/share/f", OpenFlags::READ)).await;
        assert_eq!(more, Got::Status(StatusCode::FAILURE));
        assert_eq!(core.files.locks.counts().opens, SFTP_HANDLES_MAX as u64);
        let old = handles.swap_remove(10);
        c.done(close(&old)).await;
        let new = c.call(open(b"/share/f", OpenFlags::READ)).await.handle();
        assert_ne!(old, new);
        assert_eq!(c.call(read(&old, 0, 1)).await, Got::Status(StatusCode::FAILURE));
        assert_eq!(c.call(read(&new, 0, 1)).await, Got::Data(b"x".to_vec()));
        assert_eq!(c.end().await, Ok(()));
        assert_eq!(core.files.locks.counts().opens, 0);
    });
}
