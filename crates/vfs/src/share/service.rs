//! The access rules of a share for each of the services.

use std::sync::Arc;

pub use base::protocol::Service;

use super::rules::Current;

/// The rules for each of the services; without rules every client that can connect has full access.
#[derive(Debug, Clone)]
pub struct ServiceRules([Arc<Current>; Service::ALL.len()]);

impl Default for ServiceRules {
    fn default() -> Self {
        Self(Service::ALL.map(|_| Arc::default()))
    }
}

impl ServiceRules {
    /// Those for one service.
    #[inline]
    pub fn of(&self, service: Service) -> &Arc<Current> {
        &self.0[service.index()]
    }
}
