//! Connections of our own client, over loopback: sign-in, channels, limits, and everything that the
//! server refuses.

use std::cell::Cell;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base::limits::{
    SSH_CHANNELS_MAX, SSH_RECEIVE_BUFFER, SSH_TRIES_MAX, SSH_UNSIGNED_PEER_MAX, SSH_WINDOW_BEGIN,
};
use base::random::SeededRandom;
use tokio::task::LocalSet;
use vfs::cred::Cred;
use vfs::identity::Refused;
use wire::ssh::codec::Put;
use wire::ssh::host_key::HostKey;
use wire::ssh::kex::Policy;
use wire::ssh::message::{AuthRequest, Message, Method, put_info_response, reason};

use super::super::channel::{Input, Output};
use super::*;
use engine::transport::budget::{CoreBudget, Limits};
use engine::transport::listener;

mod client;

use client::Client;

/// One user, `alice`, with a password and a key, until she is sent away.
pub(super) struct Alice {
    keys: Vec<String>,
    gone: AtomicBool,
    judged: Mutex<Vec<bool>>,
    wait: AtomicBool,
}

fn person() -> Arc<Person> {
    let (name, cred) = ("alice".to_owned(), Cred { uid: 1, gid: 1, groups: Vec::new() });
    Arc::new(Person { name, cred, home: None, anonymous: false })
}

impl Identity for Alice {
    fn password(&self, _: IpAddr, name: &str, password: &str) -> Result<Arc<Person>, Refused> {
        if (name, password) == ("alice", "secret") { Ok(person()) } else { Err(Refused::Wrong) }
    }

    fn must_wait(&self, _: IpAddr, _: &str) -> Option<Duration> {
        self.wait.load(Relaxed).then_some(Duration::from_secs(9))
    }

    fn keys(&self, name: &str) -> Vec<String> {
        if name == "alice" { self.keys.clone() } else { Vec::new() }
    }

    fn judged(&self, _: IpAddr, _: &str, right: bool) {
        self.judged.lock().unwrap().push(right);
    }

    fn person(&self, name: &str) -> Option<Arc<Person>> {
        (name == "alice" && !self.gone.load(Relaxed)).then(person)
    }

    fn anonymous(&self) -> Arc<Person> {
        person()
    }

    fn generation(&self) -> u64 {
        u64::from(self.gone.load(Relaxed))
    }
}

use std::sync::atomic::Ordering::Relaxed;

/// A key of the user's. Host keys sign as well as others.
fn user_key(seed: u64) -> HostKey {
    HostKey::new_ed25519(&mut SeededRandom::new(seed)).unwrap()
}

struct Server {
    address: SocketAddr,
    ssh: Arc<Ssh>,
    alice: Arc<Alice>,
    ending: tokio::sync::watch::Sender<bool>,
    /// SFTP servers that have ended.
    ended: Rc<Cell<usize>>,
    budget: Rc<CoreBudget>,
}

impl Server {
    fn start() -> Self {
        let alice = Arc::new(Alice {
            keys: vec![user_key(1).public_line()],
            gone: AtomicBool::new(false),
            judged: Mutex::default(),
            wait: AtomicBool::new(false),
        });
        let budgets = Arc::new(Budgets::default());
        let host_keys = vec![Arc::new(user_key(77))];
        let (software, policy) = ("Test".to_owned(), Policy::modern());
        let ssh = Arc::new(Ssh {
            setup: Arc::new(ServerSetup { software, policy, host_keys }),
            banner: Some("Hello\n".to_owned()),
            methods: Methods { password: true, key: true },
            identity: Arc::clone(&alice) as Arc<dyn Identity>,
            sign_ins: Arc::default(),
            budgets: Arc::clone(&budgets),
            unsigned: Unsigned::default(),
            mismatches: Mismatches::default(),
        });
        let socket = listener::listen(([127, 0, 0, 1], 0).into()).unwrap();
        let address = socket.local_addr().unwrap();
        let (ending, end_watch) = tokio::sync::watch::channel(false);
        let (sender, mut accepted) = tokio::sync::mpsc::channel(100);
        tokio::task::spawn_local(listener::accept(
            (socket, ()),
            vec![sender],
            budgets,
            end_watch.clone(),
        ));
        let (all, ended) = (Arc::clone(&ssh), Rc::new(Cell::new(0)));
        let counter = Rc::clone(&ended);
        let budget = Rc::new(CoreBudget::new(Limits::default(), 1));
        let account = Rc::clone(&budget);
        tokio::task::spawn_local(async move {
            while let Some((one, ())) = accepted.recv().await {
                let counter = Rc::clone(&counter);
                let start = move |started| echo(started, Rc::clone(&counter));
                tokio::task::spawn_local(serve(
                    Arc::clone(&all),
                    Rc::clone(&account),
                    one,
                    end_watch.clone(),
                    start,
                ));
            }
        });
        Self { address, ssh, alice, ending, ended, budget }
    }

