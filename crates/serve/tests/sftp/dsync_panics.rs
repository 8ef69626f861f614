//! A panic below a run of dsync fails one file: the run comes to its end, reports it, and the next
//! one does what is missing.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serve::files::{Caller, Core};
use serve::sftp::channel::{Gone, Input, Output};
use serve::sftp::dsync::{Dsync, Request, serve};
use sync::events::Report;
use sync::run::{of_socket, start};
use sync::streams::connect::Calling;
use sync::streams::listen::Reachable;
use sync::{Options, Role};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use vfs::mem::MemFs;
use vfs::share::{Service, tag};
use wire::xdr::Seq;

use crate::client::*;
use crate::planted::Planted;
use crate::scene::{Scene, Scratch};

struct In(OwnedReadHalf);
struct Out(OwnedWriteHalf);

impl Input for In {
    async fn receive(&mut self, into: &mut Vec<u8>) -> Result<usize, Gone> {
        self.0.read_buf(into).await.map_err(|_| Gone)
    }
}

impl Output for Out {
    async fn send(&mut self, parts: &[&[u8]]) -> Result<(), Gone> {
        self.0.write_all(&parts.concat()).await.map_err(|_| Gone)
    }

    fn room(&self) -> usize {
        usize::MAX
    }
}

fn options() -> Options {
    Options {
        delete: true,
        checksum: false,
        dry_run: false,
        owners: true,
        names: true,
        xattrs: false,
        pack: true,
        devices: true,
        set_id: true,
        in_place: false,
        bandwidth: 0,
        rules: Seq(Vec::new()),
    }
}

/// Carries a folder to `/share/copy`; whether all was done.
async fn push(core: &Rc<Core>, who: &Caller, from: &Path) -> bool {
    let (near, far) = std::os::unix::net::UnixStream::pair().expect("sockets");
    far.set_nonblocking(true).expect("a socket");
    let (read, write) = UnixStream::from_std(far).expect("a socket").into_split();
    let from = from.to_path_buf();
    let client = tokio::task::spawn_blocking(move || {
        let link = of_socket(near).expect("a link");
        let (ends, report): (_, Report) = ((&*from, &b"/share/copy"[..]), Arc::new(|_| {}));
        start(link, Role::SOURCE, ends, &options(), &Calling::none(), &report)
    });
    let request = Request {
        who: who.clone(),
        at: Reachable { address: None, ports: None },
        umask: 0o022,
        owners: Arc::new(()),
        refused: None,
    };
    serve(core, &Dsync::default(), request, (In(read), Out(write))).await;
    match client.await.expect("the client does not panic") {
        Ok(counts) => counts.failures == 0,
        Err(_) => false,
    }
}

#[test]
fn a_panic_fails_a_file_and_the_run_comes_to_its_end() {
    let folder = Scratch::new();
    for n in 0..5 {
        folder.file(&format!("share/f{n}"), format!("data {n}").as_bytes());
    }
    let from = folder.0.join("share");
    let fs = Planted::over(MemFs::new(tag("share"), 1 << 30));
    let scene = Scene::over(Service::Sftp, &[("share", Arc::clone(&fs) as _)]);
    with_client(&scene, |core, mut c, who| async move {
        for (n, call) in ["create", "write", "rename", "setattr", "list"].into_iter().enumerate() {
            fs.plant(call);
            assert!(!push(&core, &who, &from).await, "{call}");
            assert!(!fs.is_planted(), "{call}");
            assert_eq!(core.engine.budgets.panics.load(Relaxed), n as u64 + 1);
            assert!(push(&core, &who, &from).await, "{call}");
            assert_eq!(c.list(b"/share/copy").await.len(), 5);
            assert_eq!(c.get_file(b"/share/copy/f3").await, b"data 3");
            for n in 0..5 {
                let path = format!("/share/copy/f{n}");
                c.done(remove(path.as_bytes())).await;
            }
        }
    });
    drop(folder);
}
