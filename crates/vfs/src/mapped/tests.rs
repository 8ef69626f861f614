//! What is sent from a mapping is the file; what has gone is an error and not a signal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use super::*;

fn file(len: usize) -> (File, Vec<u8>) {
    let path = std::env::temp_dir().join(format!("plimsoll-mapped-{}-{len}", std::process::id()));
    let mut file =
        File::options().create_new(true).read(true).write(true).open(&path).expect("made");
    std::fs::remove_file(&path).expect("unlinked");
    let bytes: Vec<u8> = (0..len).map(|n| (n / 7 % 251) as u8).collect();
    file.write_all(&bytes).expect("written");
    (file, bytes)
}

fn send(slice: &Slice) -> io::Result<Vec<u8>> {
    let (from, mut to) = UnixStream::pair().expect("a pair");
    let (at, len) = slice.raw();
    // SAFETY: the kernel reads from the mapping, which `slice` keeps.
    let n = unsafe { libc::send(from.as_raw_fd(), at.cast(), len, libc::MSG_NOSIGNAL) };
    let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    drop(from);
    let mut got = Vec::new();
    to.read_to_end(&mut got)?;
    assert_eq!(got.len(), n);
    Ok(got)
}

#[test]
fn the_second_use_of_a_window_sends_from_the_file() {
    let (file, bytes) = file(70_000);
    let windows = Windows::default();
    assert!(windows.slice(file.as_fd(), 0, 5000).is_none(), "once is not worth it");
    let slice = windows.slice(file.as_fd(), 12_345, 50_000).expect("mapped");
    assert_eq!(send(&slice).expect("sent"), bytes[12_345..62_345]);
    assert!(windows.slice(file.as_fd(), MAPPED_WINDOW as u64 - 1, 2).is_none(), "crosses");
}

#[test]
fn a_file_cut_short_is_an_error_of_the_call() {
    let (file, _) = file(200_000);
    let windows = Windows::default();
    assert!(windows.slice(file.as_fd(), 0, 1).is_none());
    let slice = windows.slice(file.as_fd(), 100_000, 50_000).expect("mapped");
    file.set_len(0).expect("cut");
    let error = send(&slice).expect_err("nothing is there");
    assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
}

#[test]
fn windows_used_least_lately_make_room() {
    let (file, _) = file(1);
    let windows = Windows::default();
    let ask = |n: usize| windows.slice(file.as_fd(), (n * MAPPED_WINDOW) as u64, 1).is_some();
    for n in 0..MAPPED_PER_FILE {
        assert!(!ask(n));
        assert!(ask(n), "window {n} is mapped at its second use");
    }
    assert!(!ask(MAPPED_PER_FILE), "new");
    assert!(!ask(0), "it has made room");
    assert!(ask(MAPPED_PER_FILE));
}
