//! Steps on one subject exclude each other, those on others do not.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use vfs::handle::Handle;

use super::*;

#[test]
fn steps_on_one_subject_are_taken_one_after_the_other() {
    let file = FileKey { fsid: 1, fileid: 2, generation: 3 };
    let end = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    let _step = Step::on_end(file);
                    let now = end.load(Relaxed);
                    std::hint::spin_loop();
                    end.store(now + 1, Relaxed);
                }
            });
        }
    });
    assert_eq!(end.load(Relaxed), 4_000);
}

#[test]
fn other_subjects_do_not_wait() {
    let dir = |byte| Handle::new(&[byte; 8]).expect("a handle");
    let key = |fileid| FileKey { fsid: 9, fileid, generation: 0 };
    let steps = [
        Step::on_name(&dir(1), b"a"),
        Step::on_name(&dir(1), b"b"),
        Step::on_name(&dir(2), b"a"),
        Step::on_end(key(1)),
        Step::on_end(key(2)),
    ];
    drop(steps);
    let _again = Step::on_name(&dir(1), b"a");
}
