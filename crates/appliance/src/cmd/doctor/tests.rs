//! The text of a report, and the search for sockets.

use std::io::Error;

use super::finding::{Check, Outcome, State, Use};
use super::ports::listeners;
use super::*;

const TCP: &str =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
   0: 0100007F:2F11 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
   1: 0100007F:2F11 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1
   2: 00000000:0801 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1
";

const TCP6: &str =
    "  sl  local_address                         remote_address                        st ...
   0: 00000000000000000000000000000000:006F 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 4721
   1: 00000000000000000000000001000000:2F11 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 4722
";

/// Of a table in which the words between are of no use.
fn found(table: &str, at: &str) -> Vec<u64> {
    listeners(table, at.parse().unwrap())
}

#[test]
#[cfg(target_endian = "little")]
fn only_listeners_that_are_in_the_way_are_found() {
    assert_eq!(found(TCP, "127.0.0.1:12049"), [4711]);
    assert!(found(TCP, "127.0.0.2:12049").is_empty(), "the same port of another address");
    assert_eq!(found(TCP, "0.0.0.0:12049"), [4711]);
    assert_eq!(found(TCP, "10.1.2.3:2049"), [4713]);
    assert!(found(TCP, "127.0.0.1:111").is_empty());
    assert_eq!(found(TCP6, "127.0.0.1:111"), [4721]);
    assert_eq!(found(TCP6, "[::1]:12049"), [4722]);
    assert!(found(TCP6, "127.0.0.1:12049").is_empty());
    assert!(found("nothing of the kind\n1: x:006F\n2: 0:006F\n", "127.0.0.1:111").is_empty());
}

fn one(used: Use, look: fn(&Target<'_>) -> Outcome) -> Finding {
    let dir = File::open("/").unwrap();
    let (path, address) = (Path::new("/"), IpAddr::from([127, 0, 0, 1]));
    let place = Target { path, dir: &dir, state: path, address, port_offset: 0 };
    let check = Check::new("one", used, look).good_for("a purpose").instead("another way");
    check.advice("a package").finding(&place)
}

fn denied(_: &Target<'_>) -> Outcome {
    Outcome::tried(Err(Error::from_raw_os_error(libc::EACCES)))
}

#[test]
fn what_serving_does_not_use_degrades_nothing() {
    assert!(!one(Use::Optional, denied).degrades && !one(Use::SomeClients, denied).degrades);
    assert!(!one(Use::Serving, |_| Outcome::unknown("no try")).degrades);
    let findings = vec![one(Use::Serving, |_| Outcome::tried(Ok(()))), one(Use::Serving, denied)];
    assert_eq!((findings[0].state, findings[0].degrades), (State::Yes, false));
    assert!(findings[1].degrades);
    let (directory, state) = ("/srv".into(), "/var/lib/plimsoll".into());
    let text = table(&Report { directory, state, degraded: true, findings });
    for line in ["not permitted for this user", "for: a purpose", "instead: another way"] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(text.contains("remedy: a package"), "{text}");
    assert!(text.ends_with("Missing features used by `serve`: one.\n"), "{text}");
}
