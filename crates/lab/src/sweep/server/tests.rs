//! The settings of TCP, and how the server is started.

use super::*;
use crate::sweep::plan::Carrier;

fn point(carrier: Carrier) -> (Plan, At) {
    let mut plan = Plan::figure(5, 100_000_000).unwrap();
    plan.carrier = carrier;
    let at = At { window: 1 << 20, rtt_ms: 20.0, ..plan.points()[0].clone() };
    (plan, at)
}

#[test]
fn tcp_buffers_hold_what_is_in_flight() {
    for carrier in [Carrier::NfsRead, Carrier::NfsWrite, Carrier::Ftp] {
        let (plan, at) = point(carrier);
        let settings = settings(&plan, &at);
        let of = |name| settings.iter().find(|one| one.0 == name).unwrap().1.clone();
        assert_eq!(of("tcp_congestion_control"), "reno");
        for name in ["tcp_rmem", "tcp_wmem"] {
            let room: Vec<u64> = of(name).split(' ').map(|n| n.parse().unwrap()).collect();
            let [least, first, most] = room[..] else { panic!("{room:?}") };
            assert!(least <= first && first <= most && most >= 4 * plan.flight(&at), "{room:?}");
            assert_eq!(first == most, carrier.waits(), "{carrier:?}: {room:?}");
        }
    }
}

#[test]
fn the_password_is_in_a_file_and_no_argument() {
    let folder = Folder::new("sweep").unwrap();
    let command = command(&folder, "correct horse").unwrap();
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    assert!(words.iter().all(|word| !word.contains("correct")), "{words:?}");
    let file = words.iter().find_map(|word| word.split_once(":@")).unwrap().1.to_owned();
    assert_eq!(fs::read_to_string(file).unwrap(), "correct horse");
    let path = folder.path().to_owned();
    drop(folder);
    assert!(!path.exists(), "its files go with it");
}
