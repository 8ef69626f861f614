//! How long answers are waited for.

use host_pools::zfs::command::CHANGE_TIME;

use super::*;

#[test]
fn a_change_of_a_pool_is_waited_for_until_it_has_ended() {
    let change = Request::Pools(PoolRequest::Protect { pool: "tank".to_owned() });
    // An import: the pools on all disks, an import aside, an export, the import, its mount point.
    assert!(time(&change) > 8 * CHANGE_TIME);
    let reads = [PoolRequest::Status {}, PoolRequest::Disks {}].map(Request::Pools);
    assert!(reads.iter().all(|read| time(read) == ANSWER), "what only reads can be tried again");
}

#[test]
fn the_end_of_the_helper_ends_the_wait() {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let mut client = Client::over(ours).expect("a client");
    theirs.shutdown(std::net::Shutdown::Write).expect("closed");
    let change = Request::Pools(PoolRequest::Protect { pool: "tank".to_owned() });
    client.ask(&change).expect_err("there is no answer");
    assert_eq!(client.stream.read_timeout().expect("a time"), Some(CHANGE_OF_POOL));
}
