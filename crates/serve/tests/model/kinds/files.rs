//! Clients of FTP, SFTP and WebDAV.

use serve::files::VPath;
use wire::dav::DAV;
use wire::dav::xml::Element;
use wire::ftp::{Request as Ftp959, Verb};
use wire::http::target::{decode_path, percent_encode};
use wire::sftp::request::{OfHandle, OfPath, Open, Read, TwoPaths};
use wire::sftp::{Attrs, HandleBytes, OpenFlags, PathBytes, Reply, Request};
use wire::xdr::Reader;

use super::{Opened, Path};
use crate::scene::Scene;
use crate::world::SIGNED_IN;
use crate::{ftp, sftp, stand};

/// Bytes that are read.
const COUNT: u32 = 4096;

fn joined(share: &str, path: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = [b"/", share.as_bytes()].concat();
    for part in path {
        bytes.push(b'/');
        bytes.extend_from_slice(part);
    }
    bytes
}

/// A client of FTP.
pub struct Ftp {
    client: ftp::Client,
    share: &'static str,
}

impl Ftp {
    pub fn new(mut client: ftp::Client, share: &'static str) -> Self {
        client.sign_in("alice", "secret");
        assert_eq!(client.code_of("TYPE I"), 200);
        Self { client, share }
    }

    fn code_of(&mut self, verb: Verb, path: &[Vec<u8>]) -> u16 {
        self.client.request(&Ftp959::Text(verb, &joined(self.share, path))).code
    }
}

impl super::Client for Ftp {
    const FOLLOWS: bool = true;

    /// A line has no line feed or carriage return in it.
    fn shown(&self, name: &[u8]) -> Vec<u8> {
        super::grow::in_a_line(name)
    }

    fn list(&mut self, dir: &Path) -> Vec<Vec<u8>> {
        let path = joined(self.share, dir);
        let listed = self.client.fetch(&Ftp959::Maybe(Verb::Mlsd, Some(&path)));
        let lines = listed.split_inclusive(|byte| *byte == b'\n');
        let name = |line: &[u8]| {
            let line = line.strip_suffix(b"\r\n").expect("a line");
            let at = line.iter().position(|byte| *byte == b' ').expect("facts and a name");
            let (facts, name) = (line[..at].to_ascii_lowercase(), &line[at + 1..]);
            let own = [&b"type=cdir"[..], b"type=pdir"];
            let is_itself = facts.windows(9).any(|fact| own.contains(&fact));
            (!is_itself).then(|| name.to_vec())
        };
        lines.filter_map(name).collect()
    }

    fn open(&mut self, path: &Path) -> Opened {
        let to = ftp::connect(self.client.passive());
        if self.code_of(Verb::Retr, path) == 150 {
            let data = ftp::Stream::Plain(to).all();
            assert_eq!(self.client.reply().code, 226);
            return Opened::Data(data);
        }
        match self.code_of(Verb::Cwd, path) {
            250 => Opened::Directory,
            550 => Opened::Nothing,
            other => panic!("{other}"),
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) -> bool {
        self.code_of(Verb::Rnfr, from) == 350 && self.code_of(Verb::Rnto, to) == 250
    }

    fn remove(&mut self, path: &Path, is_dir: bool) -> bool {
        self.code_of(if is_dir { Verb::Rmd } else { Verb::Dele }, path) == 250
    }
}

/// A client of SFTP, which follows links itself as `sftp -r` does, and has them followed by OPEN.
pub struct Sftp {
    client: sftp::Sftp,
    share: &'static str,
}

impl Sftp {
    pub fn new(scene: Scene, share: &'static str) -> Self {
        Self { client: sftp::Sftp::over(scene), share }
    }

    fn ask<T>(&mut self, request: &Request<'_>, read: impl FnOnce(Reply<'_>) -> T) -> T {
        let (kind, body) = self.client.exchange(request);
        let mut r = Reader::new(&body);
        r.u32("id").expect("an id");
        read(Reply::decode(kind, &mut r).expect("a reply").expect("a known one"))
    }

    fn names(&mut self, request: &Request<'_>) -> Option<Vec<Vec<u8>>> {
        self.ask(request, |reply| match reply {
            Reply::Name(names) => Some(names.0.iter().map(|one| one.filename.0.to_vec()).collect()),
            _ => None,
        })
    }

