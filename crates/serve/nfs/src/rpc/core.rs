//! What the connections of one core share.

use std::ops::Deref;
use std::sync::Arc;

use super::dispatch::Service;
use engine::exec::{self, ServiceCore};

/// One core's state.
pub(super) struct Core {
    pub(super) service: Arc<Service>,
    core: exec::Core,
}

impl Core {
    /// A core of the service.
    pub(super) fn over(core: exec::Core, service: Arc<Service>) -> Self {
        Self { service, core }
    }
}

impl Deref for Core {
    type Target = exec::Core;

    #[inline]
    fn deref(&self) -> &exec::Core {
        &self.core
    }
}

impl ServiceCore for Core {
    fn show(&self) {
        self.service.show(self.engine.hub.gauges());
    }
}
