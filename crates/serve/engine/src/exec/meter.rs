//! A core's writing end of the measuring, shared by the services that it serves.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use base::clock::stamp;
use base::limits::{CORE_REST_MAX, CORE_TICK, CORE_TICK_SLICES};
use probe::core::CoreProbe;
use probe::hub::Hub;
use probe::op::OpRecord;

thread_local! {
    /// The one of this thread, as long as a service of it has it.
    static METER: RefCell<Weak<RefCell<CoreProbe>>> = const { RefCell::new(Weak::new()) };
}

/// Where the services of a core write operations down.
pub struct Meter {
    hub: Arc<Hub>,
    probe: Rc<RefCell<CoreProbe>>,
}

impl Meter {
    /// The one of this thread, which serves core `id`. The first service takes the core's writing
    /// end; it is free again when the last one has ended.
    pub fn of(hub: &Arc<Hub>, id: usize) -> Self {
        let shared = METER.with_borrow(Weak::upgrade).filter(|probe| {
            let probe = probe.borrow();
            Arc::ptr_eq(probe.hub(), hub) && probe.core() == id
        });
        let probe = shared.unwrap_or_else(|| {
            let probe = Rc::new(RefCell::new(hub.core(id)));
            METER.set(Rc::downgrade(&probe));
            probe
        });
        Self { hub: Arc::clone(hub), probe }
    }

    /// The hub that it reports to.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Its writing end, for callers with several records to write.
    pub fn probe(&self) -> std::cell::RefMut<'_, CoreProbe> {
        self.probe.borrow_mut()
    }

    /// Writes one operation down.
    pub fn finish(&self, record: &OpRecord) {
        self.probe.borrow_mut().finish(record);
    }

    /// Aggregates records, as many as an idle moment allows; whether more wait.
    pub fn idle(&self) -> bool {
        let mut probe = self.probe.borrow_mut();
        for _ in 0..CORE_TICK_SLICES {
            if !probe.idle(stamp()) {
                return false;
            }
        }
        true
    }

    /// How long a core without operations may wait until it looks again.
    pub fn rest(&self) -> Duration {
        let left = Duration::from_nanos(self.probe.borrow().rest_ns(stamp()));
        left.clamp(CORE_TICK, CORE_REST_MAX)
    }
}
