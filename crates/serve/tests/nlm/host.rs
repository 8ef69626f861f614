//! A host: it calls the server, and has a port mapper, a lock manager and a status monitor, which
//! reply as the test requires and pass on the calls that they receive.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use vfs::handle::Handle;
use wire::nlm4::*;
use wire::portmap::Mapping;
use wire::rpc::{self, Auth, CallHeader, open_call};
use wire::xdr::{Decode, Encode, Reader, Writer};
use wire::{nsm, portmap};

use crate::client::{Client, PATIENCE};

/// A call to the host's lock manager or status monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedCall {
    pub prog: u32,
    pub proc: u32,
    pub args: Vec<u8>,
    /// The address from which a datagram came.
    pub from: Option<IpAddr>,
}

impl ReceivedCall {
    /// The arguments.
    pub fn decode<'a, T: Decode<'a>>(&'a self) -> T {
        let mut r = Reader::new(&self.args);
        let args = T::decode(&mut r).expect("arguments");
        r.finish().expect("nothing behind them");
        args
    }
}

/// What a host serves; for as long as the test runs.
pub struct Services {
    /// The port of its port mapper.
    pub portmap: u16,
    heard: Mutex<Receiver<ReceivedCall>>,
    /// The reply of its lock manager to GRANTED.
    pub answer: Arc<Mutex<Nlm4Stat>>,
    /// The number of first calls that are disconnected without a reply.
    pub deaf: Arc<AtomicUsize>,
}

impl Services {
    pub fn start() -> Self {
        let (say, heard) = mpsc::channel();
        let answer = Arc::new(Mutex::new(Nlm4Stat::GRANTED));
        let deaf = Arc::new(AtomicUsize::new(0));
        let lockd = TcpListener::bind("127.0.0.1:0").unwrap();
        let statd = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mapper = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = |at: std::io::Result<SocketAddr>| at.unwrap().port();
        let ports = (port(lockd.local_addr()), port(statd.local_addr()));
        let portmap = port(mapper.local_addr());
        std::thread::spawn(move || map_ports(&mapper, ports));
        let (tell, stat, hang_up) = (say.clone(), answer.clone(), deaf.clone());
        std::thread::spawn(move || manage_locks(&lockd, &tell, &stat, &hang_up));
        std::thread::spawn(move || monitor(&statd, &say));
        Self { portmap, heard: Mutex::new(heard), answer, deaf }
    }

    /// The next call to its lock manager or status monitor.
    pub fn receive(&self) -> ReceivedCall {
        self.heard.lock().unwrap().recv_timeout(PATIENCE).expect("a call")
    }
}

fn map_ports(mapper: &TcpListener, (lockd, statd): (u16, u16)) {
    for stream in mapper.incoming() {
        let Some((header, args, mut stream)) = call(stream.unwrap()) else { continue };
        assert_eq!((header.prog, header.vers, header.proc), (100_000, 2, 3));
        let asked = Mapping::decode(&mut Reader::new(&args)).unwrap();
        let port = match (asked.prog, asked.vers, asked.prot) {
            (NLM_PROGRAM, NLM_V4, portmap::IPPROTO_TCP) => lockd,
            (nsm::NSM_PROGRAM, nsm::NSM_V1, portmap::IPPROTO_UDP) => statd,
            _ => 0,
        };
        stream.write_all(&framed(&reply(header.xid, &u32::from(port)))).unwrap();
    }
}

fn manage_locks(
    lockd: &TcpListener,
    say: &Sender<ReceivedCall>,
    stat: &Mutex<Nlm4Stat>,
    deaf: &AtomicUsize,
) {
    for stream in lockd.incoming() {
        let Some((header, args, mut stream)) = call(stream.unwrap()) else { continue };
        let heard = ReceivedCall { prog: header.prog, proc: header.proc, args, from: None };
        let granted = (header.proc == Proc::GRANTED.0)
            .then(|| TestArgs::decode(&mut Reader::new(&heard.args)).unwrap().cookie.0.to_vec());
        let less = |n: usize| n.checked_sub(1);
        if deaf.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_err() {
            let answer = match &granted {
                Some(cookie) => {
                    let (cookie, stat) = (Netobj(cookie), *stat.lock().unwrap());
                    reply(header.xid, &Nlm4Res { cookie, stat })
                }
                None => reply(header.xid, &()),
            };
            stream.write_all(&framed(&answer)).unwrap();
        }
        let _over = say.send(heard);
    }
}

fn monitor(statd: &UdpSocket, say: &Sender<ReceivedCall>) {
    let mut message = [0; 2048];
    loop {
        let (len, from) = statd.recv_from(&mut message).unwrap();
        let (header, args) = open_call(&message[..len]).unwrap();
        let args = args.rest().to_vec();
        statd.send_to(&reply(header.xid, &()), from).unwrap();
        let from = Some(from.ip());
        let _over = say.send(ReceivedCall { prog: header.prog, proc: header.proc, args, from });
    }
}

/// The header of a call on a fresh connection.
struct Header {
    xid: u32,
    prog: u32,
    vers: u32,
    proc: u32,
}

fn call(mut stream: TcpStream) -> Option<(Header, Vec<u8>, TcpStream)> {
    let mut marker = [0; 4];
    stream.read_exact(&mut marker).ok()?;
    let mut message = vec![0; (u32::from_be_bytes(marker) & !(1 << 31)) as usize];
    stream.read_exact(&mut message).ok()?;
    let (header, args) = open_call(&message).ok()?;
    let CallHeader { xid, prog, vers, proc, .. } = header;
    Some((Header { xid, prog, vers, proc }, args.rest().to_vec(), stream))
}

