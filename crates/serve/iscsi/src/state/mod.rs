//! What a session has, as pure state: [`window`], which commands it may send; [`tasks`], those that
//! have not ended; [`gather`], data of a write as it comes; [`sessions`], by identity.

pub mod gather;
pub mod sessions;
pub mod tasks;
pub mod window;
