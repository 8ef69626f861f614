//! READs of one batch share the attributes of their file: every reply must be true of some moment
//! between its call and itself all the same, whatever changes the file.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use wire::nfs3::*;

use crate::client::Client;
use crate::procedures::{create, write};
use crate::server::{Options, Server, directory_at};

/// Bytes of the file in addition to its count.
const BASE: u64 = 8192;
/// Calls in one send.
const BATCH: usize = 32;
/// Sends.
const ROUNDS: usize = 300;

fn read_call(client: &mut Client, file: &[u8], offset: u64, count: u32) -> Vec<u8> {
    client.nfs(Proc::READ, &ReadArgs { file: Fh3(file), offset, count })
}

fn set_size(file: &[u8], size: u64) -> SetattrArgs<'_> {
    let new_attributes = Sattr3 { size: Some(size), ..Sattr3::default() };
    SetattrArgs { object: Fh3(file), new_attributes, guard: None }
}

/// The n-th change of the file and of its size, both of which contain n: begun, and done.
#[derive(Default)]
struct Count {
    begun: AtomicU64,
    done: AtomicU64,
    enough: AtomicBool,
}

impl Count {
    /// Changes until it is enough; `change` gets n.
    fn run(&self, mut change: impl FnMut(u64)) {
        while !self.enough.load(SeqCst) {
            let n = self.begun.fetch_add(1, SeqCst) + 1;
            change(n);
            self.done.store(n, SeqCst);
        }
    }

    /// Reads many times in one send, and looks whether each reply fits into its time.
    fn watch(&self, client: &mut Client, file: &[u8]) {
        for _ in 0..ROUNDS {
            let mut bytes = Vec::new();
            (0..BATCH).for_each(|_| bytes.extend(read_call(client, file, 0, 8)));
            // And one that requests more than there is.
            bytes.extend(read_call(client, file, BASE, 1 << 20));
            let before = self.done.load(SeqCst);
            client.send(&bytes);
            for n in 0..=BATCH {
                let reply = client.receive();
                let now = self.begun.load(SeqCst);
                let ok = reply.results::<ReadRes<'_>>().into_result().expect("read");
                let size = ok.file_attributes.expect("attributes").size;
                let size = size.checked_sub(BASE).expect("it never becomes shorter");
                assert!((before..=now).contains(&size), "size {size}, not in {before}..={now}");
                if n < BATCH {
                    let content = u64::from_be_bytes(ok.data.try_into().expect("eight bytes"));
                    assert!(
                        (before..=now).contains(&content),
                        "{content}, not in {before}..={now}"
                    );
                    assert!(!ok.eof);
                } else {
                    let end = ok.data.len() as u64;
                    assert!((before..=now).contains(&end), "end {end}, not in {before}..={now}");
                    assert_eq!(ok.eof, end == size, "{end} of {size}");
                }
            }
        }
        self.enough.store(true, SeqCst);
    }
}

/// Ends the changes also when the watcher has failed.
struct Enough<'a>(&'a Count);

impl Drop for Enough<'_> {
    fn drop(&mut self) {
        self.0.enough.store(true, SeqCst);
    }
}

/// Reads the file while `change` changes it; `change` gets n.
fn watched(client: &mut Client, file: &[u8], change: impl FnMut(u64) + Send) {
    write(client, file, 0, &[0; BASE as usize]);
    let count = Count::default();
    std::thread::scope(|scope| {
        scope.spawn(|| count.run(change));
        let _enough = Enough(&count);
        count.watch(client, file);
    });
}

#[test]
fn a_program_changes_the_file_meanwhile() {
    let (fs, path) = directory_at();
    let server = Server::start(fs, Options::default());
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "file");
    let local = std::fs::OpenOptions::new().write(true).open(path.join("file")).expect("there");
    watched(&mut client, &file, |n| {
        local.write_all_at(&n.to_be_bytes(), 0).expect("written");
        local.set_len(BASE + n).expect("longer");
    });
}

#[test]
fn another_connection_changes_the_file_meanwhile() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "file");
    let (mut other, _) = server.client();
    // Numbers of its own, or the server takes its calls for repeats.
    other.xid = 1 << 30;
    watched(&mut client, &file, |n| {
        write(&mut other, &file, 0, &n.to_be_bytes());
        let longer = other.call(Proc::SETATTR, &set_size(&file, BASE + n));
        assert!(longer.results::<SetattrRes>().into_result().is_ok());
    });
}

#[test]
fn what_the_connection_itself_has_changed_is_seen_by_what_follows() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "file");
    write(&mut client, &file, 0, &[1; BASE as usize]);
    let mut bytes = Vec::new();
    for _ in 0..2 {
        bytes.extend(read_call(&mut client, &file, 0, 8));
    }
    let (offset, count, stable) = (BASE, 8, StableHow::UNSTABLE);
    let args = WriteArgs { file: Fh3(&file), offset, count, stable, data: &[2; 8] };
    bytes.extend(client.nfs(Proc::WRITE, &args));
    bytes.extend(read_call(&mut client, &file, 0, 8));
    bytes.extend(client.nfs(Proc::SETATTR, &set_size(&file, 4096)));
    bytes.extend(read_call(&mut client, &file, 0, 8));
    client.send(&bytes);
    let mut seen = Vec::new();
    for n in 0..6 {
        let reply = client.receive();
        if n != 2 && n != 4 {
            let ok = reply.results::<ReadRes<'_>>().into_result().expect("read");
            let attr = ok.file_attributes.expect("attributes");
            seen.push((attr.size, (attr.ctime.seconds, attr.ctime.nseconds)));
        }
    }
    let sizes: Vec<u64> = seen.iter().map(|(size, _)| *size).collect();
    assert_eq!(sizes, [BASE, BASE, BASE + 8, 4096]);
    assert!(seen.is_sorted_by_key(|(_, ctime)| *ctime), "{seen:?}");
}