    fn data(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        let (pflags, attrs) = (OpenFlags::READ, Attrs::default());
        let open = Request::Open(Open { filename: PathBytes(path), pflags, attrs });
        let handle = self.client.ask(&open)?;
        let handle = HandleBytes(&handle);
        let read = Request::Read(Read { handle, offset: 0, len: COUNT });
        let data = self.ask(&read, |reply| match reply {
            Reply::Data(data) => Some(data.0.to_vec()),
            _ => None,
        });
        assert!(self.client.ask(&Request::Close(OfHandle { handle })).is_some());
        data
    }
}

impl super::Client for Sftp {
    const FOLLOWS: bool = false;

    fn list(&mut self, dir: &Path) -> Vec<Vec<u8>> {
        let path = joined(self.share, dir);
        let opened = self.client.ask(&Request::Opendir(OfPath { path: PathBytes(&path) }));
        let handle = opened.expect("a directory");
        let handle = HandleBytes(&handle);
        let mut all = Vec::new();
        while let Some(names) = self.names(&Request::Readdir(OfHandle { handle })) {
            all.extend(names);
        }
        assert!(self.client.ask(&Request::Close(OfHandle { handle })).is_some());
        all.retain(|name| !matches!(name.as_slice(), b"." | b".."));
        all
    }

    fn open(&mut self, path: &Path) -> Opened {
        let path = joined(self.share, path);
        let of = OfPath { path: PathBytes(&path) };
        let mode = self.ask(&Request::Lstat(of), |reply| match reply {
            Reply::Attrs(attrs) => attrs.permissions.expect("a mode"),
            other => panic!("{other:?}"),
        });
        let data = self.data(&path);
        match mode >> 12 {
            0o10 => Opened::Data(data.expect("data")),
            0o04 => Opened::Directory,
            0o12 => {
                let link = self.names(&Request::Readlink(of)).expect("a target");
                Opened::Link(link[0].clone())
            }
            _ => {
                assert_eq!(data, None);
                Opened::Nothing
            }
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) -> bool {
        let (from, to) = (joined(self.share, from), joined(self.share, to));
        let paths = TwoPaths { oldpath: PathBytes(&from), newpath: PathBytes(&to) };
        self.client.ask(&Request::Rename(paths)).is_some()
    }

    fn remove(&mut self, path: &Path, is_dir: bool) -> bool {
        let path = joined(self.share, path);
        let of = OfPath { path: PathBytes(&path) };
        let request = if is_dir { Request::Rmdir(of) } else { Request::Remove(of) };
        self.client.ask(&request).is_some()
    }
}

/// A client of HTTP and WebDAV.
pub struct Dav {
    client: stand::Client,
    share: &'static str,
}

impl Dav {
    pub fn new(client: stand::Client, share: &'static str) -> Self {
        Self { client, share }
    }

    fn ask(&mut self, method: &str, path: &[Vec<u8>], more: &[&str]) -> stand::Reply {
        let target = percent_encode(&joined(self.share, path));
        let fields = [&[SIGNED_IN][..], more].concat();
        self.client.ask(&format!("{method} {target}"), &fields, b"")
    }
}

impl super::Client for Dav {
    const FOLLOWS: bool = true;

    fn list(&mut self, dir: &Path) -> Vec<Vec<u8>> {
        let reply = self.ask("PROPFIND", dir, &["Depth: 1"]);
        assert_eq!(reply.status, 207, "{dir:?}");
        let xml = Element::parse(&reply.body).expect("a document");
        let responses = xml.elements().filter(|one| one.name.is(DAV, "response"));
        let name = |response: &Element| {
            let href = response.dav("href").expect("a reference").text();
            let (path, _) = decode_path(href.as_bytes()).expect("a path");
            let path = VPath::parse(&path).expect("a path");
            let inside = path.parts().len() > dir.len() + 1;
            inside.then(|| path.name().expect("a name").to_vec())
        };
        responses.filter_map(name).collect()
    }

    fn open(&mut self, path: &Path) -> Opened {
        let reply = self.ask("GET", path, &[]);
        match reply.status {
            200 => Opened::Data(reply.body),
            308 => Opened::Directory,
            403 | 404 => Opened::Nothing,
            other => panic!("{other}: {path:?}"),
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) -> bool {
        let to = percent_encode(&joined(self.share, to));
        let destination = format!("Destination: {to}");
        self.ask("MOVE", from, &[&destination, "Overwrite: F"]).status == 201
    }

    fn remove(&mut self, path: &Path, _: bool) -> bool {
        self.ask("DELETE", path, &[]).status == 204
    }
}
