//! Breaks go to the first connection of a client and user, and to the next when that is gone.

use vfs::locks::{Break, Caching, ClientKey, Owner, Protocol};

use super::*;
use crate::state::leases::Form;

fn mail(epoch: u16) -> Mail {
    let client = ClientKey { protocol: Protocol::Smb, id: 1 };
    let (from, to) = (Caching::ALL, Caching::READ);
    Mail {
        lease: Owner::new(client, b"lease").expect("short"),
        session: 1,
        form: Form::Lease([2; 16], true),
        what: Break { from, to, epoch, must_acknowledge: true },
        passed_on: None,
    }
}

fn client(user: &str) -> MailClient {
    ([1; 16], user.into())
}

fn epochs(mailbox: &Mailbox) -> Vec<u16> {
    mailbox.take().iter().map(|mail| mail.what.epoch).collect()
}

#[test]
fn the_first_has_the_mail_of_all() {
    let order = Arc::<MailOrder>::default();
    let [first, second, other] = [0; 3].map(|_| Arc::<Mailbox>::default());
    let of_first = order.enter(client("anna"), &first);
    let of_second = order.enter(client("anna"), &second);
    let of_other = order.enter(client("bob"), &other);
    assert!(of_second.pass_on(mail(1)).is_none(), "passed on");
    assert_eq!(epochs(&first), [1]);
    assert!(of_first.pass_on(mail(2)).is_some(), "its own");
    assert!(of_other.pass_on(mail(3)).is_some(), "another user of the same client");
    drop(of_first);
    assert!(of_second.pass_on(mail(4)).is_some(), "it is the first now");
    assert!(epochs(&first).is_empty());
}

#[test]
fn what_the_first_has_not_sent_goes_to_the_next() {
    let order = Arc::<MailOrder>::default();
    let [first, second] = [0; 2].map(|_| Arc::<Mailbox>::default());
    // Two sessions of one connection.
    let of_first = [order.enter(client("anna"), &first), order.enter(client("anna"), &first)];
    let of_second = order.enter(client("anna"), &second);
    assert!(of_second.pass_on(mail(1)).is_none(), "passed on");
    let [one, other] = of_first;
    drop(one);
    first.take_passed_on().into_iter().for_each(|mail| order.post(mail));
    assert_eq!(first.take_of(1).len(), 0, "it is not of a session here");
    drop(other);
    first.take_passed_on().into_iter().for_each(|mail| order.post(mail));
    assert_eq!(epochs(&second), [1]);
    drop(of_second);
    assert!(order.of().is_empty());
}
