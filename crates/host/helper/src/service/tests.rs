//! What accepts connections continues after errors that pass, and ends with its listener.

use std::collections::VecDeque;

use e2e::scratch::Scratch;
use host_network::fake::Kernel;
use host_network::state::State;

use super::*;
use crate::files::Folder;
use crate::keeper::Arm;

/// Starts no guards: nothing is changed here.
struct NoGuards;

impl Arm for NoGuards {
    fn arm(&mut self, _change: u64, _seconds: u32) -> io::Result<Box<dyn Send>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn helper(scratch: &Scratch) -> Helper {
    let folder = Folder::open(&scratch.path().join("host")).expect("a folder");
    let kernel = Box::new(Kernel::new(State::default()));
    Helper::new(Keeper::new(kernel, folder, Box::new(NoGuards), "boot"), sys::effective_uid())
}

#[test]
fn errors_that_pass_do_not_end_it() {
    let scratch = Scratch::new("helper-accept");
    let helper = helper(&scratch);
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    let passing = [
        libc::EMFILE,
        libc::ENFILE,
        libc::ENOMEM,
        libc::ENOBUFS,
        libc::ECONNABORTED,
        libc::EINTR,
        libc::EPERM,
    ];
    let errors = passing.into_iter().map(|e| Err(io::Error::from_raw_os_error(e)));
    let mut results: VecDeque<io::Result<UnixStream>> = errors.collect();
    results.push_back(Ok(theirs));
    let end = || Err(io::Error::from_raw_os_error(libc::EBADF));
    let ended = helper.accept_from(|| results.pop_front().unwrap_or_else(end));
    assert_eq!(ended.expect_err("the listener is gone").raw_os_error(), Some(libc::EBADF));
    send(&mut ours, &Request::NetworkStatus {}).expect("a connection");
    let reply = crate::request::receive_reply::<Reply>(&mut ours).expect("an answer");
    assert!(matches!(reply, Reply::NetworkStatus(_)), "{reply:?}");
}

#[test]
fn a_place_is_free_again_whatever_became_of_its_connection() {
    let scratch = Scratch::new("helper-places");
    let helper = helper(&scratch);
    let mut places: Vec<Connection> =
        (0..HELPER_CONNECTIONS_MAX).filter_map(|_| helper.place()).collect();
    assert_eq!(places.len(), HELPER_CONNECTIONS_MAX);
    assert!(helper.place().is_none() && helper.place().is_none());
    places.pop();
    assert!(helper.place().is_some());
}
