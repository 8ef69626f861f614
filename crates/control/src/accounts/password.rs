//! Passwords: hashed with Argon2id (RFC 9106), kept as PHC strings.
//!
//! Checks share a few blocks of memory, which are reused: with a separate block for each check, a
//! client that tries passwords would make the heap of every thread grow.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use argon2::password_hash::PasswordHasher;
use argon2::password_hash::phc::{Output, PasswordHash};
use argon2::{Argon2, Block};
use base::base64;
use base::limits::PASSWORD_CHECKS_MAX;
use base::random::{Random, SystemRandom};

use crate::state::StateError;

/// The hash of a password, with a salt of its own.
///
/// # Errors
/// [`StateError::Hash`].
pub fn hash(password: &str) -> Result<String, StateError> {
    Argon2::default()
        .hash_password(password.as_bytes())
        .map(|hash| hash.to_string())
        .map_err(|e| StateError::Hash(e.to_string()))
}

/// Whether a password is the one of a hash that is ours. Costs some 20 ms, on purpose, and waits
/// while [`PASSWORD_CHECKS_MAX`] others are checked.
pub fn is_right(hash: &str, password: &str) -> bool {
    let Some(hash) = PasswordHash::new(hash).ok().filter(|_| is_ours(hash)) else { return false };
    let (Some(salt), Some(kept)) = (hash.salt, hash.hash) else { return false };
    let mut given = [0; Output::MAX_LENGTH];
    let Some(given) = given.get_mut(..kept.len()) else { return false };
    let mut desk = HashMemory::take();
    let hashed = Argon2::default().hash_password_into_with_memory(
        password.as_bytes(),
        &salt,
        given,
        &mut desk.0[..],
    );
    // Outputs are compared in constant time.
    hashed.is_ok() && Output::new(given).is_ok_and(|given| given == kept)
}

/// Bytes of the salt and the output of a hash.
const SALT: usize = 16;
const OUTPUT: usize = 32;

/// A hash that no password has, for names that no user has: a random output. To hash a random
/// password instead would delay each start of a server by the time of a check.
///
/// # Errors
/// [`StateError::Hash`] if it would not be checked as others are.
pub fn decoy() -> Result<String, StateError> {
    let (mut salt, mut output) = ([0; SALT], [0; OUTPUT]);
    SystemRandom.fill(&mut salt);
    SystemRandom.fill(&mut output);
    let [salt, output] = [&salt[..], &output[..]].map(base64::encode);
    let [salt, output] = [&salt, &output].map(|text| text.trim_end_matches('='));
    let text = format!("{}{salt}${output}", head());
    if is_ours(&text) {
        Ok(text)
    } else {
        Err(StateError::Hash("a hash of random numbers is not valid".to_owned()))
    }
}

/// Memory for one check, 19 MiB, as long as the check lasts.
struct HashMemory(Vec<Block>);

struct HashSlots {
    busy: usize,
    free: Vec<Vec<Block>>,
}

static HASH_SLOTS: Mutex<HashSlots> = Mutex::new(HashSlots { busy: 0, free: Vec::new() });
static LEFT: Condvar = Condvar::new();

fn slots() -> MutexGuard<'static, HashSlots> {
    HASH_SLOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pieces of memory that lie ready.
#[cfg(test)]
pub(super) fn free_slots() -> usize {
    slots().free.len()
}

impl HashMemory {
    fn take() -> Self {
        let all_taken = |slots: &mut HashSlots| slots.busy >= PASSWORD_CHECKS_MAX;
        let waited = LEFT.wait_while(slots(), all_taken);
        let mut slots = waited.unwrap_or_else(PoisonError::into_inner);
        slots.busy += 1;
        let mut blocks = slots.free.pop().unwrap_or_default();
        drop(slots);
        blocks.resize(Argon2::default().params().block_count(), Block::default());
        Self(blocks)
    }
}

impl Drop for HashMemory {
    fn drop(&mut self) {
        let mut slots = slots();
        slots.busy -= 1;
        slots.free.push(std::mem::take(&mut self.0));
        drop(slots);
        LEFT.notify_one();
    }
}

/// Whether a text is a hash that we have made: of another cost it would take another time.
pub fn is_ours(text: &str) -> bool {
    text.starts_with(&head()) && PasswordHash::new(text).is_ok()
}

/// What all hashes that we make begin with.
fn head() -> String {
    let p = Argon2::default();
    let p = p.params();
    format!("$argon2id$v=19$m={},t={},p={}$", p.m_cost(), p.t_cost(), p.p_cost())
}

/// A password for a first start: 16 letters and digits without similar ones (80 bits), in groups of
/// four.
pub fn generate() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 16];
    SystemRandom.fill(&mut bytes);
    let letters: String = bytes.iter().map(|b| char::from(LETTERS[usize::from(b % 32)])).collect();
    [&letters[0..4], &letters[4..8], &letters[8..12], &letters[12..16]].join("-")
}
