//! What is done before the power goes, over each protocol; what must be there then, and the
//! flushes without which it is not.

use std::borrow::Cow;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use e2e::ftp::Ftp;
use e2e::http;
use e2e::sftp::Sftp;
use e2e::tcp::HERE;
use sim::forget::{ForgetFs, Left};
use wire::sftp::{OpenFlags, StatusCode};

/// The user that signs in, as the harness creates it.
pub const USER: (&str, &str) = ("admin", "only-for-this-test");
/// How SFTP opens what comes as a whole.
pub const REPLACE: OpenFlags = OpenFlags::WRITE.with(OpenFlags::CREAT).with(OpenFlags::TRUNC);

/// The content of a file before a case.
pub const OLD: &[u8] = b"what was here before";
/// What comes: small enough for what is stored in one go.
pub const NEW: &[u8] = b"what has come instead of it";

/// What comes in several pieces.
pub fn big() -> &'static [u8] {
    static BIG: OnceLock<Vec<u8>> = OnceLock::new();
    BIG.get_or_init(|| (0..1_500_000_u32).map(|n| (n / 3 % 251) as u8).collect())
}

/// What is at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    Nothing,
    Folder,
    /// An empty file.
    Empty,
    Old,
    New,
    Big,
    /// New at the end of old.
    Appended,
    /// New in the place of old's bytes from the fourth on.
    Spliced,
    /// Old, last changed at [`TIME`].
    OldSinceTime,
    /// Old, with the mode 0640.
    OldWithMode,
    /// A link to `f`.
    Link,
}

/// A time of last change.
pub const TIME: u64 = 1_000_000_000;

impl Thing {
    /// What is in it, if it is a file.
    pub fn content(self) -> Option<Cow<'static, [u8]>> {
        Some(match self {
            Self::Nothing | Self::Folder | Self::Link => return None,
            Self::Empty => Cow::Borrowed(&[]),
            Self::Old | Self::OldSinceTime | Self::OldWithMode => Cow::Borrowed(OLD),
            Self::New => Cow::Borrowed(NEW),
            Self::Big => Cow::Borrowed(big()),
            Self::Appended => Cow::Owned([OLD, NEW].concat()),
            Self::Spliced => Cow::Owned([&OLD[..3], NEW].concat()),
        })
    }

    /// What is there instead.
    pub fn differs(self, left: Option<&Left>) -> Option<String> {
        let Some(left) = left else {
            return (self != Self::Nothing).then(|| "nothing is there".to_owned());
        };
        let kind = left.mode & libc::S_IFMT;
        let Some(content) = self.content() else {
            let right = match self {
                Self::Folder => kind == libc::S_IFDIR,
                Self::Link => kind == libc::S_IFLNK && left.data == b"f",
                _ => false,
            };
            return (!right).then(|| format!("mode {:o}, {} bytes", left.mode, left.data.len()));
        };
        if left.data != *content {
            return Some(format!("{} other bytes", left.data.len()));
        }
        let mode = libc::S_IFREG | if self == Self::OldWithMode { 0o640 } else { 0o644 };
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(TIME);
        if left.mode != mode {
            return Some(format!("mode {:o}", left.mode));
        }
        let other = self == Self::OldSinceTime && left.mtime != time;
        other.then(|| format!("last changed at {:?}", left.mtime))
    }
}

/// What is asked for a handle.
type Last = fn(&mut Sftp, &[u8]) -> io::Result<StatusCode>;

/// Clients of all protocols.
pub struct Speakers {
    pub ftp: Ftp,
    pub sftp: Sftp,
    pub http: SocketAddr,
}

impl Speakers {
    /// Connects them; `ports` are those of FTP, SFTP and HTTP.
    pub fn new([ftp, sftp, http]: [SocketAddr; 3]) -> Self {
        let mut ftp = Ftp::connect(HERE, ftp).expect("FTP");
        assert_eq!(ftp.sign_in(USER.0, USER.1).expect("FTP"), 230);
        assert_eq!(ftp.code("TYPE I"), 200);
        let sftp = Sftp::connect(HERE, sftp, USER).expect("SFTP");
        Self { ftp, sftp, http }
    }

    fn line(&mut self, line: &str, code: u16) {
        let (answer, text) = self.ftp.say(line).expect("FTP");
        assert_eq!(answer, code, "{line}: {text}");
    }

