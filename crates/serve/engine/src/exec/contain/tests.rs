//! A panic fails its own handler only, and is counted.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use vfs::status::Status;

use crate::transport::budget::{Budgets, Limits};
use crate::transport::connections::ConnectionLimits;

#[tokio::test]
async fn a_panic_is_a_fault_of_its_caller_and_counted_over_all_services() {
    let places = Arc::new(ConnectionLimits::new(100, 2));
    let one = Budgets::sharing(Limits::default(), &places, 0);
    let other = Budgets::sharing(Limits::default(), &places, 1);
    let panics: fn() -> u8 = || panic!("planted");
    assert_eq!(one.contain(panics), Err(Status::Fault));
    assert_eq!(one.contain(|| 7), Ok(7));
    let waits_and_panics = pin!(async {
        tokio::task::yield_now().await;
        panics()
    });
    assert_eq!(other.contain_async(waits_and_panics).await, Err(Status::Fault));
    let waits = pin!(async {
        tokio::task::yield_now().await;
        7
    });
    assert_eq!(other.contain_async(waits).await, Ok(7));
    assert_eq!((one.panics.load(Relaxed), other.panics.load(Relaxed)), (1, 1));
    assert_eq!((one.panics_over_all(), other.panics_over_all()), (2, 2));
}
