//! Task management (RFC 7143 §11.5; SAM-5 §7). The answer comes when the tasks that are meant can
//! have no further effect, and in a bounded time even if a disk does not answer: then the function
//! is refused. What such a disk holds back keeps its blocks, so that it lands on nothing later.

use std::future::poll_fn;
use std::sync::Arc;

use base::limits::ISCSI_ABORT_TIME_MAX;
use tokio::sync::{Notify, oneshot};
use wire::iscsi::Bhs;
use wire::iscsi::tmf::{Function, TmfOutcome, TmfRequest, TmfResponse};
use wire::scsi::Asc;
use wire::scsi::lun::Lun;

use super::conn::stream::Wire;
use super::operation::Finished;
use super::operation::TaskEntry;
use super::scsi::Done;
use super::session::Session;
use super::state::sessions::Order;
use super::state::tasks::{Mark, Verdict};
use super::unit::Unit;
use engine::transport::buffers::ReplyBuf;

/// What a function waits for on a unit.
struct UnitWait {
    unit: Arc<Unit>,
    /// Tasks that run.
    marks: Vec<Arc<Mark>>,
    /// Ranges that are held.
    ranges: Vec<u64>,
    /// A flush of what was in its write cache.
    flush: Option<oneshot::Receiver<vfs::fs::Result<()>>>,
}

impl UnitWait {
    fn new(unit: &Arc<Unit>, marks: Vec<Arc<Mark>>, ranges: Vec<u64>) -> Self {
        Self { unit: Arc::clone(unit), marks, ranges, flush: None }
    }

    /// Resets the unit; what that has to bring to disk begins at once.
    fn reset(mut self) -> Self {
        let flush = self.unit.reset();
        self.flush = (!flush.is_empty()).then(|| self.unit.threads.flush(flush));
        self
    }
}

/// Waits until all of that is over; false if it takes too long, or a flush has failed.
async fn wait_over(waits: Vec<UnitWait>) -> bool {
    let over = async {
        let mut is_flushed = true;
        for UnitWait { unit, marks, ranges, flush } in waits {
            for mark in &marks {
                mark.wait_over().await;
            }
            poll_fn(|cx| unit.ranges.poll_released(&ranges, cx)).await;
            if let Some(flush) = flush {
                is_flushed &= matches!(flush.await, Ok(Ok(())));
            }
        }
        is_flushed
    };
    tokio::time::timeout(ISCSI_ABORT_TIME_MAX, over).await.unwrap_or(false)
}

impl Session {
    /// Takes a function.
    pub fn manage(&mut self, wire: &mut Wire, request: &TmfRequest, bhs: &Bhs) {
        if !self.may_take(wire, (request.immediate, request.sn.cmd_sn), bhs) {
            return;
        }
        let about = (request.itt, request.immediate);
        match self.begin_function(request) {
            Err(outcome) => self.managed(wire, about, outcome),
            Ok(waits) => {
                let ends = request.function == Function::TARGET_COLD_RESET;
                let (itt, immediate) = about;
                self.waiting.spawn_local(async move {
                    let outcome = match wait_over(waits).await {
                        true => TmfOutcome::COMPLETE,
                        false => TmfOutcome::REJECTED,
                    };
                    Finished::Management { itt, immediate, outcome, ends }
                });
            }
        }
    }

    /// A command is done that ends tasks of others (PREEMPT AND ABORT): it is answered when they
    /// are over, or a stuck disk has held them for too long. They have lost their right to the
    /// unit; that such a disk may still answer changes nothing of it.
    pub fn abort_others(&mut self, itt: u32, done: Done, (buffer, entered): (ReplyBuf, TaskEntry)) {
        let mut done = done;
        let ports = std::mem::take(&mut done.aborts);
        let unit = self.tasks.get(&itt).and_then(|task| task.unit.clone());
        let waits = unit.into_iter().map(|unit| {
            let running = unit.abort(Verdict::TaskAborted, |other| ports.contains(&other.port));
            UnitWait::new(&unit, running, unit.ranges.snapshot())
        });
        let waits: Vec<UnitWait> = waits.collect();
        let clock = self.tasks.get(&itt).map(|task| task.about.clock).unwrap_or_default();
        self.waiting.spawn_local(async move {
            wait_over(waits).await;
            Finished::Command { itt, done, buffer, entered, held: None, clock }
        });
    }