    fn store(&mut self, line: &str, data: &[u8]) {
        assert_eq!(self.ftp.data(line, Some(data)).expect("FTP").0, 226, "{line}");
    }

    fn sftp(&mut self, ask: impl FnOnce(&mut Sftp) -> io::Result<StatusCode>) {
        assert_eq!(ask(&mut self.sftp).expect("SFTP"), StatusCode::OK);
    }

    fn open(&mut self, path: &str, flags: OpenFlags) -> Vec<u8> {
        self.sftp.open(path, flags).expect("SFTP").expect("a handle")
    }

    /// Writes a file as a whole; then `last`.
    fn write(&mut self, path: &str, data: &[u8], last: Last) {
        let handle = self.open(path, REPLACE);
        for (n, piece) in data.chunks(32 << 10).enumerate() {
            self.sftp(|sftp| sftp.write(&handle, (n * (32 << 10)) as u64, piece));
        }
        self.sftp(|sftp| last(sftp, &handle));
    }

    fn http(&self, line: &str, headers: &[&str], body: &[u8], code: u16) -> String {
        let (answer, text) = http::ask(self.http, USER, line, headers, body);
        assert_eq!(answer, code, "{line}: {text}");
        text
    }

    fn to(&self, line: &str, to: &str, code: u16) {
        let to = format!("Destination: http://{}{to}", self.http);
        self.http(line, &[&to], b"", code);
    }
}

/// Something that is done, in a folder of its own.
pub struct Case {
    /// Its name, and its folder's.
    pub name: &'static str,
    pub before: &'static [(&'static str, Thing)],
    pub act: fn(&mut Speakers, &str),
    /// Must be there once it is acknowledged, whatever happens then.
    pub after: &'static [(&'static str, Thing)],
    /// Flushes, by the names that `PLIMSOLL_TEST_SKIP_FLUSH` takes; without each of them it is not.
    pub needs: &'static [&'static str],
}

impl Case {
    /// What is not as it was acknowledged.
    pub fn lost(&self, image: &ForgetFs) -> Option<String> {
        self.after.iter().find_map(|(name, thing)| {
            let left = image.look(&format!("share/{}/{name}", self.name));
            thing.differs(left.as_ref()).map(|what| format!("{name}: {what}"))
        })
    }
}

use Thing::{
    Appended, Big, Empty, Folder, Link, New, Nothing, Old, OldSinceTime, OldWithMode, Spliced,
};

/// A large one is written in steps.
const ASIDE: &[&str] = &["commit", "rename-from"];
/// A small one is written in one.
const AT_ONCE: &[&str] = &["write-file-sync", "rename-from"];
const F_OLD: &[(&str, Thing)] = &[("f", Old)];

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Case> {
    FTP.iter().chain(&SFTP).chain(&HTTP).chain(&DAV)
}

static FTP: [Case; 10] = [
    Case {
        name: "ftp-stor",
        before: F_OLD,
        act: |s, at| s.store(&format!("STOR {at}/f"), NEW),
        after: &[("f", New)],
        needs: AT_ONCE,
    },
    Case {
        name: "ftp-stor-big",
        before: F_OLD,
        act: |s, at| s.store(&format!("STOR {at}/f"), big()),
        after: &[("f", Big)],
        needs: ASIDE,
    },
    Case {
        name: "ftp-appe",
        before: F_OLD,
        act: |s, at| s.store(&format!("APPE {at}/f"), NEW),
        after: &[("f", Appended)],
        needs: &["commit"],
    },
    Case {
        name: "ftp-appe-new",
        before: &[],
        act: |s, at| s.store(&format!("APPE {at}/f"), NEW),
        after: &[("f", New)],
        needs: &["create-directory"],
    },
    Case {
        name: "ftp-rest",
        before: F_OLD,
        act: |s, at| {
            // Nothing may come between the two lines.
            let mut data = s.ftp.passive().expect("FTP");
            s.line("REST 3", 350);
            s.line(&format!("STOR {at}/f"), 150);
            data.write_all(NEW).expect("sent");
            drop(data);
            assert_eq!(s.ftp.reply().expect("FTP").0, 226);
        },
        after: &[("f", Spliced)],
        needs: &["commit"],
    },
    Case {
        name: "ftp-mkd",
        before: &[],
        act: |s, at| s.line(&format!("MKD {at}/d"), 257),
        after: &[("d", Folder)],
        needs: &["mkdir-parent"],
    },
    Case {
        name: "ftp-dele",
        before: F_OLD,
        act: |s, at| s.line(&format!("DELE {at}/f"), 250),
        after: &[("f", Nothing)],
        needs: &["remove-directory"],
    },
    Case {
        name: "ftp-rmd",
        before: &[("d", Folder)],
        act: |s, at| s.line(&format!("RMD {at}/d"), 250),
        after: &[("d", Nothing)],
        needs: &["rmdir-directory"],
    },
    Case {
        name: "ftp-rename",
        before: &[("f", Old), ("d", Folder)],
        act: |s, at| {
            s.line(&format!("RNFR {at}/f"), 350);
            s.line(&format!("RNTO {at}/d/f"), 250);
        },
        after: &[("f", Nothing), ("d/f", Old)],
        needs: &["rename-from", "rename-to"],
    },
    Case {
        name: "ftp-mfmt",
        before: F_OLD,
        act: |s, at| s.line(&format!("MFMT 20010909014640 {at}/f"), 213),
        after: &[("f", OldSinceTime)],
        needs: &["setattr"],
    },
];