fn reply(xid: u32, results: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    let w = &mut Writer::new(&mut bytes);
    rpc::success(w, xid);
    results.encode(w);
    bytes
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mark = (message.len() as u32 | 1 << 31).to_be_bytes();
    [&mark[..], message].concat()
}

/// A process at a host that calls the server.
pub struct Host {
    pub client: Client,
    pub name: &'static str,
    /// The process.
    pub svid: u32,
}

impl Host {
    pub fn new(addr: SocketAddr, name: &'static str) -> Self {
        Self { client: Client::connect(addr), name, svid: 1 }
    }

    /// A lock of this process.
    pub fn alock<'a>(&self, file: &'a Handle, offset: u64, len: u64) -> Nlm4Lock<'a> {
        Nlm4Lock {
            caller_name: HostName(self.name.as_bytes()),
            fh: Netobj(file.as_bytes()),
            oh: Netobj(self.name.as_bytes()),
            svid: self.svid,
            l_offset: offset,
            l_len: len,
        }
    }

    /// Calls, and returns what comes.
    pub fn call(&mut self, proc: Proc, args: &impl Encode) -> crate::client::Reply {
        let record = self.client.record(NLM_PROGRAM, NLM_V4, proc.0, args);
        self.client.send(&record);
        self.client.receive()
    }

    /// Calls, and returns the status; the cookie must come back.
    pub fn stat(&mut self, proc: Proc, args: &impl Encode) -> Nlm4Stat {
        let reply = self.call(proc, args);
        let res: Nlm4Res<'_> = reply.results();
        assert_eq!(res.cookie, COOKIE);
        res.stat
    }

    pub fn lock(&mut self, file: &Handle, offset: u64, len: u64) -> Nlm4Stat {
        let alock = self.alock(file, offset, len);
        self.stat(Proc::LOCK, &LockArgs { alock, ..args(alock) })
    }

    pub fn lock_shared(&mut self, file: &Handle, offset: u64, len: u64) -> Nlm4Stat {
        let alock = self.alock(file, offset, len);
        self.stat(Proc::LOCK, &LockArgs { exclusive: false, ..args(alock) })
    }

    pub fn lock_waiting(&mut self, file: &Handle, offset: u64, len: u64) -> Nlm4Stat {
        let alock = self.alock(file, offset, len);
        self.stat(Proc::LOCK, &LockArgs { block: true, ..args(alock) })
    }

    pub fn reclaim(&mut self, file: &Handle, offset: u64, len: u64) -> Nlm4Stat {
        let alock = self.alock(file, offset, len);
        self.stat(Proc::LOCK, &LockArgs { reclaim: true, ..args(alock) })
    }

    pub fn unlock(&mut self, file: &Handle, offset: u64, len: u64) -> Nlm4Stat {
        let alock = self.alock(file, offset, len);
        self.stat(Proc::UNLOCK, &UnlockArgs { cookie: COOKIE, alock })
    }

    pub fn cancel(&mut self, file: &Handle, offset: u64, len: u64) -> Nlm4Stat {
        let alock = self.alock(file, offset, len);
        let args = CancelArgs { cookie: COOKIE, block: true, exclusive: true, alock };
        self.stat(Proc::CANCEL, &args)
    }

    /// Opens with an access and a deny mode.
    pub fn share(&mut self, proc: Proc, file: &Handle, access: u32, mode: u32) -> Nlm4Stat {
        let name = self.name.as_bytes();
        let (caller_name, oh, fh) = (HostName(name), Netobj(name), Netobj(file.as_bytes()));
        let share = Nlm4Share { caller_name, fh, oh, mode, access };
        let reply = self.call(proc, &ShareArgs { cookie: COOKIE, share, reclaim: false });
        reply.results::<ShareRes<'_>>().stat
    }

    /// Sends a restart notification over this connection.
    pub fn notify(&mut self, name: &str) {
        let args = nsm::NotifyArgs { mon_name: nsm::SmName(name.as_bytes()), state: NEXT_STATE };
        let proc = nsm::Proc::NOTIFY.0;
        let record = self.client.record(nsm::NSM_PROGRAM, nsm::NSM_V1, proc, &args);
        self.client.send(&record);
        self.client.receive().results::<()>();
    }
}

/// The cookie of all calls.
pub const COOKIE: Netobj<'static> = Netobj(b"cook");

/// The state number of restart notifications: the one after that of [`args`].
pub const NEXT_STATE: u32 = 3;

/// A request for an exclusive lock that does not wait.
pub fn args(alock: Nlm4Lock<'_>) -> LockArgs<'_> {
    let cookie = COOKIE;
    LockArgs { cookie, block: false, exclusive: true, alock, reclaim: false, state: 1 }
}

/// Sends a restart notification by datagram.
pub fn notify_by_datagram(at: SocketAddr, name: &str) {
    let mut call = Vec::new();
    let w = &mut Writer::new(&mut call);
    let (prog, vers, proc) = (nsm::NSM_PROGRAM, nsm::NSM_V1, nsm::Proc::NOTIFY.0);
    CallHeader { xid: 9, prog, vers, proc, cred: Auth::None, verf: Auth::None }.encode(w);
    nsm::NotifyArgs { mon_name: nsm::SmName(name.as_bytes()), state: NEXT_STATE }.encode(w);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(&call, at).unwrap();
    let mut answer = [0; 64];
    let len = socket.recv(&mut answer).expect("an answer");
    assert_eq!(answer[..len], reply(9, &()));
}
