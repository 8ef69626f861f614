//! A panic in the handler of a line of echo fails that line. It has no others: nothing of it is
//! flushed, and nothing completes later.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use vfs::cred::Cred;
use vfs::identity::{Identity, Person, Refused};

use crate::Serves;
use crate::echo::{Echo, Lines};
use crate::scene::Users;

/// Users, of which a look at one panics once.
struct Planted {
    users: Arc<Users>,
    panics: AtomicBool,
}

impl Identity for Planted {
    fn behind(&self) -> Option<&dyn Identity> {
        Some(&*self.users)
    }

    fn password(&self, from: IpAddr, name: &str, password: &str) -> Result<Arc<Person>, Refused> {
        self.users.password(from, name, password)
    }

    fn person(&self, name: &str) -> Option<Arc<Person>> {
        self.users.person(name)
    }

    fn stands(&self, person: &Arc<Person>) -> bool {
        assert!(!self.panics.swap(false, SeqCst), "planted");
        self.users.stands(person)
    }

    fn anonymous(&self) -> Arc<Person> {
        self.users.anonymous()
    }
}

#[test]
fn a_panic_fails_its_line_and_no_other() {
    let mut planted = None;
    let echo = Echo::over(|users| {
        let identity = Arc::new(Planted { users, panics: AtomicBool::new(false) });
        planted = Some(Arc::clone(&identity));
        identity
    });
    let planted = planted.expect("made");
    let users = &echo.scene.users;
    let [mut one, mut other] = [(); 2].map(|()| Lines::open(echo.at()).expect("signed in"));
    // After a change, the users of connections are looked at again.
    users.add("bob", "secret", Cred::root());
    planted.panics.store(true, SeqCst);
    one.put("one\ntwo\nthree\n").expect("sent");
    let lines = [(); 3].map(|()| one.line().expect("a line"));
    assert_eq!(lines, ["NO", "two", "three"]);
    other.put("four\n").expect("sent");
    assert_eq!(other.line().expect("a line"), "four");
    assert_eq!(echo.budgets().panics.load(SeqCst), 1);
    // A request without a response is sent again.
    users.remove("alice");
    planted.panics.store(true, SeqCst);
    one.put("five\n").expect("sent");
    assert_eq!(one.line().expect("a line"), "NO");
    one.put("six\n").expect("sent");
    assert!(one.line().is_err(), "the connection is closed");
    assert_eq!(echo.budgets().panics.load(SeqCst), 2);
}
