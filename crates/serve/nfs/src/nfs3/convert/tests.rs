//! Times at the borders of what the wire and the file system have.

use super::*;

#[test]
fn times_are_shown_as_the_nearest_that_there_is() {
    for (sec, seconds) in [
        (i64::MIN, 0),
        (-11_644_473_600, 0),
        (-1, 0),
        (0, 0),
        (1 << 31, 1 << 31),
        ((1 << 32) - 1, u32::MAX),
        (1 << 32, u32::MAX),
        (253_402_300_799, u32::MAX),
        (i64::MAX, u32::MAX),
    ] {
        assert_eq!(nfstime(Time { sec, nsec: 7 }), Nfstime3 { seconds, nseconds: 7 }, "{sec}");
    }
}

#[test]
fn times_are_set_as_they_are_sent_or_not_at_all() {
    for seconds in [0, 1 << 31, u32::MAX] {
        for (nseconds, is_time) in
            [(0, true), (999_999_999, true), (1_000_000_000, false), (u32::MAX, false)]
        {
            let at = wire::nfs3::SetTime::ClientTime(Nfstime3 { seconds, nseconds });
            for set in [
                Sattr3 { atime: at, ..Sattr3::default() },
                Sattr3 { mtime: at, ..Sattr3::default() },
            ] {
                let time = SetTime::At(Time { sec: i64::from(seconds), nsec: nseconds });
                match set_attr(&set) {
                    Ok(set) => assert!(is_time && [set.atime, set.mtime].contains(&time)),
                    Err(why) => assert!(!is_time && why == Status::Invalid),
                }
            }
        }
    }
}
