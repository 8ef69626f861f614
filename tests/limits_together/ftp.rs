//! Limits of FTP: sessions, transfers, listings.

use std::time::Duration;

use base::limits::{FTP_PER_ADDRESS_MAX, SIGN_IN_QUEUE_CLIENT_MAX};
use e2e::ftp::Ftp;

use super::attack::fill;
use super::world::PASSWORD;
use super::{Attack, Got};

/// FTP.
const PORT: u16 = 21;
/// Time between attempts to sign in that are refused.
const REFUSED_PAUSE: Duration = Duration::from_millis(250);

fn sign_in(attack: &Attack<'_>, n: usize) -> std::io::Result<Ftp> {
    let mut ftp = Ftp::connect(attack.from, attack.world.server.at(PORT))?;
    let users = attack.users();
    match ftp.sign_in(users[n % users.len()], PASSWORD)? {
        230 => Ok(ftp),
        code => Err(std::io::Error::other(format!("{code}"))),
    }
}

/// Transfers and listings that take or send no data.
pub(crate) fn transfers(attack: &Attack<'_>) -> Got {
    let mut held = Vec::new();
    for n in 0..attack.count(6, 12) {
        for line in ["RETR /box/large", "LIST /box/long", &format!("STOR /box/half-ftp-{n}")] {
            let mut ftp = sign_in(attack, n).expect("a session");
            let data = ftp.begin(line).expect("a reply").expect("a data connection");
            fill(&data, &[1; 300_000]);
            held.push((ftp, data));
        }
    }
    Got::new(format!("{} transfers", held.len()), held)
}

/// Sign-ins with the right password, as many at once as may wait, repeatedly.
pub(crate) fn sign_ins(attack: &Attack<'_>) -> Got {
    let count = SIGN_IN_QUEUE_CLIENT_MAX + 8;
    let from = attack.from;
    for n in 0..count {
        let user = attack.users()[n % attack.users().len()];
        attack.repeat(move |world| {
            let signed_in = Ftp::connect(from, world.server.at(PORT))
                .and_then(|mut ftp| ftp.sign_in(user, PASSWORD));
            // Those that are refused at once are not to use up the machine.
            if !signed_in.is_ok_and(|code| code == 230) {
                std::thread::park_timeout(REFUSED_PAUSE);
            }
        });
    }
    Got::new(format!("{count} sign-ins at once, repeatedly"), ())
}

/// Wrong passwords.
pub(crate) fn guesses(attack: &Attack<'_>) -> Got {
    let to = attack.world.server.at(PORT);
    let mut held = Vec::new();
    for n in 0..attack.count(4, 16) {
        let Ok(mut ftp) = Ftp::connect(attack.from, to) else { break };
        let user = if attack.all { format!("unknown-{n}") } else { "anna".to_owned() };
        let _ = ftp.say(format!("USER {user}"));
        ftp.send(b"PASS wrong\r\n").expect("sent");
        held.push(ftp);
    }
    Got::new(format!("{} wrong passwords at once", held.len()), held)
}

/// Transfers on a file system that stands still.
pub(crate) fn pool(attack: &Attack<'_>) -> Got {
    let held: Result<Vec<_>, _> = (0..attack.count(24, 48)).map(|n| sign_in(attack, n)).collect();
    let mut held = held.expect("sessions");
    if !attack.world.stand_still(true) {
        return Got::new("no file system of FUSE", ());
    }
    for (n, ftp) in held.iter_mut().enumerate() {
        ftp.send(format!("SIZE /slow/n{n}\r\n").as_bytes()).expect("sent");
    }
    Got::new(format!("{} requests", held.len()), held)
}

/// Sessions without a user.
pub(crate) fn connections(attack: &Attack<'_>) -> Got {
    attack.idle(attack.world.server.at(PORT), 2 * FTP_PER_ADDRESS_MAX)
}
