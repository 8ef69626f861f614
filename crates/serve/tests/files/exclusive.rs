//! A file that becomes a logical unit while FTP, SFTP, HTTP or WebDAV serve it: none of them lists,
//! opens, replaces, renames, links or removes it any more, nor reads on in what it had open.

use std::rc::Rc;
use std::sync::Arc;

use serve::files::list::Listing;
use serve::files::upload::How;
use serve::files::{Caller, Core, Links};
use serve::transport::buffers::ReplyBuf;
use vfs::attr::SetAttr;
use vfs::fs::FileSystem;
use vfs::host::{HostFs, HostOptions};
use vfs::locks::LockTable;
use vfs::lun::Claim;
use vfs::share::{Service, tag};
use vfs::status::Status;

use crate::scene::{Scene, Scratch};
use crate::ways::path;

async fn names(core: &Rc<Core>, who: &Caller, dir: &str) -> Vec<String> {
    let found = core.find(who, &path(dir), Links::Follow).await.expect("there");
    let mut listing = Listing::new(found.node().expect("a node"));
    let mut names = Vec::new();
    while let Some(batch) = listing.next(core, who).await.expect("listed") {
        names.extend(batch.into_iter().map(|one| String::from_utf8_lossy(&one.name).into_owned()));
    }
    names.sort();
    names
}

/// Whatever is tried is refused.
async fn refused(core: &Rc<Core>, who: &Caller, at: &str, status: Status) {
    assert_eq!(core.find(who, &path(at), Links::Follow).await.err(), Some(status), "{at}");
    let spot = core.spot(who, &path(at), Links::Keep).await.expect("a place");
    assert!(core.remove(who, &spot).await.is_err(), "{at}");
    let moved = core.spot(who, &path("/share/moved"), Links::Keep).await.expect("a place");
    assert!(core.rename(who, &spot, &moved).await.is_err(), "{at}");
    let other = core.spot(who, &path("/share/other"), Links::Keep).await.expect("a place");
    assert!(core.rename(who, &other, &spot).await.is_err(), "{at}");
    let put = core.put(who, &spot, (b"mine".to_vec(), SetAttr::default())).await;
    assert!(put.is_err(), "{at}");
    assert!(core.make_dir(who, &spot, SetAttr::default()).await.is_err(), "{at}");
}

fn over(service: Service) {
    let folder = Scratch::new();
    let disk = folder.0.join("share/disk");
    std::fs::write(&disk, vec![7; 300_000]).expect("written");
    std::fs::create_dir(folder.0.join("share/dir")).expect("made");
    std::fs::hard_link(&disk, folder.0.join("share/dir/second")).expect("linked");
    std::fs::write(folder.0.join("share/other"), b"other").expect("written");
    let locks: Arc<LockTable> = Arc::default();
    let open = |name: &str, below: &str| -> Arc<dyn FileSystem> {
        let exclusive = Arc::clone(locks.exclusive());
        let options = HostOptions { exclusive, ..HostOptions::new(tag(name), [7; 32]) };
        HostFs::open(&folder.0.join(below), options).expect("a share")
    };
    let shares = [("share", open("share", "share")), ("overlap", open("overlap", "share/dir"))];
    let scene = Scene::over(service, &shares);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let found = core.find(&who, &path("/share/disk"), Links::Follow).await.expect("found");
        let node = found.node().expect("a file");
        let reader = core.reader(&who, node.clone()).await.expect("opened before");
        let mut buffer = ReplyBuf::default();
        reader.read(&core, &who, (0, 1000), &mut buffer).await.expect("read before");
        let spot = core.spot(&who, &path("/share/disk"), Links::Keep).await.expect("a place");
        let how = How::InPlace(SetAttr::default());
        let mut upload = core.upload(&who, &spot, how).await.expect("opened before");

        let claim = Claim::take(&locks, &disk, "default/disk").expect("claimed");
        assert_eq!(names(&core, &who, "/share").await, ["dir", "other"]);
        assert!(names(&core, &who, "/share/dir").await.is_empty());
        assert!(names(&core, &who, "/overlap").await.is_empty());
        for at in ["/share/disk", "/share/dir/second", "/overlap/second"] {
            refused(&core, &who, at, Status::NotFound).await;
        }
        let mut buffer = ReplyBuf::default();
        let read = reader.read(&core, &who, (1000, 1000), &mut buffer).await;
        assert!(read.is_err(), "it was open before");
        let wrote = upload.write(5, b"mine".to_vec()).await;
        assert!(wrote.is_err() || upload.finish(SetAttr::default()).await.is_err());
        let third = core.spot(&who, &path("/share/third"), Links::Keep).await.expect("a place");
        assert!(core.link(&who, &node, &third).await.is_err());
        let cut = SetAttr { size: Some(0), ..SetAttr::default() };
        assert!(core.set_attr(&who, &node, cut).await.is_err());
        drop(claim);
        assert_eq!(std::fs::read(&disk).expect("there"), vec![7; 300_000]);
        assert_eq!(names(&core, &who, "/share").await, ["dir", "disk", "other"]);
    });
}

#[test]
fn no_service_of_files_reaches_a_logical_unit() {
    for service in [Service::Ftp, Service::Sftp, Service::Http] {
        over(service);
    }
}
