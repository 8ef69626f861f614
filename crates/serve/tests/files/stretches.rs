//! What the kernel is given to send.

use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use base::limits::PEER_PATIENCE;
use serve::files::reader::Reader;
use serve::files::{Caller, Core, Links};
use vfs::share::Service;

use crate::scene::{Scene, Scratch};
use crate::ways::path;

async fn reader(core: &Rc<Core>, who: &Caller, at: &str) -> Reader {
    let found = core.find(who, &path(at), Links::Follow).await.expect("found");
    core.reader(who, found.node().expect("a file")).await.expect("opened")
}

/// From the page cache, or brought there first.
#[test]
fn a_large_file_of_a_folder_is_given_to_the_kernel() {
    let folder = Scratch::new();
    let data: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
    folder.file("share/f", &data);
    let file = folder.set_len("share/f", 3_000_000);
    let scene = Scene::in_folder(Service::Ftp, &folder, PEER_PATIENCE);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let reader = reader(&core, &who, "/share/f").await;
        for cold in [false, true] {
            if cold {
                file.sync_all().expect("on disk");
                let all = libc::POSIX_FADV_DONTNEED;
                // SAFETY: no memory is involved.
                unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, all) };
            }
            let part =
                reader.sendfile_range(&core, &who, (500_000, 1 << 20)).await.expect("looked");
            let Some(part) = part else {
                println!("SKIP stretches: this kernel does not tell what is in its page cache");
                return;
            };
            assert_eq!((part.offset, part.count, part.eof), (500_000, 1 << 20, false));
            let mut got = vec![0; part.count];
            let file = std::fs::File::from(part.file.try_clone().expect("a descriptor"));
            file.read_exact_at(&mut got, part.offset).expect("read");
            assert!(got == data[500_000..][..1 << 20]);
        }
        let end = reader.sendfile_range(&core, &who, (2_900_000, 1 << 20)).await.expect("looked");
        assert!(end.is_some_and(|end| end.count == 100_000 && end.eof));
        let behind =
            reader.sendfile_range(&core, &who, (3_000_000, 1 << 20)).await.expect("looked");
        assert!(behind.is_some_and(|behind| behind.count == 0 && behind.eof));
    });
}

#[test]
fn what_has_no_descriptor_is_read() {
    let scene = Scene::in_memory(Service::Ftp);
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let spot = core.spot(&who, &path("/share/f"), Links::Follow).await.expect("a place");
        core.put(&who, &spot, (vec![1; 100_000], Default::default())).await.expect("put");
        let reader = reader(&core, &who, "/share/f").await;
        assert!(reader.sendfile_range(&core, &who, (0, 100_000)).await.expect("looked").is_none());
    });
}
