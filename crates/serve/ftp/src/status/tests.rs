//! Codes that clients act on.

use vfs::status::Status;
use wire::ftp::Malformed;

use crate::answer::Answer;

#[test]
fn codes_show_whether_to_try_again() {
    for (status, code) in [
        (Status::NotFound, 550),
        (Status::ReadOnly, 550),
        (Status::Busy, 450),
        (Status::InUse, 450),
        (Status::NoSpace, 452),
        (Status::Quota, 552),
        (Status::Io, 451),
        (Status::NameTooLong, 553),
    ] {
        assert_eq!(Answer::from(status).code, code, "{status}");
    }
    assert_eq!(Answer::from(Malformed::Unknown).code, 500);
    assert_eq!(Answer::from(Malformed::Missing).code, 501);
    assert_eq!(Answer::from(Malformed::NotOffered).code, 502);
}
