//! Calls to a peer: each reply finds its call, and the end of the connection answers all.

use std::sync::mpsc;

use super::*;

const CALL: BackCall<'static> =
    BackCall { program: 7, version: 1, procedure: 2, cred: Auth::None, args: b"args" };

type Heard = Result<Vec<u8>, Unanswered>;

fn back() -> (Arc<Back>, Arc<Mailbox<Letter>>) {
    let mailbox = Arc::<Mailbox<Letter>>::default();
    (Back::new(9, Arc::clone(&mailbox)), mailbox)
}

/// Calls; gives where the answer is heard.
fn call(back: &Back) -> mpsc::Receiver<Heard> {
    let (said, heard) = mpsc::channel();
    let then = move |answer: Result<&[u8], Unanswered>| {
        said.send(answer.map(<[u8]>::to_vec)).expect("somebody listens");
    };
    back.call(&CALL, Box::new(then));
    heard
}

/// The xids of the calls in the mailbox.
fn sent(mailbox: &Mailbox<Letter>) -> Vec<u32> {
    let mut letters = Vec::new();
    mailbox.take(&mut letters);
    let xid = |letter| match letter {
        Letter::Call { record } => {
            let (header, args) = rpc::open_call(&record[4..]).expect("a call");
            assert_eq!((header.prog, header.vers, header.proc), (7, 1, 2));
            assert_eq!(args.rest(), b"args");
            header.xid
        }
        other => panic!("{other:?}"),
    };
    letters.into_iter().map(xid).collect()
}

fn reply(xid: u32, results: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes);
    rpc::success(&mut w, xid);
    w.raw(results);
    bytes
}

#[test]
fn replies_find_their_calls_in_any_order() {
    let (back, mailbox) = back();
    let (first, second) = (call(&back), call(&back));
    let xids = sent(&mailbox);
    assert!(back.answered(&reply(xids[1], b"two.")));
    assert!(back.answered(&reply(xids[0], b"one.")));
    assert_eq!(first.try_recv(), Ok(Ok(b"one.".to_vec())));
    assert_eq!(second.try_recv(), Ok(Ok(b"two.".to_vec())));
    assert!(!back.answered(&reply(xids[0], b"one.")), "it was answered before");
    assert!(!back.answered(b"no reply"));
}

#[test]
fn a_refusal_has_no_results() {
    let (back, mailbox) = back();
    let heard = call(&back);
    let mut bytes = Vec::new();
    rpc::prog_unavail(&mut Writer::new(&mut bytes), sent(&mailbox)[0]);
    assert!(back.answered(&bytes));
    assert_eq!(heard.try_recv(), Ok(Err(Unanswered::Refused)));
}

#[test]
fn the_end_of_the_connection_answers_everything() {
    let (back, _mailbox) = back();
    let heard = call(&back);
    back.close();
    assert_eq!(heard.try_recv(), Ok(Err(Unanswered::Unreachable)));
    assert!(!back.is_open());
    assert_eq!(call(&back).try_recv(), Ok(Err(Unanswered::Unreachable)));
}

#[test]
fn a_peer_that_never_answers_is_not_called_for_ever() {
    let (back, mailbox) = back();
    let heard: Vec<_> = (0..=BACK_CALLS_MAX).map(|_| call(&back)).collect();
    assert_eq!(heard[BACK_CALLS_MAX].try_recv(), Ok(Err(Unanswered::Busy)));
    assert_eq!(sent(&mailbox).len(), BACK_CALLS_MAX);
}
