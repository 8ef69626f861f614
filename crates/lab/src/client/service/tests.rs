//! Every session against a small server in this process, over TLS and without: a file's whole life,
//! parts, refusals, a server that is not the one expected; and the operations of workloads.

mod ftp_server;
mod http_server;
mod sftp_server;

use super::at::{Scheme, ServiceAt};
use super::client::{ServiceClient, read_full};
use super::{Failure, ScratchFiles, Session, open, tls};
use crate::client::{Checker, Client, ClientError, Fault, FileSet, Op, Target, scratch};
use crate::pattern::Content;
use crate::workload::{Kind, Shape};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What the servers of a test have, and how they behave.
pub(crate) struct Store {
    pub(crate) files: Mutex<BTreeMap<String, Vec<u8>>>,
    folders: Mutex<BTreeSet<String>>,
    tls: Arc<ServerConfig>,
    /// The certificate's fingerprint.
    pub(crate) pin: String,
    /// The FTP server knows neither EPSV nor MLSD.
    old: AtomicBool,
    /// The HTTP server ends each connection behind an answer.
    closes: AtomicBool,
    /// Bytes of an SFTP answer at most; the rest is for the client to ask again.
    short: AtomicU32,
    /// What is uploaded is not kept as it was sent.
    pub(crate) damages: AtomicBool,
    /// Data connections that have not taken up a session.
    strangers: AtomicU32,
}

impl Store {
    pub(crate) fn new() -> Arc<Self> {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let der = CertificateDer::from(made.cert.der().to_vec());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let pin = tls::fingerprint(&der);
        let mut config = builder.with_no_client_auth().with_single_cert(vec![der], key).unwrap();
        config.session_storage = rustls::server::ServerSessionMemoryCache::new(64);
        Arc::new(Self {
            files: Mutex::default(),
            folders: Mutex::new(BTreeSet::from([String::new(), "/share".to_owned()])),
            tls: Arc::new(config),
            pin,
            old: AtomicBool::default(),
            closes: AtomicBool::default(),
            short: AtomicU32::new(u32::MAX),
            damages: AtomicBool::default(),
            strangers: AtomicU32::default(),
        })
    }

    pub(crate) fn files(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.files.lock().unwrap()
    }

    fn folders(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.folders.lock().unwrap()
    }

    fn parent(path: &str) -> &str {
        path.rsplit_once('/').map_or("", |p| p.0)
    }

    /// False when it is there or its parent is not.
    fn make_folder(&self, path: &str) -> bool {
        let mut folders = self.folders();
        folders.contains(Self::parent(path)) && folders.insert(path.to_owned())
    }

    fn names(&self, path: &str) -> Option<Vec<String>> {
        let (folders, files) = (self.folders(), self.files());
        let inside = |p: &&String| Self::parent(p) == path && !p.is_empty();
        let name = |p: &String| p.rsplit_once('/').unwrap().1.to_owned();
        folders
            .contains(path)
            .then(|| folders.iter().chain(files.keys()).filter(inside).map(name).collect())
    }

    fn remove(&self, path: &str, folder: bool) -> bool {
        match folder {
            true => {
                let empty = self.names(path).is_some_and(|names| names.is_empty());
                empty && self.folders().remove(path)
            }
            false => self.files().remove(path).is_some(),
        }
    }

    fn put(&self, path: &str, mut bytes: Vec<u8>) -> bool {
        if self.damages.load(Ordering::SeqCst) {
            bytes.iter_mut().take(1).for_each(|byte| *byte ^= 1);
        }
        let there = self.folders().contains(Self::parent(path));
        there && self.files().insert(path.to_owned(), bytes).is_none_or(|_| true)
    }

    fn secured(&self, socket: TcpStream) -> Box<dyn Both> {
        let connection = ServerConnection::new(Arc::clone(&self.tls)).unwrap();
        Box::new(StreamOwned::new(connection, socket))
    }
}

pub(crate) trait Both: Read + Write + Send {}
impl<T: Read + Write + Send> Both for T {}

/// Serves each connection on a thread of its own; the port.
fn listen(store: &Arc<Store>, each: fn(TcpStream, Arc<Store>)) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let store = Arc::clone(store);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let store = Arc::clone(&store);
            std::thread::spawn(move || each(socket, store));
        }
    });
    port
}