static SFTP: [Case; 12] = [
    Case {
        name: "sftp-close",
        before: F_OLD,
        act: |s, at| s.write(&format!("{at}/f"), big(), Sftp::close),
        after: &[("f", Big)],
        needs: ASIDE,
    },
    Case {
        name: "sftp-fsync",
        before: F_OLD,
        act: |s, at| s.write(&format!("{at}/f"), NEW, Sftp::fsync),
        after: &[("f", New)],
        needs: ASIDE,
    },
    Case {
        name: "sftp-open-new",
        before: &[],
        act: |s, at| {
            let new = OpenFlags::WRITE.with(OpenFlags::CREAT).with(OpenFlags::EXCL);
            s.open(&format!("{at}/f"), new);
        },
        after: &[("f", Empty)],
        needs: &["create-file", "create-directory"],
    },
    Case {
        name: "sftp-in-place",
        before: F_OLD,
        act: |s, at| {
            let handle = s.open(&format!("{at}/f"), OpenFlags::WRITE);
            s.sftp(|sftp| sftp.write(&handle, 3, NEW));
            s.sftp(|sftp| sftp.fsync(&handle));
        },
        after: &[("f", Spliced)],
        needs: &["commit"],
    },
    Case {
        name: "sftp-rename",
        before: F_OLD,
        act: |s, at| s.sftp(|sftp| sftp.rename(&format!("{at}/f"), &format!("{at}/g"))),
        after: &[("f", Nothing), ("g", Old)],
        // It is a link, and then a removal, which flushes the same directory.
        needs: &["remove-directory"],
    },
    Case {
        name: "sftp-posix-rename",
        before: &[("f", New), ("g", Old)],
        act: |s, at| s.sftp(|sftp| sftp.posix_rename(&format!("{at}/f"), &format!("{at}/g"))),
        after: &[("f", Nothing), ("g", New)],
        needs: &["rename-from"],
    },
    Case {
        name: "sftp-mkdir",
        before: &[],
        act: |s, at| s.sftp(|sftp| sftp.mkdir(&format!("{at}/d"))),
        after: &[("d", Folder)],
        needs: &["mkdir-parent"],
    },
    Case {
        name: "sftp-remove",
        before: F_OLD,
        act: |s, at| s.sftp(|sftp| sftp.remove(&format!("{at}/f"))),
        after: &[("f", Nothing)],
        needs: &["remove-directory"],
    },
    Case {
        name: "sftp-rmdir",
        before: &[("d", Folder)],
        act: |s, at| s.sftp(|sftp| sftp.rmdir(&format!("{at}/d"))),
        after: &[("d", Nothing)],
        needs: &["rmdir-directory"],
    },
    Case {
        name: "sftp-setstat",
        before: F_OLD,
        act: |s, at| s.sftp(|sftp| sftp.chmod(&format!("{at}/f"), 0o640)),
        after: &[("f", OldWithMode)],
        needs: &["setattr"],
    },
    Case {
        name: "sftp-symlink",
        before: F_OLD,
        act: |s, at| s.sftp(|sftp| sftp.symlink("f", &format!("{at}/l"))),
        after: &[("l", Link)],
        needs: &["symlink-directory"],
    },
    Case {
        name: "sftp-hardlink",
        before: F_OLD,
        act: |s, at| s.sftp(|sftp| sftp.hardlink(&format!("{at}/f"), &format!("{at}/g"))),
        after: &[("f", Old), ("g", Old)],
        needs: &["link-directory"],
    },
];