    /// Answers a function.
    pub fn managed(&mut self, wire: &mut Wire, (itt, immediate): (u32, bool), outcome: TmfOutcome) {
        if immediate {
            self.immediate = self.immediate.saturating_sub(1);
        } else {
            self.window.end();
        }
        let sn = self.status_sn();
        wire.put(&TmfResponse { outcome, itt, sn });
    }

    /// Does what needs no waiting, and gives what has to be waited for.
    fn begin_function(&mut self, request: &TmfRequest) -> Result<Vec<UnitWait>, TmfOutcome> {
        let Some(joined) = &mut self.joined else { return Err(TmfOutcome::NOT_SUPPORTED) };
        let own = &self.wake;
        let mut unit = || {
            let found = Lun(request.lun).number().and_then(|number| joined.find(number));
            found.ok_or(TmfOutcome::NO_LUN)
        };
        match request.function {
            Function::ABORT_TASK => {
                let task = self.tasks.get(&request.referenced_tag).ok_or(TmfOutcome::NO_TASK)?;
                let is_over = task.mark.judge(Verdict::Silent);
                let running = if is_over { Vec::new() } else { vec![Arc::clone(&task.mark)] };
                let wait = |unit: &Arc<Unit>| UnitWait::new(unit, running.clone(), Vec::new());
                Ok(task.unit.iter().map(wait).collect())
            }
            Function::ABORT_TASK_SET => {
                let (unit, _) = unit()?;
                let running = unit.abort(Verdict::Silent, |mark| mark.is_of(own));
                Ok(vec![UnitWait::new(&unit, running, Vec::new())])
            }
            Function::CLEAR_TASK_SET => {
                let (unit, nexus) = unit()?;
                let waits = clear(&unit, own);
                unit.establish_all(Asc::COMMANDS_CLEARED, Some(&nexus));
                Ok(vec![waits])
            }
            Function::LOGICAL_UNIT_RESET => {
                let (unit, _) = unit()?;
                Ok(vec![clear(&unit, own).reset()])
            }
            Function::TARGET_WARM_RESET | Function::TARGET_COLD_RESET => {
                let (units, all) = (joined.seen(), joined.target().units().iter().count());
                let is_cold = request.function == Function::TARGET_COLD_RESET;
                if is_cold && units.len() < all {
                    // It would end sessions that use units to which this initiator has no access.
                    return Err(TmfOutcome::NOT_AUTHORIZED);
                }
                // Tasks of all units end before one of them is reset.
                let cleared: Vec<UnitWait> = units.iter().map(|unit| clear(unit, own)).collect();
                let waits = cleared.into_iter().map(UnitWait::reset).collect();
                if is_cold {
                    let name = joined.target().name.clone();
                    self.core.iscsi.sessions.order_all(&name, self.seat.tsih, Order::Replaced);
                }
                Ok(waits)
            }
            Function::TASK_REASSIGN => Err(TmfOutcome::REASSIGN_NOT_SUPPORTED),
            _ => Err(TmfOutcome::NOT_SUPPORTED),
        }
    }
}

/// Ends all tasks of a unit; tasks of other sessions end with a status.
fn clear(unit: &Arc<Unit>, own: &Arc<Notify>) -> UnitWait {
    let mut running = unit.abort(Verdict::Silent, |mark| mark.is_of(own));
    running.extend(unit.abort(Verdict::TaskAborted, |mark| !mark.is_of(own)));
    UnitWait::new(unit, running, unit.ranges.snapshot())
}