/// A target of each scheme, all on the same store.
pub(crate) fn targets(store: &Arc<Store>) -> Vec<ServiceAt> {
    let ftp = listen(store, |socket, store| ftp_server::serve(socket, &store));
    let http = listen(store, |socket, store| http_server::serve(Box::new(socket), &store));
    let https = listen(store, |socket, store| http_server::serve(store.secured(socket), &store));
    let sftp = listen(store, |socket, store| sftp_server::serve(socket, &store));
    let pin = &store.pin;
    let urls = [
        format!("ftp://ann:a%40b@127.0.0.1:{ftp}/share"),
        format!("ftps://ann:a%40b@127.0.0.1:{ftp}/share?pin={pin}&cipher=aes128-gcm"),
        format!("sftp://ann:a%40b@127.0.0.1:{sftp}/share?insecure&cipher=aes128-gcm"),
        format!("http://ann:a%40b@127.0.0.1:{http}/share"),
        format!("https://ann:a%40b@127.0.0.1:{https}/share?pin={pin}"),
        format!("webdav://ann:a%40b@127.0.0.1:{http}/share"),
        format!("webdavs://ann:a%40b@127.0.0.1:{https}/share?insecure&tls=1.2"),
    ];
    urls.iter().map(|url| service(url)).collect()
}

pub(crate) fn service(url: &str) -> ServiceAt {
    match Target::parse(url).unwrap() {
        Target::Service(at) => at,
        other => panic!("{other}"),
    }
}

fn content(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Content::new(1).fill(0, 0, &mut bytes);
    bytes
}

fn got(session: &mut dyn Session, path: &str, part: (u64, Option<u64>)) -> Vec<u8> {
    session.open_read(path, part.0, part.1).unwrap();
    let mut bytes = vec![0; 3 << 20];
    let n = read_full(session, &mut bytes).unwrap();
    session.close_read().unwrap();
    bytes.truncate(n);
    bytes
}

#[test]
fn a_file_lives_over_every_protocol() {
    let store = Store::new();
    for old in [false, true] {
        store.old.store(old, Ordering::SeqCst);
        store.closes.store(old, Ordering::SeqCst);
        store.short.store(if old { 10_000 } else { u32::MAX }, Ordering::SeqCst);
        for at in targets(&store) {
            whole_life(&at, &store);
        }
        assert_eq!(store.names("/share").unwrap(), [""; 0], "old: {old}");
    }
}

fn whole_life(at: &ServiceAt, store: &Store) {
    let mut session = open(at, None).unwrap();
    session.null().unwrap();
    session.make_folder("/share/a b", true).unwrap();
    session.make_folder("/share/a b", false).unwrap();
    let again = session.make_folder("/share/a b", true);
    assert!(matches!(again, Err(Failure::Answer { .. })), "{at}: {again:?}");
    for len in [0, 1, 300_000, 2_500_001] {
        let (path, bytes) = (format!("/share/a b/f{len}%"), content(len));
        assert_eq!(session.size(&path).unwrap(), None, "{at}");
        session.open_write(&path, len as u64).unwrap();
        bytes.chunks(100_000).for_each(|piece| session.write(piece).unwrap());
        session.close_write().unwrap();
        assert!(store.files()[&path] == bytes, "{at}: {len}");
        assert_eq!(session.size(&path).unwrap(), Some(len as u64), "{at}");
        assert!(got(&mut *session, &path, (0, None)) == bytes, "{at}: {len}");
    }
    let path = "/share/a b/f300000%";
    assert!(got(&mut *session, path, (7, None)) == content(300_000)[7..], "{at}");
    // Abandoned before the end; what follows must not be mixed up with it.
    session.open_read("/share/a b/f2500001%", 0, None).unwrap();
    read_full(&mut *session, &mut [0; 10]).unwrap();
    session.close_read().unwrap();
    session.null().unwrap();
    let mut names = session.names("/share/a b").unwrap().unwrap();
    names.sort();
    assert_eq!(names, ["f0%", "f1%", "f2500001%", "f300000%"], "{at}");
    assert_eq!(session.names("/share/none").unwrap(), None, "{at}");
    let full = session.remove("/share/a b", true);
    assert!(matches!(full, Err(Failure::Answer { .. })), "{at}: {full:?}");
    for name in names.iter().chain(&names) {
        session.remove(&format!("/share/a b/{name}"), false).unwrap();
    }
    session.remove("/share/a b", true).unwrap();
    session.remove("/share/a b", true).unwrap();
    let none = session.open_read(path, 0, None);
    assert!(matches!(none, Err(Failure::Answer { .. })), "{at}: {none:?}");
    assert_eq!(session.cipher().is_some(), at.scheme.is_secure(), "{at}");
}

