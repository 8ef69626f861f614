//! The part of the service that each core has.

use std::ops::Deref;
use std::sync::Arc;

use super::Iscsi;
use engine::exec;

/// What the connections of one core share.
pub struct Core {
    pub(super) core: exec::Core,
    /// The service.
    pub iscsi: Arc<Iscsi>,
}

impl Deref for Core {
    type Target = exec::Core;

    fn deref(&self) -> &exec::Core {
        &self.core
    }
}

impl exec::ServiceCore for Core {}
