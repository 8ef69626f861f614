//! What the service allocates for a request of data that is in memory: nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use e2e::smb::{Ask, Protection, Smb};
use wire::smb::create::FileId;
use wire::smb::status::NtStatus;

use crate::running::Running;

/// Requests of each kind that are counted.
const REQUESTS: usize = 2_000;
/// What the rest of the service allocates in the meantime: a core sums up every now and then. One
/// allocation for each tenth request would be more.
const OTHERS: usize = REQUESTS / 10;

/// The system's, with a count of allocations by all threads but those of clients.
struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_CLIENT: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    // A thread that ends is none of the service's.
    if !IS_CLIENT.try_with(Cell::get).unwrap_or(true) {
        COUNT.fetch_add(1, Relaxed);
    }
}

// SAFETY: everything is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the same.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A kind of request, and how one is made.
type Kind = (&'static str, fn(&mut Smb, FileId) -> NtStatus);

const KINDS: [Kind; 3] = [
    ("READ", |smb, file| {
        let read = smb.read(file, 0, 4096).expect("an answer");
        read.map_or_else(
            |status| status,
            |data| match data.len() {
                4096 => NtStatus::SUCCESS,
                _ => NtStatus::END_OF_FILE,
            },
        )
    }),
    ("WRITE", |smb, file| smb.write(file, 0, &[7; 512], 0).expect("an answer")),
    ("ECHO", |smb, _| smb.echo().expect("an answer")),
];

#[test]
fn a_request_that_need_not_wait_allocates_nothing() {
    IS_CLIENT.set(true);
    let running = Running::new();
    let mut smb = running.again();
    let file = smb.create(&Ask::make("f")).expect("an answer").expect("a file");
    assert_eq!(smb.write(file, 0, &[7; 8192], 0).expect("an answer"), NtStatus::SUCCESS);
    for protection in [Protection::Signed, Protection::Sealed] {
        smb.protection = protection;
        for (name, run) in KINDS {
            // What is kept is there then.
            (0..100).for_each(|_| assert_eq!(run(&mut smb, file), NtStatus::SUCCESS));
            let before = COUNT.load(Relaxed);
            (0..REQUESTS).for_each(|_| assert_eq!(run(&mut smb, file), NtStatus::SUCCESS));
            let count = COUNT.load(Relaxed) - before;
            println!("smb/allocations: {name}, {protection:?}: {count} for {REQUESTS} requests");
            assert!(count < OTHERS, "{name}, {protection:?}: {count} for {REQUESTS} requests");
        }
    }
}