#[test]
fn what_was_agreed_on_is_what_was_asked_for() {
    let store = Store::new();
    let ciphers: Vec<Option<String>> =
        targets(&store).iter().map(|at| open(at, None).unwrap().cipher()).collect();
    assert_eq!(ciphers[1].as_deref(), Some("TLS 1.3 AES_128_GCM_SHA256"));
    assert_eq!(ciphers[2].as_deref(), Some("SSH aes128-gcm@openssh.com"));
    assert!(ciphers[6].as_deref().unwrap().starts_with("TLS 1.2 "), "{ciphers:?}");
    let wrong = format!("{}", targets(&store)[4]).replace(&store.pin, &"0".repeat(64));
    let unknown = format!("https://127.0.0.1:{}/share", targets(&store)[4].port);
    let not_a_cipher = format!("{}&cipher=rot13", targets(&store)[4]);
    for url in [wrong, unknown, not_a_cipher] {
        assert!(open(&service(&url), None).is_err(), "{url}");
    }
    // The error for an unknown SSH host key has the key, and with it the server is accepted.
    let sftp = targets(&store)[2].port;
    let bare = format!("sftp://ann:a%40b@127.0.0.1:{sftp}/share");
    let told = open(&service(&bare), None).err().unwrap().to_string();
    let pin = told.split("its pin is ").nth(1).unwrap().split(',').next().unwrap();
    let pin = super::at::encoded(pin, false);
    open(&service(&format!("{bare}?pin={pin}")), None).unwrap();
}

#[test]
fn http_that_leads_to_https_is_not_followed() {
    fn redirect(mut socket: TcpStream, _: Arc<Store>) {
        let _asked = socket.read(&mut [0; 4096]);
        let there = "Location: https://127.0.0.1:9/share\r\n";
        let head = format!("HTTP/1.1 308 x\r\n{there}Content-Length: 0\r\n\r\n");
        let _sent = socket.write_all(head.as_bytes());
    }
    let port = listen(&Store::new(), redirect);
    for scheme in ["http", "webdav"] {
        let at = service(&format!("{scheme}://ann:a%40b@127.0.0.1:{port}/share"));
        let why = open(&at, None).err().expect("refused").to_string();
        assert_eq!(
            why,
            "use HTTP without TLS (308 to https://127.0.0.1:9/share): the server requires HTTPS"
        );
    }
}

#[test]
fn a_wrong_password_is_refused_in_words() {
    let store = Store::new();
    for at in targets(&store) {
        let url = at.url().replace("a%40b", "wrong");
        let error = open(&service(&url), None).err().unwrap();
        assert!(matches!(error, ClientError::Refused { .. }), "{url}: {error:?}");
        assert!(!error.to_string().contains("wrong"), "{error}");
    }
}

/// Servers of FTP may insist on it, against data connections of others.
#[test]
fn data_connections_take_up_the_session_of_the_control_connection() {
    let store = Store::new();
    let at = &targets(&store)[1];
    let mut session = open(at, None).unwrap();
    for n in 0..12 {
        let path = format!("/share/t{n}");
        session.open_write(&path, 5).unwrap();
        session.write(b"hello").unwrap();
        session.close_write().unwrap();
        assert_eq!(got(&mut *session, &path, (0, None)), b"hello");
    }
    assert_eq!(store.strangers.load(Ordering::SeqCst), 0);
}

fn outcomes(client: &mut dyn Client, ops: &[Op]) -> Vec<Result<u32, Fault>> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut all = Vec::new();
    for op in ops {
        client.submit(0, *op).unwrap();
        client.flush().unwrap();
        let mut done = Vec::new();
        while done.is_empty() {
            assert!(Instant::now() < deadline, "{op:?}");
            client.wait(Duration::from_millis(50), &mut done).unwrap();
        }
        all.push(done[0].outcome);
    }
    all
}

fn client(at: &ServiceAt, kind: Kind) -> Result<ServiceClient, ClientError> {
    let mut client = ServiceClient::open(at, Checker::new(Content::new(3), 1), None)?;
    let shape = Shape { kind, block: 65_536, files: 2, file_size: 200_000, own_files: false };
    client.begin(&shape)?;
    client.prepare(&FileSet { client: 3, files: 2, size: 200_000 })?;
    Ok(client)
}

