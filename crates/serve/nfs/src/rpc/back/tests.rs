//! Calls to a peer: each reply finds its call, and the end of the connection completes all.

use std::sync::mpsc;

use wire::rpc;

use super::*;

const CALL: BackCall<'static> =
    BackCall { program: 7, version: 1, procedure: 2, cred: Auth::None, args: b"args" };

type CallResult = Result<Vec<u8>, Unanswered>;

fn back() -> (Arc<Back>, Arc<CompletionQueue<Completion>>) {
    let queue = Arc::<CompletionQueue<Completion>>::default();
    (Back::new(9, Arc::clone(&queue)), queue)
}

/// Makes a call; returns where its reply arrives.
fn call(back: &Back) -> mpsc::Receiver<CallResult> {
    let (said, heard) = mpsc::channel();
    let then = move |answer: Result<&[u8], Unanswered>| {
        said.send(answer.map(<[u8]>::to_vec)).expect("somebody listens");
    };
    back.call(&CALL, Box::new(then));
    heard
}

/// The xids of the calls in the queue.
fn sent(queue: &CompletionQueue<Completion>) -> Vec<u32> {
    let mut calls = Vec::new();
    queue.drain(&mut calls);
    let xid = |call| match call {
        Completion::Call { message } => {
            let (header, args) = rpc::open_call(&message).expect("a call");
            assert_eq!((header.prog, header.vers, header.proc), (7, 1, 2));
            assert_eq!(args.rest(), b"args");
            header.xid
        }
        other => panic!("{other:?}"),
    };
    calls.into_iter().map(xid).collect()
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
    let (back, queue) = back();
    let (first, second) = (call(&back), call(&back));
    let xids = sent(&queue);
    assert!(back.answered(&reply(xids[1], b"two.")));
    assert!(back.answered(&reply(xids[0], b"one.")));
    assert_eq!(first.try_recv(), Ok(Ok(b"one.".to_vec())));
    assert_eq!(second.try_recv(), Ok(Ok(b"two.".to_vec())));
    assert!(!back.answered(&reply(xids[0], b"one.")), "it was answered before");
    assert!(!back.answered(b"no reply"));
}

#[test]
fn a_refusal_has_no_results() {
    let (back, queue) = back();
    let heard = call(&back);
    let mut bytes = Vec::new();
    rpc::prog_unavail(&mut Writer::new(&mut bytes), sent(&queue)[0]);
    assert!(back.answered(&bytes));
    assert_eq!(heard.try_recv(), Ok(Err(Unanswered::Refused)));
}

#[test]
fn the_end_of_the_connection_answers_everything() {
    let (back, _queue) = back();
    let heard = call(&back);
    back.close();
    assert_eq!(heard.try_recv(), Ok(Err(Unanswered::Unreachable)));
    assert!(!back.is_open());
    assert_eq!(call(&back).try_recv(), Ok(Err(Unanswered::Unreachable)));
}

#[test]
fn a_peer_that_never_answers_is_not_called_for_ever() {
    let (back, queue) = back();
    let heard: Vec<_> = (0..=BACK_CALLS_MAX).map(|_| call(&back)).collect();
    assert_eq!(heard[BACK_CALLS_MAX].try_recv(), Ok(Err(Unanswered::Busy)));
    assert_eq!(sent(&queue).len(), BACK_CALLS_MAX);
}
