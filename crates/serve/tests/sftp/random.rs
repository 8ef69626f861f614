//! Random requests, many at once, against a model that does one after the other: whatever runs at
//! the same time, the answers are those of the order in which the requests came.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::random::{Random, SeededRandom};
use vfs::fs::FileSystem;
use vfs::host::{HostFs, HostOptions};
use vfs::share::{Service, tag};
use wire::sftp::{Attrs, OpenFlags, Request, StatusCode};

use crate::client::*;
use crate::scene::Scene;

/// Runs of requests, each sent in one go.
const BURSTS: usize = 60;
/// Requests in one.
const BURST: u64 = 24;

const OK: Got = Got::Status(StatusCode::OK);
const NONE: Got = Got::Status(StatusCode::NO_SUCH_FILE);
const FAILURE: Got = Got::Status(StatusCode::FAILURE);

/// Files by path, and what is open: a handle goes with its file wherever that is moved.
#[derive(Default)]
struct Model {
    files: BTreeMap<Vec<u8>, usize>,
    /// What is in the files that there have ever been.
    data: Vec<Vec<u8>>,
    open: Vec<(Vec<u8>, usize)>,
}

/// One request, and the model's response to it.
struct ExpectedReply {
    request: Request<'static>,
    expect: Expect,
}

enum Expect {
    Exactly(Got),
    Size(Option<u64>),
}

fn leak(bytes: Vec<u8>) -> &'static [u8] {
    bytes.leak()
}

impl Model {
    fn path(random: &mut SeededRandom) -> &'static [u8] {
        leak(format!("/share/{}", random.below(5)).into_bytes())
    }

    fn size_of(&self, path: &[u8]) -> Option<u64> {
        self.files.get(path).map(|file| self.data[*file].len() as u64)
    }

    fn ask(&mut self, random: &mut SeededRandom) -> ExpectedReply {
        let exactly = |request, got| ExpectedReply { request, expect: Expect::Exactly(got) };
        let any = random.below(self.open.len().max(1) as u64) as usize;
        match (random.below(10), self.open.get(any).cloned()) {
            (0..=2, Some((handle, file))) => {
                let data = &mut self.data[file];
                let (at, len) = (random.below(40_000) as usize, random.below(20_000) as usize + 1);
                let byte = random.next_u64() as u8;
                data.resize(data.len().max(at + len), 0);
                data[at..at + len].fill(byte);
                let bytes = leak(vec![byte; len]);
                exactly(write(leak(handle), at as u64, bytes), OK)
            }
            (3..=5, Some((handle, file))) => {
                let data = &self.data[file];
                let (at, len) = (random.below(50_000) as usize, random.below(20_000) as usize + 1);
                let got = match data.get(at..data.len().min(at + len)) {
                    Some(some) if !some.is_empty() => Got::Data(some.to_vec()),
                    _ => Got::Status(StatusCode::EOF),
                };
                exactly(read(leak(handle), at as u64, len as u32), got)
            }
            (6, _) => {
                let path = Self::path(random);
                ExpectedReply { request: stat(path), expect: Expect::Size(self.size_of(path)) }
            }
            (7, _) => {
                let path = Self::path(random);
                let size = random.below(60_000);
                let set = Attrs { size: Some(size), ..Attrs::default() };
                let got = match self.files.get(path) {
                    Some(file) => {
                        self.data[*file].resize(size as usize, 0);
                        OK
                    }
                    None => NONE,
                };
                exactly(setstat(path, set), got)
            }
            (8, _) => {
                let (from, to) = (Self::path(random), Self::path(random));
                let got = match (self.files.get(from).copied(), self.files.contains_key(to)) {
                    (None, _) => NONE,
                    (Some(_), true) => FAILURE,
                    (Some(file), false) => {
                        self.files.remove(from);
                        self.files.insert(to.to_vec(), file);
                        OK
                    }
                };
                exactly(rename(from, to), got)
            }
            (_, Some((handle, file))) => {
                let size = self.data[file].len() as u64;
                ExpectedReply { request: fstat(leak(handle)), expect: Expect::Size(Some(size)) }
            }
            (_, None) => {
                let path = Self::path(random);
                ExpectedReply { request: stat(path), expect: Expect::Size(self.size_of(path)) }
            }
        }
    }
}

async fn burst(c: &mut Client, model: &mut Model, random: &mut SeededRandom) {
    // Handles first: what is open at the beginning of a burst is used in it.
    let path = Model::path(random);
    if model.open.len() < 6 {
        let flags = OpenFlags::READ.with(OpenFlags::WRITE).with(OpenFlags::CREAT);
        let handle = c.call(open(path, flags)).await.handle();
        let file = *model.files.entry(path.to_vec()).or_insert_with(|| {
            model.data.push(Vec::new());
            model.data.len() - 1
        });
        model.open.push((handle, file));
    }
    let asks: Vec<ExpectedReply> = (0..BURST).map(|_| model.ask(random)).collect();
    let ids: Vec<u32> = asks.iter().map(|ask| c.put(&ask.request)).collect();
    c.flush(random.below(30_000) as usize + 1);
    for (n, (ask, id)) in asks.into_iter().zip(ids).enumerate() {
        let got = c.answer(id).await;
        let shown = || format!("request {n}: {:?}", ask.request.kind());
        match ask.expect {
            Expect::Exactly(expect) => assert!(got == expect, "{}: another answer", shown()),
            Expect::Size(None) => assert_eq!(got, NONE, "{}", shown()),
            Expect::Size(size) => assert_eq!(got.attrs().size, size, "{}", shown()),
        }
    }
    if random.below(3) == 0
        && let Some((handle, _)) = model.open.pop()
    {
        c.done(close(&handle)).await;
    }
}

fn run(scene: &Scene, seed: u64) {
    with_client(scene, move |_, mut c, _| async move {
        let (mut model, mut random) = (Model::default(), SeededRandom::new(seed));
        for _ in 0..BURSTS {
            burst(&mut c, &mut model, &mut random).await;
        }
        for (path, file) in &model.files {
            assert!(c.get_file(path).await == model.data[*file], "{path:?} is not as it should be");
        }
    });
}

#[test]
fn many_at_once_are_as_one_after_the_other_in_memory() {
    for seed in 0..8 {
        run(&Scene::in_memory(Service::Sftp), seed);
    }
}

#[test]
fn many_at_once_are_as_one_after_the_other_in_a_directory() {
    for seed in 100..104 {
        let dir = std::env::temp_dir().join(format!("sftp-random-{}-{seed}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let options = HostOptions::new(tag("share"), [7; 32]);
        let fs: Arc<dyn FileSystem> = HostFs::open(&dir, options).expect("a share");
        run(&Scene::over(Service::Sftp, &[("share", fs)]), seed);
        std::fs::remove_dir_all(&dir).expect("the directory goes");
    }
}