    async fn client(&self) -> Client {
        let host_key = self.ssh.setup.host_keys[0].blob().to_vec();
        Client::connect(self.address, host_key).await
    }

    /// Bytes in the account.
    fn held(&self) -> usize {
        self.budget.publish(&self.ssh.budgets);
        self.ssh.budgets.bytes() as usize
    }

    async fn signed_in(&self) -> Client {
        let mut client = self.client().await;
        client.service().await;
        client.send(&password("alice", "secret")).await;
        assert_eq!(client.message().await, Message::UserauthSuccess.bytes());
        client
    }
}

/// Sends back what comes; ends with the number of bytes, modulo 100, as its status.
async fn echo(started: Started, ended: Rc<Cell<usize>>) -> u32 {
    let Started { mut input, mut output, person, .. } = started;
    assert_eq!(person.name, "alice");
    let (mut buffer, mut all) = (Vec::new(), 0);
    loop {
        buffer.clear();
        match input.receive(&mut buffer).await {
            Ok(n) if n > 0 => all += n,
            _ => break,
        }
        if output.send(&[&buffer[..1], &buffer[1..]]).await.is_err() {
            break;
        }
    }
    ended.set(ended.get() + 1);
    (all % 100) as u32
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(60), test).await };
    runtime.block_on(LocalSet::new().run_until(limited)).expect("in time");
}

trait Bytes {
    fn bytes(&self) -> Vec<u8>;
}

impl Bytes for Message<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }
}

fn request<'a>(user: &'a str, method: Method<'a>) -> Message<'a> {
    Message::UserauthRequest(AuthRequest { user, service: "ssh-connection", method })
}

fn password<'a>(user: &'a str, password: &'a str) -> Message<'a> {
    request(user, Method::Password { password: password.as_bytes(), new: None })
}

