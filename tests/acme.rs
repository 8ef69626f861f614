//! Certificates of the administration on the real server: by ACME from pebble, the test authority
//! of Let's Encrypt; supplied ones, exchanged under open connections; for NFS too.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use e2e::api::Api;
use e2e::nfs3;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::tls::{Authority, Pair, Tunnel, client, secure};
use e2e::{has, skip};
use rustls::{ClientConnection, StreamOwned};
use serde_json::{Value, json};

/// How long an order may take: pebble replies in milliseconds, but requests a retry in a second.
const ORDER: Duration = e2e::patience(20);
/// How often the state is read; there is no event for it.
const AGAIN: Duration = Duration::from_millis(50);
/// The node of certificates.
const AT: &str = "/configuration/certificates";
/// The node of NFS.
const NFS: &str = "/configuration/services/nfs";

/// A server with its API.
struct Scene {
    scratch: Scratch,
    state: PathBuf,
    server: Server,
    api: Api,
}

impl Scene {
    fn new(name: &str) -> Self {
        let scratch = Scratch::with_space(name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let server = Server::start(&Options::new(&dir, &state));
        let api = Api::new(&state);
        Self { scratch, state, server, api }
    }

    fn admin(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 215 + self.server.offset))
    }

    /// Commits; what is noted.
    fn change(&self, changes: Value) -> String {
        let (code, answer) = self.api.post("/api/v1/changes", &json!({ "changes": changes }));
        assert_eq!(code, 200, "{answer}");
        answer["notes"].to_string()
    }

    fn refused(&self, changes: Value) -> String {
        let (code, answer) = self.api.post("/api/v1/changes", &json!({ "changes": changes }));
        assert_eq!(code, 409, "{answer}");
        answer["error"]["failed"].to_string()
    }

    /// Whether NFS shows a certificate that this authority has signed.
    fn nfs_shows(&self, authority: &str) -> bool {
        secure(self.server.nfs(), &client(authority, None)).is_ok()
    }

    /// A property of a certificate.
    fn property(&self, name: &str, property: &str) -> Value {
        self.property_at(&format!("{AT}/{name}"), property)
    }

    fn property_at(&self, path: &str, property: &str) -> Value {
        let (code, node) = self.api.get(&format!("/api/v1/nodes{path}"));
        assert_eq!(code, 200, "{node}");
        let all = node["properties"].as_array().expect("properties");
        let found = all.iter().find(|one| one["name"] == property).expect("the property");
        found["value"].clone()
    }

    /// Waits for a state. On a timeout the panic message has the reason that the certificate shows.
    fn until(&self, name: &str, what: &str, mut is: impl FnMut() -> bool) {
        let end = Instant::now() + ORDER;
        while !is() {
            let reason = self.property(name, "reason");
            assert!(Instant::now() < end, "waited in vain until {what}: {reason}");
            std::thread::park_timeout(AGAIN);
        }
    }

    fn until_state(&self, name: &str, state: &str) {
        self.until(name, state, || self.property(name, "state") == state);
    }

    fn own_authority(&self) -> String {
        fs::read_to_string(self.state.join("authority.pem")).expect("an authority")
    }
}

/// An open connection over HTTPS.
struct Https {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
}

impl Https {
    fn connect(at: SocketAddr, name: &str, roots: &str) -> io::Result<Self> {
        let mut config = client(roots, None);
        config.alpn_protocols.clear();
        let name = name.to_owned().try_into().map_err(io::Error::other)?;
        let mut session =
            ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        let mut tcp = TcpStream::connect(at)?;
        tcp.set_read_timeout(Some(ORDER))?;
        while session.is_handshaking() {
            session.complete_io(&mut tcp)?;
        }
        Ok(Self { stream: BufReader::new(StreamOwned::new(session, tcp)) })
    }

