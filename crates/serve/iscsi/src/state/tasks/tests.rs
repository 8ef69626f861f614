//! Tests of tasks that are aborted.

use std::sync::Arc;

use vfs::lun::reservations::Port;

use super::{Mark, Verdict};

fn mark() -> Arc<Mark> {
    Mark::new(Port { name: "iqn.a".to_owned(), isid: [0; 6] }, 1, &Arc::default())
}

#[test]
fn what_has_not_begun_never_does() {
    let task = mark();
    assert!(!task.is_over());
    assert!(task.judge(Verdict::TaskAborted), "no further effect");
    assert!(task.is_over() && !task.begin());
    assert!(task.judge(Verdict::Silent));
    assert_eq!(task.verdict(), Some(Verdict::TaskAborted), "the first verdict holds");
}

#[test]
fn what_runs_is_over_when_it_ends() {
    let task = mark();
    assert!(task.begin());
    assert!(!task.judge(Verdict::Silent) && !task.is_over());
    task.end();
    assert!(task.is_over());
    assert_eq!(task.verdict(), Some(Verdict::Silent));
    let task = mark();
    assert!(task.begin());
    task.end();
    assert!(task.judge(Verdict::Silent), "it has ended");
    assert_eq!(task.verdict(), None, "and is answered");
}

/// Whether it is ready, and how often it was woken.
fn poll(wait: std::pin::Pin<&mut impl Future<Output = ()>>, woken: &Arc<Woken>) -> bool {
    let waker = std::task::Waker::from(Arc::clone(woken));
    wait.poll(&mut std::task::Context::from_waker(&waker)).is_ready()
}

#[derive(Default)]
struct Woken(std::sync::atomic::AtomicUsize);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn what_waits_for_the_end_is_woken_by_it_alone() {
    let (task, woken) = (mark(), Arc::<Woken>::default());
    assert!(task.begin() && !task.judge(Verdict::Silent));
    {
        let mut wait = std::pin::pin!(task.wait_over());
        assert!(!poll(wait.as_mut(), &woken));
        assert_eq!(woken.0.load(std::sync::atomic::Ordering::SeqCst), 0);
        task.end();
        assert_eq!(woken.0.load(std::sync::atomic::Ordering::SeqCst), 1);
        assert!(poll(wait.as_mut(), &woken));
    }
    assert!(poll(std::pin::pin!(task.wait_over()), &woken), "it is over");
    let never = mark();
    assert!(never.judge(Verdict::Silent));
    assert!(poll(std::pin::pin!(never.wait_over()), &woken), "it never begins");
}
