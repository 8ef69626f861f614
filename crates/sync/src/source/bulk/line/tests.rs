//! What is held of a stream, and when it stands still.

use std::collections::HashMap;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use wire::dsync::{Data, Message, frame};

use super::{Line, still};

fn line() -> Line {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let socket = TcpStream::connect(listener.local_addr().expect("it")).expect("a socket");
    Line::new(Arc::new(socket), 0)
}

fn frames(pieces: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for bytes in pieces {
        let data = Data { id: 1, turn: 0, hole: 0, offset: 0, unpacked: 0, bytes };
        frame::put(&Message::Data(data), &mut out);
    }
    out
}

#[test]
fn what_was_not_taken_is_left_frame_by_frame() {
    let mut line = line();
    let (one, two, three) = (frames(&[b"a"]), frames(&[b"bcde", b"f"]), frames(&[b"g"]));
    let all = [&one, &two, &three].map(|lot| lot.len() as u64);
    for lot in [&one, &two, &three] {
        line.give(lot.clone(), 1);
    }
    assert_eq!(line.held(), all.iter().sum::<u64>());
    assert_eq!(line.take(all[0], 2).expect("taken"), all[0]);
    // The first frame of the second lot: that is held until the whole lot is taken.
    let first = frames(&[b"bcde"]).len() as u64;
    assert_eq!(line.take(all[0] + first, 3).expect("taken"), 0);
    assert_eq!(line.rest().expect("frames"), [frames(&[b"f"]), frames(&[b"g"])]);
    assert!(line.take(all[0], 3).is_err(), "less than before");
    assert!(line.take(all.iter().sum::<u64>() + 1, 3).is_err(), "more than was given");
    assert!(line.take(all[0] + first + 1, 3).is_ok());
    assert!(line.rest().is_err(), "within a frame");
    line.take(all.iter().sum(), 4).expect("all");
    assert_eq!((line.held(), line.rest().expect("nothing").len()), (0, 0));
}

#[test]
fn a_stalled_stream_is_abandoned_while_others_continue() {
    let timeout = Duration::from_nanos(100);
    let mut lines: HashMap<u32, Line> = (0..3).map(|number| (number, line())).collect();
    let lot = frames(&[b"a"]);
    let size = lot.len() as u64;
    let still_at = |lines: &HashMap<u32, Line>, now| still(lines.iter(), now, timeout);
    assert!(still_at(&lines, 10_000).is_empty(), "who has nothing does not stand still");
    for line in lines.values_mut() {
        line.give(lot.clone(), 1_000);
        line.give(lot.clone(), 1_001);
    }
    assert!(still_at(&lines, 1_200).is_empty(), "all stand: that is no stream's fault");
    for number in [1, 2] {
        lines.get_mut(&number).expect("it").take(size, 1_060).expect("taken");
    }
    assert!(still_at(&lines, 1_099).is_empty(), "not long enough");
    assert_eq!(still_at(&lines, 1_100), [0]);
    lines.get_mut(&0).expect("it").broken = true;
    assert!(still_at(&lines, 1_100).is_empty(), "once is enough");
    let mut late = still_at(&lines, 1_060 + 600);
    late.sort_unstable();
    assert_eq!(late, [1, 2], "nobody goes on for very long");
}
