//! Passwords: hashed with Argon2id (RFC 9106), kept as PHC strings.

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
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

/// Whether a password is the one of a hash. Costs 19 MiB and some 20 ms, on purpose.
pub fn is_right(hash: &str, password: &str) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

/// Whether a text is a hash that we have made: of another cost it would take another time.
pub fn is_ours(text: &str) -> bool {
    let p = Argon2::default();
    let p = p.params();
    let head = format!("$argon2id$v=19$m={},t={},p={}$", p.m_cost(), p.t_cost(), p.p_cost());
    text.starts_with(&head) && PasswordHash::new(text).is_ok()
}

/// A password for a first start: 16 letters and digits that cannot be mistaken for one another
/// (80 bits), in groups of four.
pub fn generate() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 16];
    SystemRandom.fill(&mut bytes);
    let letters: String = bytes.iter().map(|b| char::from(LETTERS[usize::from(b % 32)])).collect();
    [&letters[0..4], &letters[4..8], &letters[8..12], &letters[12..16]].join("-")
}
