//! Dates of HTTP, and what time it is now as one of them.

use std::cell::RefCell;

pub use wire::http::date::*;

thread_local! {
    /// The second that was written last, and how.
    static NOW: RefCell<(i64, String)> = const { RefCell::new((0, String::new())) };
}

/// Passes on the current time, formatted once a second.
pub fn with_now<T>(with: impl FnOnce(&str) -> T) -> T {
    let now = (base::clock::stamp() / base::clock::NS_PER_S) as i64;
    NOW.with_borrow_mut(|(sec, text)| {
        if *sec != now {
            (*sec, *text) = (now, write(now));
        }
        with(text)
    })
}