    /// Status line and body; the connection stays.
    fn get(&mut self, path: &str) -> io::Result<(String, String)> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 || line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            if status.is_empty() {
                status = line;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}

/// Where `make deps` puts it, or wherever it is.
fn pebble() -> Option<PathBuf> {
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools/pebble");
    if made.exists() { Some(made) } else { has("pebble").then(|| PathBuf::from("pebble")) }
}

/// The running authority; ended with the test.
struct Pebble {
    child: Child,
    directory: String,
    /// The CA of pebble's own certificate, PEM.
    authorities: String,
    /// The root CA of the certificates that pebble issues, PEM.
    root: String,
}

impl Pebble {
    /// An authority that looks for proofs on these ports.
    fn start(program: &Path, dir: &Path, tls: u16, http: u16) -> Self {
        let authority = Authority::new("pebble's own");
        let (certificate, key) = authority.sign().write(dir, "pebble");
        let (listen, manage) = (free_port(), free_port());
        let config = json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{listen}"),
            "managementListenAddress": format!("127.0.0.1:{manage}"),
            "certificate": certificate, "privateKey": key,
            "tlsPort": tls, "httpPort": http,
            "retryAfter": { "authz": 1, "order": 1 },
        } });
        let file = dir.join("pebble.json");
        fs::write(&file, config.to_string()).expect("written");
        let mut command = Command::new(program);
        command.arg("-config").arg(&file);
        command.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_WFE_NONCEREJECT", "0");
        command.env("PEBBLE_AUTHZREUSE", "0");
        let log = fs::File::create(dir.join("pebble.log")).expect("a log");
        let child = command.stdout(log).stderr(Stdio::null()).spawn().expect("pebble");
        let mut pebble = Self {
            child,
            directory: format!("https://localhost:{listen}/dir"),
            authorities: authority.pem(),
            root: String::new(),
        };
        let at = SocketAddr::from(([127, 0, 0, 1], manage));
        let end = Instant::now() + ORDER;
        while pebble.root.is_empty() {
            let root = Https::connect(at, "localhost", &pebble.authorities)
                .and_then(|mut https| https.get("/roots/0"));
            pebble.root = root.map(|(_, body)| body).unwrap_or_default();
            assert!(Instant::now() < end, "pebble does not answer");
            std::thread::park_timeout(AGAIN);
        }
        pebble
    }

    fn order(&self, name: &str, more: Value) -> Value {
        let mut properties = json!({
            "source": "acme", "directory": self.directory, "authorities": self.authorities,
            "terms_agreed": true, "contacts": ["admin@example.org"],
        });
        let more = more.as_object().expect("properties").clone();
        properties.as_object_mut().expect("properties").extend(more);
        json!({ "create": AT, "name": name, "properties": properties })
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        // It is our own child, and may have ended.
        let _gone = (self.child.kill(), self.child.wait());
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("its address").port()
}

fn create(name: &str, pair: &Pair) -> Value {
    let properties = json!({ "chain": pair.certificate, "key": pair.key });
    json!({ "create": AT, "name": name, "properties": properties })
}

fn set(path: &str, property: &str, value: impl Into<Value>) -> Value {
    json!({ "set": path, "property": property, "value": value.into() })
}

fn in_use(name: &str) -> Value {
    json!({ "set": AT, "property": "in_use", "value": name })
}

#[test]
fn an_authority_gives_certificates_over_both_proofs_and_renews_them() {
    let Some(program) = pebble() else {
        skip!("acme", "pebble is not there: `make deps` builds it with Go");
    };
    let scene = Scene::new("acme");
    let (admin, http) = (scene.admin(), free_port());
    let pebble = Pebble::start(&program, scene.scratch.path(), admin.port(), http);

    let before = scene.own_authority();
    let mut open = Https::connect(admin, "localhost", &before).expect("the server's own");
    let names = json!({ "domains": ["localhost", "127.0.0.1"] });
    scene.change(json!([pebble.order("public", names), in_use("public")]));
    scene.until_state("public", "good");
    assert_eq!(scene.property("public", "in_use"), true);
    let mut https = Https::connect(admin, "localhost", &pebble.root).expect("the authority's");
    assert!(https.get("/").expect("a page").0.contains(" 200 "));
    Https::connect(admin, "127.0.0.1", &pebble.root).expect("by its address too");
    Https::connect(admin, "localhost", &before).map(drop).expect_err("not the old one");
    assert!(open.get("/").expect("a page").0.contains(" 200 "), "what was open goes on");

    let first = scene.property("public", "fingerprint");
    let renew = format!("/api/v1/nodes{AT}/public/actions/renew");
    assert_eq!(scene.api.post(&renew, &json!({})).0, 200);
    scene.until("public", "it is renewed", || scene.property("public", "fingerprint") != first);
    assert_eq!(scene.property("public", "state"), "good");

    let over_http = json!({
        "domains": ["localhost"], "challenge": "http-01", "http_port": http,
    });
    scene.change(json!([pebble.order("http", over_http)]));
    scene.until_state("http", "good");
    TcpStream::connect(("127.0.0.1", http)).expect_err("it listens only for the proof");

    scene.change(json!([pebble.order("elsewhere", json!({ "domains": ["127.0.0.2"] }))]));
    scene.until_state("elsewhere", "failed");
    let reason = scene.property("elsewhere", "reason").to_string();
    assert!(reason.contains("could not see that 127.0.0.2 is this host"), "{reason}");
    no_secrets(&scene);
}

