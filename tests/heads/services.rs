//! FTP, SFTP and HTTP over a takeover: a connection to the former owner ends, and a new one works
//! at once.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;

use e2e::api::Api;
use e2e::ftp::Ftp;
use e2e::http::Http;
use e2e::sftp::Sftp;
use e2e::{is_root, process, skip};
use serde_json::json;
use wire::sftp::OpenFlags;

use super::cluster::{ACCOUNTS, Cluster, LEFT, RIGHT};

/// The user, and her password.
const WHO: (&str, &str) = ("anna", "correct-horse");
const DATA: &[u8] = b"written before the takeover";
const PORTS: [u16; 3] = [21, 218, 80];

/// Makes the user, and serves plain HTTP.
fn set_up(api: &Api) {
    let http = "/configuration/services/http";
    let user = json!({ "create": "/configuration/users", "name": WHO.0,
        "properties": { "password": WHO.1, "uid": 4321, "gid": 4322 } });
    let plain = json!({ "set": http, "property": "plain", "value": "serve" });
    let basic = json!({ "set": http, "property": "basic_over_plain", "value": true });
    let (code, done) = api.post("/api/v1/changes", &json!({ "changes": [user, plain, basic] }));
    assert_eq!(code, 200, "{done}");
}

/// A client of each service with a connection that has read the file.
struct Clients {
    ftp: Ftp,
    sftp: Sftp,
    http: Http,
}

impl Clients {
    /// One attempt each: no client waits for what follows a takeover.
    fn connect(cluster: &Cluster, what: &str) -> Self {
        let from: IpAddr = "10.77.0.1".parse().expect("an address");
        let [ftp, sftp, http] = PORTS.map(|port| SocketAddr::new(ACCOUNTS.address().ip(), port));
        let connect = move || -> std::io::Result<Self> {
            let mut ftp = Ftp::connect(from, ftp)?;
            assert_eq!(ftp.sign_in(WHO.0, WHO.1)?, 230);
            Ok(Self {
                ftp,
                sftp: Sftp::connect(from, sftp, WHO)?,
                http: Http::connect(from, http, WHO)?,
            })
        };
        let connected = cluster.switch.spawn(connect).join().expect("clients");
        connected.unwrap_or_else(|e| panic!("{what}: {e}"))
    }

    /// Reads the file by each of them.
    fn read(mut self, cluster: &Cluster, what: &str) -> Self {
        let name = ACCOUNTS.name;
        let read = move || {
            let path = format!("/{name}/f");
            let by_ftp = self.ftp.data(format!("RETR {path}"), None).expect("a transfer");
            assert_eq!((by_ftp.0, by_ftp.1.as_slice()), (226, DATA));
            let handle = self.sftp.open(&path, OpenFlags::READ).expect("an answer").expect("open");
            let by_sftp = self.sftp.read(&handle, 0, DATA.len() as u32).expect("an answer");
            assert_eq!(by_sftp, Ok(DATA.to_vec()));
            let by_http = self.http.ask(("GET", path.as_bytes()), b"", b"").expect("an answer");
            assert_eq!((by_http.0, by_http.2.as_slice()), (200, DATA));
            self
        };
        // Data connections of FTP are the client's as well.
        cluster.switch.spawn(read).join().unwrap_or_else(|_| panic!("{what}: not read"))
    }

    /// Each connection has ended, and returns an error when it is used.
    fn have_ended(mut self, cluster: &Cluster, what: &str) {
        let path = format!("/{}/f", ACCOUNTS.name);
        let use_them = move || {
            assert!(self.ftp.say("NOOP").is_err(), "FTP");
            assert!(self.sftp.open(&path, OpenFlags::READ).is_err(), "SFTP");
            assert!(self.http.ask(("GET", path.as_bytes()), b"", b"").is_err(), "HTTP");
        };
        let done = cluster.switch.spawn(use_them).join();
        done.unwrap_or_else(|_| panic!("{what}: a connection to the former owner is alive"));
    }
}

#[test]
fn new_connections_work_at_once_after_a_takeover() {
    if !is_root() {
        skip!("heads-services", "network namespaces and loop devices need root");
    }
    let mut cluster = match Cluster::start(&[ACCOUNTS]) {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-services", "{why}"),
    };
    set_up(&cluster.api(ACCOUNTS));
    let directory = cluster.directory(ACCOUNTS);
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).expect("a mode");
    fs::write(directory.join("f"), DATA).expect("written");

    let before = Clients::connect(&cluster, "before").read(&cluster, "before");
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name]);
    let after = Clients::connect(&cluster, "planned").read(&cluster, "planned");
    before.have_ended(&cluster, "planned");

    let server = cluster.process(ACCOUNTS, RIGHT);
    cluster.kill(RIGHT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    Clients::connect(&cluster, "kill -9").read(&cluster, "kill -9");
    after.have_ended(&cluster, "kill -9");

    cluster.start_head(RIGHT);
    cluster.wait_for_member(LEFT, RIGHT);
    cluster.end();
}
