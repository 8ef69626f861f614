//! The second client, of each protocol, and what it does.

use e2e::ftp::Ftp;
use e2e::http::{Http, field};
use e2e::sftp::Sftp;
use e2e::smb::scene::{PASSWORD, SHARE, Scene, USER};
use e2e::tcp::HERE;
use wire::sftp::{OpenFlags, StatusCode};

use crate::lock_table::dsync::Dsync;
use crate::lock_table::nfs4::Nfs4;
use crate::lock_table::old_nfs::OldNfs;
use crate::lock_table::smb::SmbClient;
use crate::lock_table::{Outcome, Progress, RENAMED, refused};

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    Open,
    Lock,
    Rename,
    Remove,
}

impl Operation {
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::Open, Self::Lock, Self::Rename, Self::Remove];
}

/// By which protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Second {
    OldNfs,
    Nfs40,
    Nfs41,
    Smb,
    Ftp,
    Sftp,
    Dav,
    Dsync,
}

impl Second {
    pub const ALL: [Self; 8] = [
        Self::OldNfs,
        Self::Nfs40,
        Self::Nfs41,
        Self::Smb,
        Self::Ftp,
        Self::Sftp,
        Self::Dav,
        Self::Dsync,
    ];

    pub const fn title(self) -> &'static str {
        match self {
            Self::OldNfs => "NFSv3, NLM",
            Self::Nfs40 => "NFSv4.0",
            Self::Nfs41 => "NFSv4.1",
            Self::Smb => "SMB",
            Self::Ftp => "FTP",
            Self::Sftp => "SFTP",
            Self::Dav => "WebDAV",
            Self::Dsync => "dsync",
        }
    }

    /// Whether a client sees that it has to wait.
    pub const fn sees_delays(self) -> bool {
        matches!(self, Self::OldNfs | Self::Nfs40 | Self::Nfs41 | Self::Smb)
    }

    /// Whether the protocol has an operation.
    pub const fn has(self, operation: Operation) -> bool {
        let lacks = matches!(
            (self, operation),
            (Self::Ftp | Self::Dav | Self::Dsync, Operation::Open)
                | (Self::Ftp | Self::Sftp | Self::Dsync, Operation::Lock)
                | (Self::Dsync, Operation::Rename)
        );
        !lacks
    }
}

/// One client of each.
pub(super) struct Seconds {
    old: OldNfs,
    nfs4: [Nfs4; 2],
    smb: SmbClient,
    ftp: Ftp,
    sftp: Sftp,
    http: Http,
    dsync: Dsync,
}

impl Seconds {
    pub fn new(scene: &Scene, dsync: Dsync) -> Self {
        let (server, who) = (&scene.server, (USER, PASSWORD));
        let mut ftp = Ftp::connect(HERE, server.at(21)).expect("FTP");
        assert_eq!(ftp.sign_in(USER, PASSWORD).expect("a reply"), 230);
        Self {
            old: OldNfs::new(server.nfs(), "second"),
            nfs4: [0, 1].map(|minor| Nfs4::new(server.nfs(), minor, &format!("second{minor}"))),
            smb: SmbClient::new(scene, 2),
            ftp,
            sftp: Sftp::connect(HERE, server.at(218), who).expect("SFTP"),
            http: Http::connect(HERE, server.at(80), who).expect("HTTP"),
            dsync,
        }
    }

    /// Does it, as often as its protocol has the client do it.
    pub fn perform(
        &mut self,
        second: Second,
        operation: Operation,
        name: &str,
        progress: &Progress,
    ) -> Outcome {
        match second {
            Second::OldNfs => progress.repeat(|| self.old.perform(operation, name)),
            Second::Nfs40 => progress.repeat(|| self.nfs4[0].perform(operation, name)),
            Second::Nfs41 => progress.repeat(|| self.nfs4[1].perform(operation, name)),
            Second::Smb => self.smb.perform(operation, name, progress),
            Second::Ftp => over_ftp(&mut self.ftp, operation, name),
            Second::Sftp => over_sftp(&mut self.sftp, operation, name),
            Second::Dav => over_dav(&mut self.http, operation, name),
            Second::Dsync => self.dsync.perform(operation, name),
        }
    }
}

fn over_ftp(ftp: &mut Ftp, operation: Operation, name: &str) -> Outcome {
    let path = format!("/{SHARE}/{name}");
    let code = match operation {
        Operation::Read => ftp.data(format!("RETR {path}"), None).expect("a reply").0,
        Operation::Write => ftp.data(format!("STOR {path}"), Some(b"new")).expect("a reply").0,
        Operation::Rename => match ftp.code(format!("RNFR {path}")) {
            350 => ftp.code(format!("RNTO /{SHARE}/{RENAMED}")),
            other => other,
        },
        Operation::Remove => ftp.code(format!("DELE {path}")),
        Operation::Open | Operation::Lock => unreachable!("not over FTP: {operation:?}"),
    };
    if (200..300).contains(&code) { Ok(()) } else { Err(refused(format!("{code} over FTP"))) }
}

fn over_sftp(sftp: &mut Sftp, operation: Operation, name: &str) -> Outcome {
    let (path, renamed) = (format!("/{SHARE}/{name}"), format!("/{SHARE}/{RENAMED}"));
    let flags = match operation {
        Operation::Rename => return ended(sftp.posix_rename(&path, &renamed)),
        Operation::Remove => return ended(sftp.remove(&path)),
        Operation::Read => OpenFlags::READ,
        Operation::Write => OpenFlags::WRITE,
        _ => OpenFlags::READ.with(OpenFlags::WRITE),
    };
    let file = sftp.open(&path, flags).expect("an answer").map_err(refused)?;
    let done = match operation {
        Operation::Read => sftp.read(&file, 0, 9).expect("an answer").map(drop).map_err(refused),
        Operation::Write => ended(sftp.write(&file, 0, b"new")),
        _ => Ok(()),
    };
    sftp.close(&file).expect("an answer");
    done
}

fn ended(answer: std::io::Result<StatusCode>) -> Outcome {
    match answer.expect("an answer") {
        StatusCode::OK => Ok(()),
        other => Err(refused(other)),
    }
}

fn over_dav(http: &mut Http, operation: Operation, name: &str) -> Outcome {
    let lock = "<D:lockinfo xmlns:D='DAV:'><D:lockscope><D:exclusive/></D:lockscope>\
                <D:locktype><D:write/></D:locktype></D:lockinfo>";
    let moved = format!("destination: /{SHARE}/{RENAMED}\r\n");
    let (method, fields, body) = match operation {
        Operation::Read => ("GET", "", ""),
        Operation::Write => ("PUT", "", "new"),
        Operation::Lock => ("LOCK", "depth: 0\r\n", lock),
        Operation::Rename => ("MOVE", &*moved, ""),
        Operation::Remove => ("DELETE", "", ""),
        Operation::Open => unreachable!("not over WebDAV"),
    };
    let target = format!("/{SHARE}/{name}");
    let mut ask = |method, fields: &str, body: &str| {
        let answer = http.ask((method, target.as_bytes()), fields.as_bytes(), body.as_bytes());
        let (status, head, _) = answer.expect("a response");
        (status, head)
    };
    let (status, head) = ask(method, fields, body);
    if !(200..300).contains(&status) {
        return Err(refused(format!("{status} over HTTP")));
    }
    if operation == Operation::Lock {
        let token = field(&head, "lock-token").expect("a token");
        ask("UNLOCK", &format!("lock-token: {token}\r\n"), "");
    }
    Ok(())
}