/// Keys and accounts are in two places: files that only the server reads.
fn no_secrets(scene: &Scene) {
    let (_, tree) = scene.api.get("/api/v1/nodes/configuration?depth=9");
    let (_, audit) = scene.api.get("/api/v1/audit");
    let (_, log) = scene.api.get("/api/v1/logs");
    assert!(tree.to_string().contains("BEGIN CERTIFICATE") && audit.to_string().contains("public"));
    let revisions = fs::read_dir(scene.state.join("configuration")).expect("revisions").flatten();
    let revisions = revisions.map(|file| fs::read_to_string(file.path()).expect("a revision"));
    let printed =
        [tree.to_string(), audit.to_string(), log.to_string(), scene.server.stderr_text()];
    for text in printed.into_iter().chain(revisions) {
        assert!(!text.contains("PRIVATE KEY") && !text.contains("key_pkcs8"), "{text}");
    }
}

#[test]
fn a_supplied_certificate_is_shown_by_the_administration_and_by_nfs() {
    let scene = Scene::new("supplied");
    let authority = Authority::new("office");
    let pair = authority.sign();
    let create = create("office", &pair);
    let mounts = |roots: &str| {
        let tunnel = Tunnel::start(scene.server.nfs(), client(roots, None));
        let v3 = nfs3::Client::connect(tunnel.addr, 0, 0);
        v3.is_ok_and(|mut v3| v3.mnt(&scene.server.export()).is_ok())
    };
    let own = scene.own_authority();
    assert!(mounts(&own) && !mounts(&authority.pem()));
    let mut open = Https::connect(scene.admin(), "localhost", &own).expect("the server's own");

    scene.change(json!([create, in_use("office")]));
    Https::connect(scene.admin(), "localhost", &authority.pem()).expect("the office's");
    assert!(mounts(&authority.pem()) && !mounts(&own));
    assert!(open.get("/").expect("a page").0.contains(" 200 "), "what was open goes on");
    no_keys(&scene, &pair.key);

    scene.change(json!([in_use("self-signed")]));
    assert!(mounts(&own));
}

/// A supplied key is where secrets are, and nowhere else.
fn no_keys(scene: &Scene, key: &str) {
    // JSON has the line ends in another form; a line of base64 is the same everywhere.
    let line = key.lines().nth(1).expect("a line of the key");
    let mut files = vec![scene.state.clone()];
    let mut found = Vec::new();
    while let Some(at) = files.pop() {
        if at.is_dir() {
            files.extend(fs::read_dir(at).expect("a folder").flatten().map(|file| file.path()));
        } else if fs::read(&at).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(line)) {
            found.push(at.file_name().expect("a name").to_string_lossy().into_owned());
        }
    }
    assert_eq!(found, ["secrets.json"]);
    let (_, tree) = scene.api.get("/api/v1/nodes/configuration?depth=9");
    let (_, audit) = scene.api.get("/api/v1/audit");
    assert!(!tree.to_string().contains(line) && !audit.to_string().contains(line));
    assert!(audit.to_string().contains("(secret)") && !scene.server.stderr_text().contains(line));
}

