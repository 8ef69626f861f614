//! Clients that could not connect because they have no algorithm in common with the service: they
//! see only that the key exchange has failed, so the mismatch is reported to the administrator.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use base::limits::{SSH_MISMATCH_BYTES_MAX, SSH_MISMATCH_LOG_EVERY, SSH_MISMATCHES_KEPT};
use wire::ssh::kex::NothingInCommon;

/// What the connections of a service share of it.
#[derive(Clone, Default)]
pub struct Mismatches(Arc<Mutex<RecentMismatch>>);

#[derive(Default)]
struct RecentMismatch {
    /// The newest last; each once.
    sentences: VecDeque<String>,
    /// Those that are not in the log, and when there was a line last.
    unlogged: u64,
    logged_ns: Option<u64>,
}

/// Text of an unauthenticated peer, as far as it is printable.
fn shown(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b'!'..=b'~' => char::from(*byte),
        _ => '?',
    };
    let (some, more) = match bytes.get(..SSH_MISMATCH_BYTES_MAX) {
        Some(some) => (some, "…"),
        None => (bytes, ""),
    };
    some.iter().map(one).collect::<String>() + more
}

fn sentence((from, software): (IpAddr, &[u8]), why: &NothingInCommon) -> String {
    let (software, what) = (shown(software), why.what);
    let offered = shown(why.offered.as_bytes()).replace(',', ", ");
    let cure = match why.is_compatible() {
        true => "the setting algorithms=compatible permits it",
        false => "no setting permits any of them",
    };
    format!(
        "{from} ({software}) has no {what} in common with the SFTP service: it offers \
        {offered}; {cure}"
    )
}

impl Mismatches {
    /// A client, and the name of its software, could not connect. A client that tries all day is
    /// one line of the log a minute.
    pub fn note(&self, client: (IpAddr, &[u8]), why: &NothingInCommon, now_ns: u64) {
        let sentence = sentence(client, why);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.sentences.retain(|other| *other != sentence);
        if kept.sentences.len() >= SSH_MISMATCHES_KEPT {
            kept.sentences.pop_front();
        }
        kept.sentences.push_back(sentence.clone());
        kept.unlogged += 1;
        let pause = SSH_MISMATCH_LOG_EVERY.as_nanos() as u64;
        if kept.logged_ns.is_some_and(|at| now_ns.saturating_sub(at) < pause) {
            return;
        }
        kept.logged_ns = Some(now_ns);
        match std::mem::take(&mut kept.unlogged) {
            1 => base::warning!("sftp", "{sentence}"),
            count => base::warning!("sftp", "{sentence} ({count} connections since the last line)"),
        }
    }

    /// The reports, the newest last.
    pub fn all(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.sentences.iter().cloned().collect()
    }
}
