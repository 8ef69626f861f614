//! What protects users of SMB: from a man in the middle, from older ways to sign in, from shares
//! that are served unencrypted; and what ends when a user, a session or a share does.

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
