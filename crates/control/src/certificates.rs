//! Certificates of the administration: the appliance's own, those that are supplied, and those
//! that an authority gives by ACME (RFC 8555); which of them is shown, and their renewal.
//!
//! - [`x509`], [`pair`]: what is in a certificate; a chain and its key, checked.
//! - [`own`]: the one that is there from the first start, and its authority.
//! - [`shown`]: what TLS shows; [`answers`]: proofs for an authority.
//! - [`acme`]: an order, from the account to the chain.
//! - [`node`]: the declarations; [`wanted`]: what the configuration says;
//!   [`room`]: the room of the tree; [`keeper`]: the thread that renews.

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
