//! What needs no kernel; the rest is in `segments/tests.rs`.

use super::*;

#[test]
fn the_line_that_names_the_fault_is_found() {
    let text = "0: R1=ctx() R10=fp0\n0: (79) r6 = *(u64 *)(r1 +8)\n\
        access beyond struct net_device at off 90000 size 4\n\
        verification time 38 usec\nstack depth 0\nprocessed 9 insns (limit 1000000)\n";
    let text: Vec<u8> = text.bytes().chain([0; 16]).collect();
    assert_eq!(last_line(&text), "access beyond struct net_device at off 90000 size 4");
    assert_eq!(last_line(&[0; 4]), "");
    assert_eq!(last_line(b""), "");
}

#[test]
fn an_error_without_a_name_gets_one() {
    let error = plain(io::Error::from_raw_os_error(NOT_SUPPORTED));
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    assert_eq!(plain(io::Error::from_raw_os_error(libc::EPERM)).raw_os_error(), Some(libc::EPERM));
}

#[test]
fn a_load_that_is_interrupted_is_repeated_a_few_times() {
    let mut attempts = 0;
    let mut interrupted = |times: u32| {
        attempts = 0;
        retried(|| {
            attempts += 1;
            let again = io::Error::from_raw_os_error(libc::EAGAIN);
            if attempts <= times { Err(again) } else { Ok(attempts) }
        })
    };
    assert_eq!(interrupted(0).expect("loaded"), 1);
    assert_eq!(interrupted(4).expect("loaded"), 5);
    assert!(interrupted(5).is_err());
    assert!(retried(|| Err::<(), _>(io::Error::from_raw_os_error(libc::EPERM))).is_err());
}

#[test]
fn lists_of_cpus_are_counted() {
    assert_eq!(cpus("0-1\n"), Some(2));
    assert_eq!(cpus("0"), Some(1));
    assert_eq!(cpus("0-3,8,10-11"), Some(7));
    assert_eq!(cpus("3-0"), None);
    assert_eq!(cpus(""), None);
}
