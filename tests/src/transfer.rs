//! A server with a share that FTP, SFTP and HTTP reach alike.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::api::Api;
use crate::ftp::Ftp;
use crate::http::Http;
use crate::scene;
use crate::scratch::Scratch;
use crate::server::Server;
use crate::sftp::Sftp;

/// The node of FTP.
pub const FTP: &str = "/configuration/services/ftp";
/// The node of HTTP.
pub const HTTP: &str = "/configuration/services/http";
/// Anna's password.
pub const PASSWORD: &str = "correct-horse";

/// A server with the share `box` and its user anna.
pub struct Scene {
    /// The server.
    pub server: Server,
    /// Its administration.
    pub api: Api,
    /// The directory in which that of the share is.
    pub dir: PathBuf,
    /// Where the server keeps its state.
    pub state: PathBuf,
    _scratch: Scratch,
}

impl Scene {
    /// Makes it, with plain HTTP.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new(name: &str) -> Self {
        // In memory: what is asked here is not how fast the disk is.
        let scratch = Scratch::below(Path::new("/dev/shm"), name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let scene = scene::Scene { scratch, dir, state };
        let plain = json!({"set": HTTP, "property": "plain", "value": "serve"});
        let basic = json!({"set": HTTP, "property": "basic_over_plain", "value": true});
        let (server, api) = scene.start_for_anna(PASSWORD, &[plain, basic]);
        let scene::Scene { dir, state, scratch } = scene;
        Self { server, api, dir, state, _scratch: scratch }
    }

    /// Changes the configuration.
    ///
    /// # Panics
    /// When it is refused.
    pub fn change(&self, changes: &Value) {
        let (code, done) = self.api.post("/api/v1/changes", &json!({ "changes": changes }));
        assert_eq!(code, 200, "{done}");
    }

    /// FTP from an address, greeted.
    ///
    /// # Errors
    /// No connection, or another greeting.
    pub fn ftp(&self, from: IpAddr) -> io::Result<Ftp> {
        Ftp::connect(from, self.server.at(21))
    }

    /// SFTP from an address, for anna with a password.
    ///
    /// # Errors
    /// She is not let in.
    pub fn sftp(&self, from: IpAddr, password: &str) -> io::Result<Sftp> {
        Sftp::connect(from, self.server.at(218), ("anna", password))
    }

    /// A connection of HTTP from an address, for anna with a password.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn http(&self, from: IpAddr, password: &str) -> io::Result<Http> {
        Http::connect(from, self.server.at(80), ("anna", password))
    }
}