#[test]
fn data_comes_back_through_small_windows() {
    run(async {
        let server = Server::start();
        let mut client = server.signed_in().await;
        assert_eq!(server.ssh.unsigned.count(), 0);
        let channel = client.open_sftp(10_000, 3_000).await;
        let data: Vec<u8> = (0..3_000_007u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let got = client.echo(channel, &data).await;
        assert!(got.data == data);
        assert_eq!(got.status, Some((data.len() % 100) as u32));
        assert!(got.largest <= 3_000);
        // The number is free again.
        assert_eq!(client.open_sftp(1, 1).await.remote, channel.remote);
    });
}

#[test]
fn keys_are_renewed_below_the_data() {
    run(async {
        let server = Server::start();
        let mut client = server.signed_in().await;
        let channel = client.open_sftp(1 << 20, 32_768).await;
        client.renew_every = Some(20);
        let data = vec![7; 2_000_000];
        assert!(client.echo(channel, &data).await.data == data);
    });
}

#[test]
fn no_client_renews_keys_before_signing_in() {
    run(async {
        let server = Server::start();
        let mut client = server.client().await;
        client.transport.renew_now().unwrap();
        client.send(&Message::ServiceRequest("ssh-userauth")).await;
        let farewell = tokio::time::timeout(Duration::from_secs(60), client.farewell()).await;
        assert_eq!(farewell, Ok(Some(reason::PROTOCOL_ERROR)));
    });
}

#[test]
fn several_channels_at_once_up_to_a_limit() {
    run(async {
        let server = Server::start();
        let mut client = server.signed_in().await;
        for i in 0..SSH_CHANNELS_MAX {
            assert_eq!(client.open_sftp(1000, 1000).await.remote as usize, i);
        }
        client.open("session", 1000, 1000).await;
        let message = client.message().await;
        assert!(matches!(
            Message::decode(&message),
            Ok(Message::ChannelOpenFailure { reason: 4, .. })
        ));
        // The last channel is served as well as the first.
        for remote in [SSH_CHANNELS_MAX as u32 - 1, 0] {
            client.send(&Message::ChannelData { recipient: remote, data: b"x" }).await;
            let message = client.message().await;
            assert!(matches!(
                Message::decode(&message),
                Ok(Message::ChannelData { data: b"x", .. })
            ));
        }
        drop(client);
        while server.ended.get() < SSH_CHANNELS_MAX {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn nothing_but_sftp_is_available() {
    run(async {
        let server = Server::start();
        let mut client = server.signed_in().await;
        client.open("session", 1000, 1000).await;
        let opened = client.message().await;
        assert!(matches!(
            Message::decode(&opened),
            Ok(Message::ChannelOpenConfirmation { window: SSH_WINDOW_BEGIN, .. })
        ));
        let mut other = Vec::new();
        other.put_string(b"netconf");
        for (kind, data) in [
            ("shell", b"".as_slice()),
            ("exec", b"\0\0\0\x02ls"),
            ("pty-req", b""),
            ("env", b""),
            ("x11-req", b""),
            ("auth-agent-req@openssh.com", b""),
            ("subsystem", &other),
            ("subsystem", b"broken"),
        ] {
            let want_reply = true;
            client.send(&Message::ChannelRequest { recipient: 0, kind, want_reply, data }).await;
            let message = client.message().await;
            assert!(
                matches!(Message::decode(&message), Ok(Message::ChannelFailure { .. })),
                "{kind}"
            );
        }
        for kind in ["direct-tcpip", "x11", "tun@openssh.com"] {
            client.open(kind, 1000, 1000).await;
            let message = client.message().await;
            assert!(matches!(
                Message::decode(&message),
                Ok(Message::ChannelOpenFailure { reason: 1 | 3, .. })
            ));
        }
        for name in ["tcpip-forward", "keepalive@openssh.com"] {
            client.send(&Message::GlobalRequest { name, want_reply: true, data: b"" }).await;
            assert_eq!(client.message().await, Message::RequestFailure.bytes());
        }
        // An unknown message is answered by the transport, and has no other effect.
        client.send(&Message::Unknown(200)).await;
        let (name, want_reply) = ("still there", true);
        client.send(&Message::GlobalRequest { name, want_reply, data: b"" }).await;
        assert_eq!(client.message().await, Message::RequestFailure.bytes());
        // Channels that are not there.
        client.send(&Message::ChannelEof { recipient: 9 }).await;
        assert_eq!(client.farewell().await, Some(reason::PROTOCOL_ERROR));
    });
}

#[test]
fn wrong_passwords_come_to_an_end() {
    run(async {
        let server = Server::start();
        let mut client = server.client().await;
        client.service().await;
        for _ in 1..SSH_TRIES_MAX {
            client.send(&password("alice", "wrong")).await;
            let message = client.message().await;
            let Ok(Message::UserauthFailure { methods, partial: false }) =
                Message::decode(&message)
            else {
                panic!("{message:?}")
            };
            assert_eq!(methods.0, "publickey,password,keyboard-interactive");
        }
        client.send(&password("alice", "wrong")).await;
        assert_eq!(client.farewell().await, Some(reason::NO_MORE_AUTH_METHODS));
    });
}

#[test]
fn a_password_is_asked_for() {
    run(async {
        let server = Server::start();
        let mut client = server.client().await;
        client.service().await;
        for answer in ["wrong", "secret"] {
            let method = Method::KeyboardInteractive { language: b"", submethods: b"" };
            client.send(&request("alice", method)).await;
            let message = client.message().await;
            assert!(matches!(Message::decode(&message), Ok(Message::Userauth60(_))));
            let mut out = Vec::new();
            put_info_response(&mut out, &[answer.as_bytes()]);
            client.send_raw(&out).await;
            let message = client.message().await;
            assert_eq!(message == Message::UserauthSuccess.bytes(), answer == "secret");
        }
    });
}

/// Offers a key; returns whether it would do, and whether the signature was taken.
async fn offer(client: &mut Client, user: &str, key: &HostKey, spoil: bool) -> (bool, bool) {
    let (algorithm, blob) = ("ssh-ed25519", key.blob());
    let method = |signature| Method::PublicKey { algorithm, key: blob, signature };
    client.send(&request(user, method(None))).await;
    let would = matches!(Message::decode(&client.message().await), Ok(Message::Userauth60(_)));
    let session = *client.transport.session().unwrap();
    let asked = AuthRequest { user, service: "ssh-connection", method: method(None) };
    let mut message = asked.to_be_signed(&session);
    message[4] ^= u8::from(spoil);
    let signature = key.sign(algorithm, &message).unwrap();
    client.send(&request(user, method(Some(&signature)))).await;
    (would, client.message().await == Message::UserauthSuccess.bytes())
}

#[test]
fn keys_sign_in() {
    run(async {
        let server = Server::start();
        let judged = || std::mem::take(&mut *server.alice.judged.lock().unwrap());
        let mut client = server.client().await;
        client.service().await;
        assert_eq!(offer(&mut client, "alice", &user_key(2), false).await, (false, false));
        assert_eq!(offer(&mut client, "bob", &user_key(1), false).await, (false, false));
        assert_eq!(judged(), [false, false]);
        // A signature of another session.
        assert_eq!(offer(&mut client, "alice", &user_key(1), true).await, (true, false));
        assert_eq!(offer(&mut client, "alice", &user_key(1), false).await, (true, true));
        assert_eq!(judged(), [false, true]);
        // The attempts of a client that must wait are not verified.
        server.alice.wait.store(true, Relaxed);
        let mut client = server.client().await;
        client.service().await;
        assert_eq!(offer(&mut client, "alice", &user_key(1), false).await, (false, false));
        assert!(judged().is_empty());
    });
}

#[test]
fn nothing_works_before_signing_in() {
    run(async {
        let server = Server::start();
        let open = Message::ChannelOpen {
            kind: "session",
            sender: 0,
            window: 1,
            packet_max: 1,
            data: b"",
        };
        for message in
            [open, password("alice", "secret"), Message::ServiceRequest("ssh-connection")]
        {
            let mut client = server.client().await;
            client.send(&message).await;
            assert!(client.farewell().await.is_some(), "{message:?}");
        }
        assert_eq!(server.ended.get(), 0);
    });
}

#[test]
fn strangers_do_not_take_all_places() {
    run(async {
        let server = Server::start();
        let mut strangers = Vec::new();
        while server.ssh.unsigned.count() < SSH_UNSIGNED_PEER_MAX {
            strangers.push(tokio::net::TcpStream::connect(server.address).await.unwrap());
            let enough = strangers.len();
            while server.ssh.unsigned.count() < enough.min(SSH_UNSIGNED_PEER_MAX) {
                tokio::task::yield_now().await;
            }
        }
        // The oldest makes room.
        let mut client = server.signed_in().await;
        let channel = client.open_sftp(1000, 1000).await;
        assert_eq!(client.echo(channel, b"x").await.data, b"x");
    });
}

#[test]
fn the_end_is_reported() {
    run(async {
        let server = Server::start();
        let mut client = server.signed_in().await;
        client.open_sftp(1000, 1000).await;
        let mut other = server.signed_in().await;
        server.alice.gone.store(true, Relaxed);
        assert_eq!(client.farewell().await, Some(reason::BY_APPLICATION));
        assert_eq!(server.ended.get(), 1, "the SFTP server has seen it");
        assert_eq!(other.farewell().await, Some(reason::BY_APPLICATION));
        server.alice.gone.store(false, Relaxed);
        let mut client = server.signed_in().await;
        server.ending.send_replace(true);
        assert_eq!(client.farewell().await, Some(reason::BY_APPLICATION));
    });
}

#[test]
fn too_much_data_ends_the_connection() {
    run(async {
        let server = Server::start();
        let mut client = server.signed_in().await;
        client.open("session", 1000, 1000).await;
        client.message().await;
        // No SFTP server takes it, and so no more than the window is held.
        let data = vec![0; 10_000];
        for _ in 0..=SSH_WINDOW_BEGIN as usize / data.len() {
            client.send(&Message::ChannelData { recipient: 0, data: &data }).await;
        }
        assert_eq!(client.farewell().await, Some(reason::PROTOCOL_ERROR));
    });
}

#[test]
fn channels_on_which_nothing_begins_hold_little_and_give_it_back() {
    run(async {
        let server = Server::start();
        let mut clients = Vec::new();
        let data = vec![0; SSH_WINDOW_BEGIN as usize];
        for _ in 0..4 {
            let mut client = server.signed_in().await;
            for recipient in 0..SSH_CHANNELS_MAX as u32 {
                client.open("session", 1000, 1000).await;
                client.message().await;
                client.send(&Message::ChannelData { recipient, data: &data }).await;
            }
            // Its answer shows that all before it has been taken.
            let name = "keepalive@openssh.com";
            client.send(&Message::GlobalRequest { name, want_reply: true, data: b"" }).await;
            client.message().await;
            clients.push(client);
        }
        let most = clients.len() * SSH_CHANNELS_MAX * SSH_WINDOW_BEGIN as usize;
        let held = server.held();
        assert!((most..=most + clients.len() * SSH_RECEIVE_BUFFER).contains(&held), "{held}");
        drop(clients);
        while server.held() > 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_full_account_lets_a_connection_wait_until_there_is_room() {
    run(async {
        let server = Server::start();
        let mut client = server.signed_in().await;
        let channel = client.open_sftp(1 << 20, 32_768).await;
        let all = Limits::default().bytes;
        let taken = server.budget.hold(all);
        let data = vec![1; 1000];
        {
            let mut echo = std::pin::pin!(client.echo(channel, &data));
            let wait = Duration::from_millis(50);
            assert!(tokio::time::timeout(wait, echo.as_mut()).await.is_err());
            assert!(server.ssh.budgets.stalls.load(Relaxed) > 0);
            drop(taken);
            assert!(echo.await.data == data);
        }
    });
}

#[test]
fn many_idle_sessions_stop_no_other() {
    run(async {
        engine::transport::raise_descriptor_limit().unwrap();
        let server = Server::start();
        let mut idle = Vec::new();
        for _ in 0..500 {
            let mut client = server.signed_in().await;
            client.open_sftp(1000, 1000).await;
            idle.push(client);
        }
        let mut client = server.signed_in().await;
        let channel = client.open_sftp(1 << 20, 32_768).await;
        let data = vec![1; 1_000_000];
        assert!(client.echo(channel, &data).await.data == data);
    });
}

#[test]
fn host_keys_are_made_once() {
    let directory = std::env::temp_dir().join(format!("plimsoll-host-keys-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let first = host_keys::read_or_make(&directory).unwrap();
    let again = host_keys::read_or_make(&directory).unwrap();
    let blobs = |keys: &[HostKey]| keys.iter().map(|k| k.blob().to_vec()).collect::<Vec<_>>();
    assert_eq!(blobs(&first), blobs(&again));
    use std::os::unix::fs::PermissionsExt;
    let file = directory.join("ssh_host_ed25519_key");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // One that cannot be read is not replaced.
    std::fs::write(&file, "broken").unwrap();
    assert!(host_keys::read_or_make(&directory).is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "broken");
    std::fs::remove_dir_all(&directory).unwrap();
}
