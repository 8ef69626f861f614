//! Requests to WebDAV without a connection, and their responses.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use base::clock::{Clock, ManualClock, NS_PER_S};
use serve::files::upload::How;
use serve::files::{Caller, Core, Links, Node, VPath};
use serve::http::dav::locks::Locks;
use serve::http::dav::precondition::{ConditionalRequest, begin_write, replaced};
use serve::http::dav::{self, Dav, handle};
use serve::http::request::{Body, Headers, Method, Request, Target};
use serve::http::response::{Payload, Response};
use vfs::attr::SetAttr;
use vfs::fs::FileSystem;
use vfs::mem::MemFs;
use vfs::share::{Service, tag};
use wire::dav::xml::Element;

use crate::scene::Scene;

/// WebDAV on one core.
pub struct Site {
    pub core: Rc<Core>,
    pub dav: Arc<Dav>,
    pub clock: Arc<ManualClock>,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    /// The body as XML.
    pub fn xml(&self) -> Element {
        Element::parse(self.body.as_bytes()).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// The resources of a multistatus, in their order.
    pub fn hrefs(&self) -> Vec<String> {
        let href = |response: &Element| response.dav("href").expect("href").text();
        self.xml().elements().map(href).collect()
    }

    /// The token of a lock that was given.
    pub fn token(&self) -> String {
        let header = self.header("lock-token").unwrap_or_else(|| panic!("no token: {self:?}"));
        header.trim_matches(['<', '>']).to_owned()
    }
}

async fn read(response: Response) -> Answer {
    let mut body = Vec::new();
    match response.payload {
        Payload::Empty => {}
        Payload::Bytes(bytes) => body.extend_from_slice(&bytes),
        Payload::Stream(mut source) => while source.next(&mut body).await.expect("whole") {},
        _ => panic!("no answer of WebDAV"),
    }
    let headers = response.headers.into_iter().map(|(name, value)| (name, value.into_owned()));
    let body = String::from_utf8(body).expect("text");
    Answer { status: response.status, headers: headers.collect(), body }
}

/// Runs `test` with WebDAV over `share` and `other`, in memory; a second user is `otto`.
pub fn with_site<F, T>(test: F)
where
    F: FnOnce(Site, Caller, Caller) -> T + Send + 'static,
    T: Future<Output = ()> + 'static,
{
    let share = |name| -> Arc<dyn FileSystem> { MemFs::new(tag(name), 1 << 30) };
    over(&[("share", share("share")), ("other", share("other"))], test);
}

/// The same over these shares.
pub fn over<F, T>(shares: &[(&str, Arc<dyn FileSystem>)], test: F)
where
    F: FnOnce(Site, Caller, Caller) -> T + Send + 'static,
    T: Future<Output = ()> + 'static,
{
    let scene = Scene::over(Service::Http, shares);
    scene.users.add("otto", "secret", vfs::cred::Cred::root());
    let (alice, otto) = (scene.caller("alice"), scene.caller("otto"));
    scene.run(move |core| async move {
        let clock = Arc::new(ManualClock::at(1_700_000_000 * NS_PER_S));
        let time = Arc::clone(&clock) as Arc<dyn Clock>;
        let dav = Dav::new(Locks::transient(Arc::clone(&core.files.locks), time));
        test(Site { core, dav, clock }, alice, otto).await;
    });
}

impl Site {
    /// The response to a request; header fields are lines.
    async fn respond(&self, who: &Caller, line: &str, headers: &[&str], body: &str) -> Response {
        let (method, target) = line.split_once(' ').expect("method and target");
        let mut source = body.as_bytes();
        let request = Request {
            method: Method::parse(method.as_bytes()),
            target: Target::parse(target.as_bytes()).expect("target"),
            host: "server:8080".to_owned(),
            secure: false,
            headers: fields(headers),
            body: Body::new(&mut source, Some(body.len() as u64)),
        };
        let site = dav::Site { dav: &self.dav, core: &self.core, umask: 0o022, seen: &|_| {} };
        handle(site, who, request).await
    }

