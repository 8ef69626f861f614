//! What protects users of SMB: from who is between them and the server, from older ways to sign in,
//! from shares that leak in the clear; and what ends when a user, a session or a share does.

#[path = "smb_safety/encryption.rs"]
mod encryption;
#[path = "smb_safety/ends.rs"]
mod ends;
#[path = "smb_safety/middle.rs"]
mod middle;
#[path = "smb_safety/proofs.rs"]
mod proofs;
#[path = "smb_safety/rights.rs"]
mod rights;