#[test]
fn nfs_shows_the_certificate_that_it_names() {
    let scene = Scene::new("by-name");
    let [office, lab] = ["office", "lab"].map(Authority::new);
    let own = scene.own_authority();
    assert!(scene.nfs_shows(&own));
    let shown = || scene.property_at(NFS, "certificate_shown");
    assert_eq!(shown(), "self-signed");

    // Created and selected in one commit; the administration retains its own certificate.
    let by_name = |name: &str| set(NFS, "certificate", name);
    scene.change(json!([create("office", &office.sign()), by_name("office")]));
    assert!(scene.nfs_shows(&office.pem()) && !scene.nfs_shows(&own));
    assert_eq!(shown(), "office");
    Https::connect(scene.admin(), "localhost", &own).expect("the administration's own");

    // A new certificate is for new connections; existing connections continue.
    let tunnel = Tunnel::start(scene.server.nfs(), client(&office.pem(), None));
    let mut v3 = nfs3::Client::connect(tunnel.addr, 0, 0).expect("through the tunnel");
    let root = v3.mnt(&scene.server.export()).expect("mounted");
    scene.change(json!([create("lab", &lab.sign()), by_name("lab")]));
    assert!(scene.nfs_shows(&lab.pem()) && !scene.nfs_shows(&office.pem()));
    v3.getattr(&root).expect("over the session that it has");

    // What it names cannot go away under it.
    let said = scene.refused(json!([{ "destroy": format!("{AT}/lab"), "confirm": true }]));
    assert!(said.contains("no certificate \\\"lab\\\" for NFS to show"), "{said}");
    scene.refused(json!([{ "rename": format!("{AT}/lab"), "to": "laboratory" }]));
    scene.refused(json!([by_name("none")]));
    assert!(scene.nfs_shows(&lab.pem()));

    // Renewed under its name.
    let (again, at) = (Authority::new("again"), format!("{AT}/lab"));
    let pair = again.sign();
    let [chain, key] = [("chain", &pair.certificate), ("key", &pair.key)]
        .map(|(name, pem)| set(&at, name, pem.as_str()));
    scene.change(json!([chain, key]));
    assert!(scene.nfs_shows(&again.pem()) && !scene.nfs_shows(&lab.pem()));
    instead_of_it(&scene, (&own, &again.pem()), key);
}

/// What NFS shows as long as the certificate `lab` cannot be shown, which `key` makes whole again:
/// files go before what the administration shows, and the name before both.
fn instead_of_it(scene: &Scene, (own, lab): (&str, &str), key: Value) {
    let unset = |path: &str, property| json!({ "unset": path, "property": property });
    let shown = || scene.property_at(NFS, "certificate_shown");
    scene.change(json!([unset(&format!("{AT}/lab"), "key")]));
    assert!(scene.nfs_shows(own));
    let why = "NFS cannot use the certificate lab: its key must be set";
    assert_eq!(scene.property_at(NFS, "certificate_problem"), why);
    assert!(scene.api.status()["problems"].to_string().contains(why));

    let files = Authority::new("files");
    let (certificate, private) = files.sign().write(scene.scratch.path(), "nfs");
    let file = |path: &Path| path.display().to_string();
    let named = [("tls_certificate", file(&certificate)), ("tls_key", file(&private))];
    scene.change(Value::from(named.map(|(name, file)| set(NFS, name, file)).to_vec()));
    assert!(scene.nfs_shows(&files.pem()));
    assert_eq!(shown(), file(&certificate));
    scene.change(json!([key]));
    assert!(scene.nfs_shows(lab) && !scene.nfs_shows(&files.pem()));
    assert!(scene.property_at(NFS, "certificate_problem").is_null());
    assert_eq!(scene.api.status()["healthy"], true, "{}", scene.api.status());

    scene.change(json!([unset(NFS, "certificate")]));
    assert!(scene.nfs_shows(&files.pem()));
    scene.change(json!([unset(NFS, "tls_certificate"), unset(NFS, "tls_key")]));
    assert!(scene.nfs_shows(own));
    assert_eq!(shown(), "self-signed");
}