    /// Sends a request; header fields are lines.
    pub async fn ask(&self, who: &Caller, line: &str, headers: &[&str], body: &str) -> Answer {
        read(self.respond(who, line, headers, body).await).await
    }

    /// How long the parts are that an answer is made in.
    pub async fn parts(
        &self,
        who: &Caller,
        line: &str,
        headers: &[&str],
        body: &str,
    ) -> Vec<usize> {
        let payload = self.respond(who, line, headers, body).await.payload;
        let Payload::Stream(mut source) = payload else {
            panic!("an answer in parts");
        };
        let (mut parts, mut more) = (Vec::new(), true);
        while more {
            let mut part = Vec::new();
            more = source.next(&mut part).await.expect("whole");
            parts.push(part.len());
        }
        parts
    }

    /// The status alone.
    pub async fn status(&self, who: &Caller, line: &str, headers: &[&str], body: &str) -> u16 {
        self.ask(who, line, headers, body).await.status
    }

    /// What PUT does with a file: checks the conditions, writes the file atomically, and returns
    /// the status.
    pub async fn put(&self, who: &Caller, path: &str, headers: &[&str], data: &str) -> u16 {
        let path = VPath::parse(path.as_bytes()).expect("path");
        let headers = fields(headers);
        let asked = ConditionalRequest { headers: &headers, host: "server:8080", path: &path };
        let spot = self.core.spot(who, &path, Links::Follow).await.expect("a place");
        let there = spot.entry.is_some();
        let mut who = who.clone();
        who.lent = self.dav.lent(&who, &headers);
        let begun = begin_write(&self.dav, &self.core, &who, asked, &spot).await;
        if let Err(refused) = begun {
            return refused.status;
        }
        let how = How::Atomic(SetAttr { mode: Some(0o644), ..SetAttr::default() });
        let mut upload = match self.core.upload(&who, &spot, how).await {
            Ok(upload) => upload,
            Err(status) => return serve::http::status::of(status),
        };
        upload.write(0, data.as_bytes().to_vec()).await.expect("written");
        let node = upload.finish(SetAttr::default()).await.expect("finished");
        let before = spot.entry.as_ref().map(|entry| &entry.attr);
        match replaced(&self.dav, &self.core, &who, (&path, before), &node).await {
            Ok(()) => {
                if there {
                    204
                } else {
                    201
                }
            }
            Err(refused) => refused.status,
        }
    }

    pub async fn node(&self, who: &Caller, path: &str) -> Option<Node> {
        let path = VPath::parse(path.as_bytes()).expect("path");
        let found = self.core.find(who, &path, Links::Keep).await.ok()?;
        found.node().ok()
    }

    /// The data of a small file.
    pub async fn data(&self, who: &Caller, path: &str) -> String {
        let node = self.node(who, path).await.expect("there");
        let (fs, file, cred) = (&node.reached.share.fs, node.handle, &node.reached.cred);
        let mut data = vec![0; 1 << 16];
        let done = fs.read(vfs::fs::Context { cred, may_block: true }, &file, 0, &mut data);
        data.truncate(done.expect("read").count);
        String::from_utf8(data).expect("text")
    }

    /// Locks and gives the token.
    pub async fn lock(&self, who: &Caller, path: &str, headers: &[&str], shared: bool) -> Answer {
        let scope = if shared { "shared" } else { "exclusive" };
        let body = format!(
            "<D:lockinfo xmlns:D='DAV:'><D:lockscope><D:{scope}/></D:lockscope>\
             <D:locktype><D:write/></D:locktype><D:owner>me</D:owner></D:lockinfo>"
        );
        self.ask(who, &format!("LOCK {path}"), headers, &body).await
    }
}

fn fields(lines: &[&str]) -> Headers {
    let mut headers = Headers::default();
    for line in lines {
        let (name, value) = line.split_once(':').expect("a header field");
        assert!(headers.push(name.as_bytes(), value.as_bytes()));
    }
    headers
}