#[test]
fn workloads_run_over_every_protocol() {
    let store = Store::new();
    for at in targets(&store) {
        let len = 65_536;
        let read = |file, offset| Op::Read { file, offset, len };
        let write = |offset| Op::Write { file: 1, offset, len, stable: false };
        let mut seqread = client(&at, Kind::SeqRead).unwrap();
        let ops = [read(0, 0), read(0, 65_536), read(0, 131_072 - 65_536), read(1, 0)];
        assert_eq!(outcomes(&mut seqread, &ops), [Ok(len); 4], "{at}");
        store.files().get_mut("/share/plimsoll-lab.3/f1.200000").unwrap()[70_000] ^= 1;
        // Through another file, so that it is asked for again.
        let again = [read(0, 0), read(1, 65_536), Op::Getattr { file: 1 }];
        let damaged = [Ok(len), Err(Fault::Corrupt), Ok(0)];
        assert_eq!(outcomes(&mut seqread, &again), damaged, "{at}");
        let mut seqwrite = client(&at, Kind::SeqWrite).unwrap();
        let ops = [write(0), write(65_536), write(131_072), Op::Commit { file: 1 }];
        assert_eq!(outcomes(&mut seqwrite, &ops), [Ok(len), Ok(len), Ok(len), Ok(0)], "{at}");
        let written = store.files()["/share/plimsoll-lab.3/f1.200000"].clone();
        let key = FileSet { client: 3, files: 2, size: 200_000 }.content_key(1);
        assert_eq!(Content::new(3).mismatch(key, 0, &written), None, "{at}");
        assert_eq!(written.len(), 196_608, "{at}");
        let ops = [Op::Null, Op::Create { name: 4 }, Op::Lookup { file: 0 }];
        assert_eq!(outcomes(&mut seqwrite, &ops), [Ok(0); 3], "{at}");
        assert_eq!(outcomes(&mut seqwrite, &[Op::Remove { name: 4 }]), [Ok(0)], "{at}");
        match client(&at, Kind::RandRead) {
            Ok(mut client) => {
                let ops = [read(1, 65_536), read(0, 0), read(1, 65_536)];
                assert_eq!(outcomes(&mut client, &ops), [Ok(len); 3], "{at}");
                client.clean(&FileSet { client: 3, files: 2, size: 200_000 }).unwrap();
            }
            Err(error) => assert!(at.scheme.title().starts_with("FTP"), "{at}: {error}"),
        }
        let refused = client(&at, Kind::SyncWrite).err().unwrap();
        assert!(refused.to_string().contains("use seqwrite"), "{refused}");
    }
}

#[test]
fn a_folder_of_a_runs_own_is_made_and_removed() {
    let store = Store::new();
    for at in targets(&store) {
        let target = Target::Service(at.clone());
        scratch::make(&target, "run").unwrap();
        assert!(scratch::make(&target, "run").is_err(), "{at}");
        let Target::Service(below) = target.below("run") else { panic!("{at}") };
        drop(client(&below, Kind::SeqRead).unwrap());
        scratch::clear(&target, "run", Duration::ZERO).unwrap();
        assert_eq!(store.names("/share").unwrap(), [""; 0], "{at}");
        assert!(ScratchFiles::open(&at).is_ok());
    }
}

#[test]
fn what_is_left_of_an_answer_is_not_taken_for_the_next() {
    let store = Store::new();
    let whole = content(1 << 20);
    store.files().insert("/share/f".to_owned(), whole.clone());
    let at = targets(&store).into_iter().find(|at| at.scheme == Scheme::Sftp).unwrap();
    let mut session = open(&at, None).unwrap();
    for _ in 0..3 {
        session.open_read("/share/f", 0, None).unwrap();
        let mut front = [0; 10];
        assert_eq!(session.read(&mut front).unwrap(), front.len());
        assert_eq!(front, whole[..10]);
        session.close_read().unwrap();
        assert_eq!(got(session.as_mut(), "/share/f", (0, None)), whole);
    }
}

#[test]
fn a_server_that_leaves_is_an_error() {
    for scheme in ["ftp", "ftps", "sftp", "http", "https"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let gone = std::thread::spawn(move || drop(listener.accept().unwrap()));
        let options = if matches!(scheme, "ftp" | "http") { "" } else { "?insecure" };
        let url = format!("{scheme}://ann:x@127.0.0.1:{port}/share{options}");
        assert!(open(&service(&url), None).is_err(), "{url}");
        gone.join().unwrap();
    }
}
