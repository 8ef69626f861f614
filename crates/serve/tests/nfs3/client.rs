//! A blocking client on the real codec, with ways to misbehave.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use wire::mount3::{Dirpath, MOUNT_PROGRAM, MOUNT_V3, MntRes};
use wire::nfs3::{NFS_PROGRAM, NFS_V3, Proc};
use wire::rpc::{self, Accepted, Auth, AuthSys, CallHeader, Gids, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, Encode, Reader, Writer};

#[path = "stream.rs"]
pub mod stream;

use self::stream::Stream;

/// Long enough for a loaded machine; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(80);

/// A client connection.
pub struct Client<S = Stream> {
    pub stream: S,
    pub xid: u32,
    pub uid: u32,
    pub gid: u32,
}

/// An owned reply: its header is read, its results are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub xid: u32,
    /// The whole message.
    pub bytes: Vec<u8>,
}

impl Reply {
    /// How the call was taken, and the results.
    pub fn open(&self) -> (ReplyBody<'_>, Reader<'_>) {
        let mut reader = Reader::new(&self.bytes);
        let header = ReplyHeader::decode(&mut reader).expect("a reply header");
        (header.body, reader)
    }

    /// The results of a successful call.
    pub fn results<'a, T: Decode<'a>>(&'a self) -> T {
        let (body, mut reader) = self.open();
        assert!(
            matches!(body, ReplyBody::Accepted { stat: Accepted::Success, .. }),
            "the call failed: {body:?}"
        );
        let results = T::decode(&mut reader).expect("results");
        reader.finish().expect("nothing behind the results");
        results
    }
}

impl Client {
    /// Connects as root.
    pub fn connect(addr: SocketAddr) -> Self {
        Self::over(Stream::connect(addr, PATIENCE))
    }

    /// The same, over an existing connection.
    pub fn over(stream: Stream) -> Self {
        Self { stream, xid: 1, uid: 0, gid: 0 }
    }
}

impl<S: Read + Write> Client<S> {
    /// The record of a call under the next number.
    pub fn record(&mut self, prog: u32, vers: u32, proc: u32, args: &impl Encode) -> Vec<u8> {
        self.xid += 1;
        let cred = Auth::Sys(AuthSys {
            stamp: 0,
            machine: b"test",
            uid: self.uid,
            gid: self.gid,
            gids: Gids::new(&[]),
        });
        record(CallHeader { xid: self.xid, prog, vers, proc, cred, verf: Auth::None }, args)
    }

    /// The record of an NFSv3 call under the next number.
    pub fn nfs(&mut self, proc: Proc, args: &impl Encode) -> Vec<u8> {
        self.record(NFS_PROGRAM, NFS_V3, proc.0, args)
    }

    /// Calls and waits for the reply.
    pub fn call(&mut self, proc: Proc, args: &impl Encode) -> Reply {
        let record = self.nfs(proc, args);
        self.send(&record);
        let reply = self.receive();
        assert_eq!(reply.xid, self.xid);
        reply
    }

    /// Calls MOUNT and waits for the reply.
    pub fn mount_call(&mut self, proc: wire::mount3::Proc, args: &impl Encode) -> Reply {
        let record = self.record(MOUNT_PROGRAM, MOUNT_V3, proc.0, args);
        self.send(&record);
        self.receive()
    }

    /// The handle of a mounted directory.
    pub fn mount(&mut self, path: &str) -> Vec<u8> {
        let reply = self.mount_call(wire::mount3::Proc::MNT, &Dirpath(path.as_bytes()));
        match reply.results::<MntRes<'_>>() {
            MntRes::Ok(ok) => ok.fhandle.0.to_vec(),
            MntRes::Fail(status) => panic!("mount of {path}: {status}"),
        }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("send");
    }

    /// Receives one reply.
    pub fn receive(&mut self) -> Reply {
        self.try_receive().expect("a reply")
    }

    /// Receives one reply, or returns the error.
    pub fn try_receive(&mut self) -> std::io::Result<Reply> {
        let mut marker = [0; 4];
        self.stream.read_exact(&mut marker)?;
        let marker = u32::from_be_bytes(marker);
        assert_ne!(marker & (1 << 31), 0, "replies are one fragment");
        let mut bytes = vec![0; (marker & !(1 << 31)) as usize];
        self.stream.read_exact(&mut bytes)?;
        let xid = bytes.first_chunk().map_or(0, |b| u32::from_be_bytes(*b));
        Ok(Reply { xid, bytes })
    }

    /// Waits until the server closes the connection; true if it does.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(e) => e.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// A record of one fragment.
pub fn record(header: CallHeader<'_>, args: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes);
    let mark = rpc::begin_record(&mut w);
    header.encode(&mut w);
    args.encode(&mut w);
    rpc::end_record(&mut w, mark);
    bytes
}
