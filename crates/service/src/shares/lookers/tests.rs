//! Tasks that do not end hold up no others.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

const SHORT: Duration = Duration::from_millis(20);

/// Names of tasks, in order.
fn names(results: Vec<(String, u32)>) -> Vec<String> {
    let mut names: Vec<_> = results.into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

fn quick(name: &str) -> (String, Task<u32>) {
    (name.to_owned(), Box::new(|| 1))
}

/// A task that ends when something is sent.
fn stuck(name: &str) -> ((String, Task<u32>), Sender<()>) {
    let (free, held): (Sender<()>, Receiver<()>) = channel();
    let task = move || held.recv().map_or(0, |()| 2);
    ((name.to_owned(), Box::new(task)), free)
}

#[test]
fn one_thread_does_what_is_done_at_once() {
    let mut lookers = ProbePool::new(4, Duration::from_secs(60));
    for _ in 0..3 {
        let tasks = (0..200).map(|n| quick(&n.to_string())).collect();
        assert_eq!(lookers.round(tasks).len(), 200);
        assert_eq!(lookers.threads(), 1);
    }
    assert!(lookers.round(Vec::new()).is_empty());
}

#[test]
fn tasks_that_do_not_end_hold_up_no_others_and_are_not_begun_again() {
    let mut lookers = ProbePool::new(4, SHORT);
    let ((first, free_first), (second, free_second)) = (stuck("x"), stuck("y"));
    let tasks = vec![quick("a"), first, quick("b"), second, quick("c")];
    assert_eq!(names(lookers.round(tasks)), ["a", "b", "c"]);
    assert_eq!(lookers.threads(), 3);
    assert_eq!(names(lookers.round(vec![quick("a"), quick("x"), quick("b")])), ["a", "b"]);
    free_first.send(()).expect("it waits");
    free_second.send(()).expect("it waits");
    // What they have found comes with one of the next rounds.
    let mut found = Vec::new();
    while found.len() < 2 {
        let late = lookers.round(vec![quick("a")]).into_iter().filter(|(name, _)| name != "a");
        found.extend(late);
    }
    assert!(found.iter().all(|(_, result)| *result == 2), "{found:?}");
    while lookers.threads() > 1 {
        lookers.round(vec![quick("a")]);
    }
    assert_eq!(names(lookers.round(vec![quick("x"), quick("y")])), ["x", "y"]);
}

#[test]
fn threads_are_bounded() {
    let mut lookers = ProbePool::new(2, SHORT);
    let ((first, _a), (second, _b)) = (stuck("x"), stuck("y"));
    assert!(lookers.round(vec![first, second, quick("a")]).is_empty());
    assert_eq!(lookers.threads(), 2);
    assert!(lookers.round(vec![quick("a")]).is_empty(), "there is no thread for it");
}