static HTTP: [Case; 4] = [
    Case {
        name: "http-put",
        before: F_OLD,
        act: |s, at| drop(s.http(&format!("PUT {at}/f"), &[], NEW, 204)),
        after: &[("f", New)],
        needs: AT_ONCE,
    },
    Case {
        name: "http-put-big",
        before: F_OLD,
        act: |s, at| drop(s.http(&format!("PUT {at}/f"), &[], big(), 204)),
        after: &[("f", Big)],
        needs: ASIDE,
    },
    Case {
        name: "http-put-part",
        before: F_OLD,
        act: |s, at| {
            let range = format!("Content-Range: bytes 3-{}/*", 2 + NEW.len());
            s.http(&format!("PUT {at}/f"), &[&range], NEW, 204);
        },
        after: &[("f", Spliced)],
        needs: &["commit"],
    },
    Case {
        name: "http-in-parts",
        before: F_OLD,
        act: |s, at| {
            let (all, half) = (big(), 700_000);
            let length = format!("Upload-Length: {}", all.len());
            let begun = s.http(&format!("POST {at}/f?upload"), &[&length], b"", 201);
            let there = format!("PATCH {}", http::field(&begun, "location").expect("a place"));
            s.http(&there, &["Upload-Offset: 0"], &all[..half], 204);
            s.http(&there, &[&format!("Upload-Offset: {half}")], &all[half..], 201);
        },
        after: &[("f", Big)],
        // What it takes over from the file that it replaces is flushed with the data in it.
        needs: &["commit,setattr", "rename-from"],
    },
];

const PROPERTY: &[u8] = b"<propertyupdate xmlns='DAV:'><set><prop><getlastmodified>\
    Sun, 09 Sep 2001 01:46:40 GMT</getlastmodified></prop></set></propertyupdate>";

static DAV: [Case; 8] = [
    Case {
        name: "dav-mkcol",
        before: &[],
        act: |s, at| drop(s.http(&format!("MKCOL {at}/d"), &[], b"", 201)),
        after: &[("d", Folder)],
        needs: &["mkdir-parent"],
    },
    Case {
        name: "dav-copy",
        before: &[("f", Big), ("g", Old)],
        act: |s, at| s.to(&format!("COPY {at}/f"), &format!("{at}/g"), 204),
        after: &[("f", Big), ("g", Big)],
        // A copy that the file system makes is flushed separately, and with the rest at the end.
        needs: &["copy,commit", "rename-from"],
    },
    Case {
        name: "dav-copy-tree",
        before: &[("d", Folder), ("d/e", Folder), ("d/e/f", Old)],
        act: |s, at| s.to(&format!("COPY {at}/d"), &format!("{at}/c"), 201),
        after: &[("d/e/f", Old), ("c/e", Folder), ("c/e/f", Old)],
        needs: &["copy,commit", "mkdir-parent", "rename-from"],
    },
    Case {
        name: "dav-move",
        before: &[("f", New), ("g", Old)],
        act: |s, at| s.to(&format!("MOVE {at}/f"), &format!("{at}/g"), 204),
        after: &[("f", Nothing), ("g", New)],
        needs: &["rename-from"],
    },
    Case {
        name: "dav-move-tree",
        before: &[("d", Folder), ("d/f", Old), ("e", Folder)],
        act: |s, at| s.to(&format!("MOVE {at}/d"), &format!("{at}/e/d"), 201),
        after: &[("d", Nothing), ("e/d/f", Old)],
        needs: &["rename-from", "rename-to"],
    },
    Case {
        name: "dav-delete",
        before: F_OLD,
        act: |s, at| drop(s.http(&format!("DELETE {at}/f"), &[], b"", 204)),
        after: &[("f", Nothing)],
        needs: &["remove-directory"],
    },
    Case {
        name: "dav-delete-tree",
        before: &[("d", Folder), ("d/f", Old)],
        act: |s, at| drop(s.http(&format!("DELETE {at}/d"), &[], b"", 204)),
        after: &[("d", Nothing)],
        needs: &["rmdir-directory"],
    },
    Case {
        name: "dav-proppatch",
        before: F_OLD,
        act: |s, at| drop(s.http(&format!("PROPPATCH {at}/f"), &[], PROPERTY, 207)),
        after: &[("f", OldSinceTime)],
        needs: &["setattr"],
    },
];
