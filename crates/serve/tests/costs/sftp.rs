//! Requests of SFTP. Client and server share a core here, so that what both compute is counted.

use base::limits::PEER_PATIENCE;
use base::random::{Random, SeededRandom};
use vfs::share::Service;
use wire::sftp::request::{OfHandle, OfPath};
use wire::sftp::{Attrs, HandleBytes, OpenFlags, PathBytes, Request};

use crate::clock;
use crate::scene::Scene;
use crate::search::Search;
use crate::sftp_client::{self as client, Client, Got};
use crate::tree::{self, one_of, path, up_to};

/// A directory is opened, read from a few times, and closed.
async fn list(client: &mut Client, random: &mut SeededRandom) -> String {
    let large = random.below(20) == 0;
    let dir = if large { "large" } else { one_of(random, &["few", "many", "links", "hidden"]) };
    let handle = client.call(client::opendir(format!("/share/{dir}").as_bytes())).await.handle();
    let mut names = 0;
    for _ in 0..1 + random.below(3) {
        let readdir = Request::Readdir(OfHandle { handle: HandleBytes(&handle) });
        let Got::Names(some) = client.call(readdir).await else { break };
        names += some.len();
    }
    client.done(client::close(&handle)).await;
    format!("READDIR {dir}, {names} names")
}

async fn ask(client: &mut Client, random: &mut SeededRandom) -> String {
    if random.below(8) == 0 {
        return list(client, random).await;
    }
    let (text, other) = (format!("/share/{}", path(random)), format!("/share/{}", path(random)));
    let (at, to) = (text.as_bytes(), other.as_bytes());
    let set = Attrs { permissions: Some(0o644), ..Attrs::default() };
    let work = format!("/share/work/{}", up_to(random, 300));
    let (name, request) = match random.below(10) {
        0 => ("STAT", client::stat(at)),
        1 => ("LSTAT", client::lstat(at)),
        2 => ("REALPATH", Request::Realpath(OfPath { path: PathBytes(at) })),
        3 => ("READLINK", Request::Readlink(OfPath { path: PathBytes(at) })),
        4 => ("SETSTAT", client::setstat(at, set)),
        5 => ("RENAME", client::rename(work.as_bytes(), to)),
        6 => ("MKDIR", client::mkdir(work.as_bytes())),
        7 => ("SYMLINK", client::symlink(at, work.as_bytes())),
        8 => ("REMOVE", client::remove(work.as_bytes())),
        _ => ("OPEN", client::open(at, OpenFlags::READ)),
    };
    let got = client.call(request).await;
    if let Got::Handle(handle) = &got {
        client.done(client::close(handle)).await;
    }
    format!("{name} {} bytes {text}: {got:?}", text.len())
}

#[test]
fn of_sftp() {
    let folder = tree::new();
    let scene = Scene::in_folder(Service::Sftp, &folder, PEER_PATIENCE);
    client::with_client(&scene, |_, mut client, _| async move {
        let mut search = Search::new("sftp");
        for seed in search.seeds() {
            let before = clock::process();
            let text = ask(&mut client, &mut SeededRandom::new(seed)).await;
            search.note(seed, clock::process() - before, text);
        }
        for seed in search.again() {
            let before = clock::process();
            let text = ask(&mut client, &mut SeededRandom::new(seed)).await;
            search.note_again(seed, clock::process() - before, &text);
        }
        search.end();
    });
}
