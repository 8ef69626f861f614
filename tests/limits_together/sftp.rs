//! Limits of SSH and SFTP: connections without a user, channels, requests, handles, runs of dsync.

use base::limits::{
    DSYNC_ENTRIES_MAX, DSYNC_SHARE_RUNS, SFTP_HANDLES_MAX, SFTP_REQUESTS_MAX, SSH_CHANNELS_MAX,
};
use e2e::sftp::Sftp;
use wire::sftp::request::OfPath;
use wire::sftp::{OpenFlags, PathBytes, Request};

use super::world::PASSWORD;
use super::{Attack, Got};

/// SFTP.
const PORT: u16 = 218;

fn user<'a>(attack: &Attack<'a>, n: usize) -> (&'static str, &'static str) {
    let users = attack.users();
    (users[n % users.len()], PASSWORD)
}

fn connect(attack: &Attack<'_>, n: usize) -> std::io::Result<Sftp> {
    Sftp::connect(attack.from, attack.world.server.at(PORT), user(attack, n))
}

/// Channels, filled.
pub(crate) fn channels(attack: &Attack<'_>) -> Got {
    let to = attack.world.server.at(PORT);
    let one = |n| {
        let from = (attack.from, to);
        Sftp::fill_channels(from, user(attack, n), SSH_CHANNELS_MAX as u32).expect("channels")
    };
    let held: Vec<_> = (0..attack.count(1, 3)).map(one).collect();
    Got::new(format!("{} connections with channels", held.len()), held)
}

/// Handles of files and of directories.
pub(crate) fn handles(attack: &Attack<'_>) -> Got {
    let (mut opened, mut listed, mut held) = (0, 0, Vec::new());
    for n in 0..attack.users().len() {
        let mut sftp = connect(attack, n).expect("a session");
        while listed < 64 * (n + 1) && sftp.list("/box/long").is_ok() {
            listed += 1;
        }
        while let Ok(Ok(_)) = sftp.open("/box/common", OpenFlags::READ) {
            opened += 1;
            assert!(opened <= 3 * SFTP_HANDLES_MAX, "more handles than the limit");
        }
        held.push(sftp);
    }
    Got::new(format!("{opened} files, {listed} directories"), held)
}

/// Runs of dsync that are begun, each with directories that wait; then those of which no one is
/// begun any more.
pub(crate) fn runs(attack: &Attack<'_>) -> Got {
    let to = attack.world.server.at(PORT);
    let (mut held, mut begun) = (Vec::new(), 0);
    for n in 0..=2 * DSYNC_SHARE_RUNS {
        let Ok(mut run) = Sftp::subsystem((attack.from, to), user(attack, n), "dsync") else {
            break;
        };
        // A directory each: a second run that writes to one is refused.
        let place = format!("/box/dsync-{}-{n}", attack.from);
        begun += usize::from(run.begin_dsync(&place, DSYNC_ENTRIES_MAX).is_ok());
        held.push(run);
    }
    assert!(begun > 0, "no run of dsync could be begun");
    Got::new(format!("{begun} of {} runs of dsync begun", held.len()), held)
}

/// Wrong passwords.
pub(crate) fn guesses(attack: &Attack<'_>) -> Got {
    let to = attack.world.server.at(PORT);
    let count = attack.count(4, 8);
    let refused = (0..count).filter(|_| Sftp::connect(attack.from, to, ("anna", "no")).is_err());
    Got::new(format!("{} wrong passwords", refused.count()), ())
}

/// Requests on a file system that stands still.
pub(crate) fn pool(attack: &Attack<'_>) -> Got {
    let held: Result<Vec<_>, _> = (0..attack.count(1, 6)).map(|n| connect(attack, n)).collect();
    let mut held = held.expect("sessions");
    if !attack.world.stand_still(true) {
        return Got::new("no file system of FUSE", ());
    }
    for sftp in &mut held {
        for n in 0..SFTP_REQUESTS_MAX {
            let name = format!("/slow/n{n}");
            let stat = Request::Stat(OfPath { path: PathBytes(name.as_bytes()) });
            sftp.start(&stat).expect("sent");
        }
    }
    Got::new(format!("{} requests", held.len() * SFTP_REQUESTS_MAX), held)
}

/// Idle connections.
pub(crate) fn connections(attack: &Attack<'_>) -> Got {
    attack.idle(attack.world.server.at(PORT), 2_000)
}
