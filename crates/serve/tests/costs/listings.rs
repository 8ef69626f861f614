//! Large directories: what PROPFIND costs compared with MLSD, and what a page of a listing costs.

use std::time::Duration;

use base::limits::PEER_PATIENCE;
use serve::ftp::Settings;
use vfs::share::Service;
use wire::ftp::{Request, Verb};

use crate::clock;
use crate::ftp::Running;
use crate::scene::{Scene, Scratch};
use crate::stand::Stand;
use crate::tree;

/// A folder with `files` files in its directory `share/large`.
pub fn large(count: usize) -> Scratch {
    let folder = Scratch::in_memory();
    let large = folder.0.join("share/large");
    std::fs::create_dir(&large).expect("made");
    for n in 0..count {
        std::fs::File::create(large.join(format!("a file number {n}.dat"))).expect("made");
    }
    folder
}

/// The least of three, of what is measured while other tests run.
fn least(mut measure: impl FnMut() -> Duration) -> Duration {
    (0..3).map(|_| measure()).min().unwrap_or_default()
}

#[test]
fn propfind_takes_at_most_twice_the_processor_time_of_mlsd() {
    let count = tree::names();
    let folder = large(count);
    let ftp =
        Running::over(Scene::in_folder(Service::Ftp, &folder, PEER_PATIENCE), Settings::default());
    let mut client = ftp.signed_in();
    let mlsd = least(|| {
        let request = Request::Maybe(Verb::Mlsd, Some(b"large"));
        let (cost, lines) = clock::of(|| client.fetch(&request));
        assert_eq!(lines.iter().filter(|b| **b == b'\n').count(), count);
        cost
    });
    let stand = Stand::of(&folder);
    let mut client = stand.client();
    let propfind = least(|| {
        let (cost, reply) = clock::of(|| client.ask("PROPFIND /share/large/", &["Depth: 1"], b""));
        assert_eq!(reply.status, 207);
        assert_eq!(reply.text().matches("<D:response>").count(), count + 1);
        cost
    });
    println!("{count} names: MLSD {mlsd:?}, PROPFIND {propfind:?}");
    assert!(propfind <= 2 * mlsd, "MLSD {mlsd:?}, PROPFIND {propfind:?}");
}
