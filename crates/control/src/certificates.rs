//! Certificates of the administration: the appliance's own, those that are supplied, and those that
//! a CA issues by ACME (RFC 8555); which of them is in use, and their renewal.
//!
//! - [`x509`], [`pair`]: what is in a certificate; a chain and its key, checked.
//! - [`own`]: the one that exists from the first start, and its CA.
//! - [`shown`]: the certificate in use; [`answers`]: challenge responses for a CA.
//! - [`acme`]: an order, from the account to the chain.
//! - [`node`]: the declarations; [`wanted`]: the configuration; [`room`]: the room of the tree;
//!   [`keeper`]: the thread that renews.

pub mod acme;
pub mod answers;
pub mod keeper;
pub mod node;
pub mod own;
pub mod pair;
pub mod room;
pub mod shown;
pub mod wanted;
pub mod x509;

pub use room::Certificates;
