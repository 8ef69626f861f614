//! The least of an SFTP client: OpenSSH's `ssh` is the way, packets are made by hand, one request
//! at a time.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Flags of [`Sftp::open`].
pub const READ: u32 = 1;
/// See [`READ`].
pub const WRITE: u32 = 2;
/// See [`READ`].
pub const CREAT: u32 = 8;
/// See [`READ`].
pub const TRUNC: u32 = 16;
/// See [`READ`].
pub const EXCL: u32 = 32;

/// Types of packets (draft-ietf-secsh-filexfer-02 §3).
mod kind {
    pub const INIT: u8 = 1;
    pub const VERSION: u8 = 2;
    pub const OPEN: u8 = 3;
    pub const CLOSE: u8 = 4;
    pub const WRITE: u8 = 6;
    pub const SETSTAT: u8 = 9;
    pub const REMOVE: u8 = 13;
    pub const MKDIR: u8 = 14;
    pub const RMDIR: u8 = 15;
    pub const RENAME: u8 = 18;
    pub const SYMLINK: u8 = 20;
    pub const STATUS: u8 = 101;
    pub const HANDLE: u8 = 102;
    pub const EXTENDED: u8 = 200;
}

/// A channel.
pub struct Sftp {
    ssh: Child,
    to: ChildStdin,
    from: ChildStdout,
}

/// A length and bytes.
fn string(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

impl Sftp {
    /// Signs in with a password; what `ssh` needs for that goes to a folder.
    ///
    /// # Panics
    /// When that fails.
    pub fn connect(at: SocketAddr, folder: &Path, (user, password): (&str, &str)) -> Self {
        let script = folder.join("askpass");
        fs::write(&script, format!("#!/bin/sh\necho '{password}'\n")).expect("a script");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).expect("a mode");
        let port = at.port().to_string();
        let mut command = Command::new("ssh");
        command.args(["-F", "none", "-s", "-p", &port, "-o", "StrictHostKeyChecking=no"]);
        command.args(["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]);
        command.args(["-o", "PreferredAuthentications=password,keyboard-interactive"]);
        command.arg(format!("{user}@{}", at.ip())).arg("sftp");
        command.env("SSH_ASKPASS", &script).env("SSH_ASKPASS_REQUIRE", "force");
        command.env_remove("SSH_AUTH_SOCK").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut ssh = command.spawn().expect("ssh");
        let (to, from) = (ssh.stdin.take().expect("its input"), ssh.stdout.take());
        let mut sftp = Self { ssh, to, from: from.expect("its output") };
        sftp.send(kind::INIT, &3_u32.to_be_bytes());
        assert_eq!(sftp.receive().0, kind::VERSION);
        sftp
    }

    fn send(&mut self, kind: u8, body: &[u8]) {
        let length = (body.len() as u32 + 1).to_be_bytes();
        self.to.write_all(&[&length[..], &[kind], body].concat()).expect("sent");
        self.to.flush().expect("sent");
    }

    fn receive(&mut self) -> (u8, Vec<u8>) {
        let mut length = [0; 4];
        self.from.read_exact(&mut length).expect("an answer");
        let mut packet = vec![0; u32::from_be_bytes(length) as usize];
        self.from.read_exact(&mut packet).expect("an answer");
        (packet.remove(0), packet)
    }

    /// A request and its answer, without their numbers.
    fn ask(&mut self, kind: u8, parts: &[&[u8]]) -> (u8, Vec<u8>) {
        self.send(kind, &[&[0; 4][..], &*parts.concat()].concat());
        let (kind, mut answer) = self.receive();
        (kind, answer.split_off(4))
    }

    /// A request that is answered with a status: its number.
    fn status(&mut self, kind: u8, parts: &[&[u8]]) -> u32 {
        let (kind, answer) = self.ask(kind, parts);
        assert_eq!(kind, kind::STATUS);
        u32::from_be_bytes(*answer.first_chunk().expect("a number"))
    }

    /// OPEN; the handle.
    ///
    /// # Panics
    /// When it is refused.
    pub fn open(&mut self, path: &str, flags: u32) -> Vec<u8> {
        let (kind, answer) = self.ask(kind::OPEN, &[&string(path), &flags.to_be_bytes(), &[0; 4]]);
        assert_eq!(kind, kind::HANDLE, "{path}: {answer:?}");
        answer.get(4..).expect("a handle").to_vec()
    }

    /// WRITE; the status, as of all that follow.
    pub fn write(&mut self, handle: &[u8], offset: u64, data: &[u8]) -> u32 {
        self.status(kind::WRITE, &[&string(handle), &offset.to_be_bytes(), &string(data)])
    }

    /// CLOSE.
    pub fn close(&mut self, handle: &[u8]) -> u32 {
        self.status(kind::CLOSE, &[&string(handle)])
    }

    /// `fsync@openssh.com`.
    pub fn fsync(&mut self, handle: &[u8]) -> u32 {
        self.status(kind::EXTENDED, &[&string("fsync@openssh.com"), &string(handle)])
    }

    /// SETSTAT of the permissions.
    pub fn chmod(&mut self, path: &str, mode: u32) -> u32 {
        const PERMISSIONS: u32 = 4;
        let attrs = [PERMISSIONS.to_be_bytes(), mode.to_be_bytes()].concat();
        self.status(kind::SETSTAT, &[&string(path), &attrs])
    }

    /// MKDIR.
    pub fn mkdir(&mut self, path: &str) -> u32 {
        self.status(kind::MKDIR, &[&string(path), &[0; 4]])
    }

    /// RMDIR.
    pub fn rmdir(&mut self, path: &str) -> u32 {
        self.status(kind::RMDIR, &[&string(path)])
    }

    /// REMOVE.
    pub fn remove(&mut self, path: &str) -> u32 {
        self.status(kind::REMOVE, &[&string(path)])
    }

    /// RENAME, which replaces nothing.
    pub fn rename(&mut self, from: &str, to: &str) -> u32 {
        self.status(kind::RENAME, &[&string(from), &string(to)])
    }

    /// `posix-rename@openssh.com`.
    pub fn posix_rename(&mut self, from: &str, to: &str) -> u32 {
        let name = string("posix-rename@openssh.com");
        self.status(kind::EXTENDED, &[&name, &string(from), &string(to)])
    }

    /// `hardlink@openssh.com`.
    pub fn hardlink(&mut self, from: &str, to: &str) -> u32 {
        self.status(kind::EXTENDED, &[&string("hardlink@openssh.com"), &string(from), &string(to)])
    }

    /// SYMLINK, in OpenSSH's order: where it leads, where it is.
    pub fn symlink(&mut self, target: &str, path: &str) -> u32 {
        self.status(kind::SYMLINK, &[&string(target), &string(path)])
    }
}

impl Drop for Sftp {
    fn drop(&mut self) {
        let _gone = self.ssh.kill();
        let _reaped = self.ssh.wait();
    }
}
