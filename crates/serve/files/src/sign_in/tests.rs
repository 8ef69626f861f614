//! Which sign-ins wait, and for what.

use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Poll, Waker};

use super::*;

fn address(host: u16) -> IpAddr {
    [0xfd00, 0, 0, host, 0, 0, 0, 1].into()
}

fn poll<F: Future + ?Sized>(waiting: Pin<&mut F>) -> Poll<F::Output> {
    waiting.poll(&mut Context::from_waker(Waker::noop()))
}

fn begin(sign_ins: &SignIns, host: u16) -> Pin<Box<dyn Future<Output = bool> + '_>> {
    let permit = sign_ins.permit(network(address(host)));
    Box::pin(async move {
        let permit = permit.await;
        let is_permitted = permit.is_some();
        // As long as the future lives.
        if is_permitted {
            std::future::pending::<()>().await;
        }
        drop(permit);
        is_permitted
    })
}

#[test]
fn sign_ins_of_one_address_leave_threads_and_permits_to_others() {
    let sign_ins = SignIns::default();
    let mut flood: Vec<_> = (0..SIGN_IN_QUEUE_CLIENT_MAX).map(|_| begin(&sign_ins, 1)).collect();
    assert!(flood.iter_mut().all(|one| poll(one.as_mut()).is_pending()));
    assert_eq!(poll(begin(&sign_ins, 1).as_mut()), Poll::Ready(false), "it has its part");
    // A thread is left for another address, although one of them waits for it.
    let other = poll(pin!(sign_ins.permit(network(address(2)))));
    assert!(matches!(other, Poll::Ready(Some(_))));
    drop(flood);
    assert_eq!(sign_ins.waiting.taken(), 1, "that of the other address");
    let again = poll(pin!(sign_ins.permit(network(address(1)))));
    assert!(matches!(again, Poll::Ready(Some(_))));
}

#[test]
fn addresses_of_one_network_of_ipv6_are_one() {
    let sign_ins = Arc::new(SignIns::default());
    let limits = (SIGN_IN_QUEUE_MAX, SIGN_IN_QUEUE_CLIENT_MAX);
    let of = |host: u16| IpAddr::from([0xfd00, 0, 0, 1, 0, 0, 0, host]);
    let taken: Vec<_> =
        (0..999).map_while(|n| sign_ins.waiting.take(network(of(n)), limits)).collect();
    assert_eq!(taken.len(), SIGN_IN_QUEUE_CLIENT_MAX);
}

/// A list of users at which a check ends when the test lets it.
struct Slow {
    begins: SyncSender<()>,
    ends: Mutex<Receiver<()>>,
}

impl Identity for Slow {
    fn password(&self, _: IpAddr, _: &str, _: &str) -> Result<Arc<Person>, Refused> {
        let _ = self.begins.send(());
        let _ = self.ends.lock().expect("one check at a time").recv();
        Err(Refused::Wrong)
    }

    fn person(&self, _: &str) -> Option<Arc<Person>> {
        None
    }

    fn anonymous(&self) -> Arc<Person> {
        unreachable!("nothing here is anonymous")
    }
}

#[test]
fn a_check_has_its_permit_until_it_ends_although_its_client_has_gone() {
    let (begins, begun) = sync_channel(1);
    let (end, ends) = sync_channel(1);
    let identity: Arc<dyn Identity> = Arc::new(Slow { begins, ends: Mutex::new(ends) });
    let sign_ins = SignIns::default();
    let mut check = Box::pin(sign_ins.password(&identity, address(1), "anna", "wrong"));
    assert!(poll(check.as_mut()).is_pending());
    begun.recv().expect("the check has begun");
    drop(check);
    let mut next = Box::pin(sign_ins.permit(network(address(1))));
    assert!(poll(next.as_mut()).is_pending(), "one check of an address at a time");
    end.send(()).expect("the check goes on");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    assert!(runtime.block_on(next).is_some());
}
