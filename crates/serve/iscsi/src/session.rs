//! A session: its numbers, its tasks, and what is done with each when it ends.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::{
    ISCSI_COMMANDS_MAX, ISCSI_LOGOUT_TIME_MAX, ISCSI_NOP_AFTER, ISCSI_NOP_TIME_MAX,
    ISCSI_TRANSFER_MAX,
};
use probe::op::{OpRecord, Protocol};
use probe::phases::PhaseClock;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use vfs::lun::reservations::Port;
use wire::iscsi::async_message::{AsyncEvent, AsyncMessage};
use wire::iscsi::negotiate::Parameters;
use wire::iscsi::reject::{Reject, RejectReason};
use wire::iscsi::{Bhs, Digests, RESERVED_TAG, Serial, TargetSn};

use super::conn::stream::{Wire, header};
use super::core::Core;
use super::exchange::Exchange;
use super::operation::{Finished, TaskEntry};
use super::scsi::Done;
use super::state::gather::{Bounds, Gather};
use super::state::sessions::{Order, SessionPermit};
use super::state::tasks::{Mark, Verdict};
use super::state::window::Window;
use super::targets::{Joined, Target};
use super::unit::Unit;
use super::{scsi, status};
use engine::exec::{CompletionQueue, Span};
use engine::transport::budget::ReservedBytes;
use engine::transport::buffers::ReplyBuf;

/// What a session begins with.
pub(super) struct Start {
    /// The initiator port.
    pub port: Port,
    /// The target; none for discovery.
    pub target: Option<Arc<Target>>,
    /// Number of its connection (CID).
    pub cid: u16,
    /// What was agreed on.
    pub parameters: Parameters,
    /// Number of its first command.
    pub first: Serial,
    /// Number of its first status.
    pub stat_sn: Serial,
    /// The address of the initiator, and that of the portal it connected to.
    pub addresses: (SocketAddr, SocketAddr),
}

/// What an answer needs to know of its command.
#[derive(Debug, Clone, Copy)]
pub(super) struct About {
    /// Initiator task tag.
    pub itt: u32,
    /// It is not of the window.
    pub immediate: bool,
    /// The initiator takes data.
    pub read: bool,
    /// Bytes that the initiator sends or takes.
    pub expected: u32,
    /// R2Ts that were sent for it.
    pub asked: u32,
    /// Number of its unit.
    pub lun: Option<u16>,
    /// Its record for the statistics.
    pub record: OpRecord,
    /// When it came.
    pub arrived_ns: u64,
    /// What its time went to so far.
    pub clock: PhaseClock,
}

impl About {
    /// Most bytes that are sent in reply.
    pub fn reply_max(&self) -> usize {
        if self.read { (self.expected as usize).min(ISCSI_TRANSFER_MAX) } else { 0 }
    }
}

/// A command with data in flight, or one that runs where it may block.
pub(super) struct Task {
    pub about: About,
    pub mark: Arc<Mark>,
    /// Its unit; none for one that fails in any case.
    pub unit: Option<Arc<Unit>>,
    pub stage: Stage,
}

/// How far a task is.
pub(super) enum Stage {
    /// Its data comes.
    Gathering {
        gather: Box<Gather>,
        /// What is then done; a failure is reported when no more unsolicited data comes.
        request: Box<Result<scsi::Request, Done>>,
        lun: u64,
        /// The memory of its data: all of it, or of what comes unasked while it waits for the rest.
        held: ReservedBytes,
        /// Whether all of that is reserved, so that data may be asked for.
        is_admitted: bool,
        /// Its place among the tasks of its unit.
        entered: Option<TaskEntry>,
    },
    /// It waits for memory for what it will have read.
    Waiting {
        request: Box<scsi::Request>,
        /// Its place among the tasks of its unit.
        entered: TaskEntry,
    },
    /// The engine has it, and holds this number of bytes for it.
    Running(usize),
}

/// What a session waits for.
pub(super) enum Event {
    /// Something has ended, or was aborted.
    Finished,
    /// Nothing has been heard of the initiator for a while.
    Quiet,
}

/// A session in its full feature phase.
pub(super) struct Session {
    pub core: Rc<Core>,
    /// Before `seat`: the next session to take that finds nothing that this one had of its units.
    pub joined: Option<Joined>,
    pub seat: SessionPermit,
    /// Number of its connection (CID).
    pub cid: u16,
    pub parameters: Parameters,
    pub bounds: Bounds,
    pub window: Window,
    stat_sn: Serial,
    pub tasks: HashMap<u32, Task>,
    /// Tags of tasks that wait for memory, in the order in which they came.
    pub line: VecDeque<u32>,
    pub immediate: usize,
    /// Commands that the engine has completed.
    pub completions: Arc<CompletionQueue<Finished>>,
    /// What waits until tasks of others are over.
    pub waiting: JoinSet<Finished>,
    ready: Vec<Finished>,
    pub wake: Arc<Notify>,
    next_tag: u32,
    pub client: u32,
    /// Number of initiator and target in statistics.
    nexus: u32,
    pub addresses: (SocketAddr, SocketAddr),
    /// Name of the initiator.
    pub initiator: String,
    /// Text to continue when the initiator requests more.
    pub text: Option<Exchange>,
    heard_ns: u64,
    pinged_ns: Option<u64>,
    /// It ends when everything was sent.
    pub leaves: bool,
    /// When the last command of this turn was tried.
    pub now_ns: u64,
}

impl Session {
    pub fn new(core: &Rc<Core>, seat: SessionPermit, start: Start) -> Self {
        let Start { port, target, cid, parameters, first, stat_sn, addresses } = start;
        let client = core.engine.hub.clients().intern(addresses.0.ip());
        let name = target.as_ref().map_or("", |target| target.name.as_str());
        let nexus = core.engine.hub.nexuses().intern(&port.name, name);
        Self {
            core: Rc::clone(core),
            seat,
            cid,
            initiator: port.name.clone(),
            joined: target.map(|target| Joined::new(target, port, addresses.0.ip())),
            bounds: Bounds::from(&parameters),
            parameters,
            window: Window::new(first, ISCSI_COMMANDS_MAX),
            stat_sn,
            tasks: HashMap::new(),
            line: VecDeque::new(),
            immediate: 0,
            completions: core.completion_queue(),
            waiting: JoinSet::new(),
            ready: Vec::new(),
            wake: Arc::default(),
            next_tag: 0,
            client,
            nexus,
            addresses,
            text: None,
            heard_ns: monotonic_ns(),
            pinged_ns: None,
            leaves: false,
            now_ns: 0,
        }
    }

    /// Its number.
    pub fn tsih(&self) -> u16 {
        self.seat.tsih
    }

    /// Orders from outside its connection.
    pub fn order(&self) -> watch::Receiver<Order> {
        self.seat.order.clone()
    }

    /// Digests of the connection.
    pub fn digests(&self) -> Digests {
        self.parameters.digests
    }

    /// Numbers of a PDU that has no status.
    pub fn sn(&self) -> TargetSn {
        TargetSn {
            stat_sn: self.stat_sn,
            exp_cmd_sn: self.window.expected(),
            max_cmd_sn: self.window.last(),
        }
    }

    /// Numbers of a PDU with a status, which takes one.
    pub fn status_sn(&mut self) -> TargetSn {
        let sn = self.sn();
        self.stat_sn = self.stat_sn.next();
        sn
    }

    /// A target transfer tag that is not in use.
    pub fn tag(&mut self) -> u32 {
        self.next_tag = self.next_tag.wrapping_add(1);
        if self.next_tag == RESERVED_TAG {
            self.next_tag = 0;
        }
        self.next_tag
    }

    /// Whether the initiator owes data of a command.
    pub fn awaits_data(&self) -> bool {
        let awaits = |task: &Task| match &task.stage {
            Stage::Gathering { gather, .. } => gather.expects_data(),
            _ => false,
        };
        self.tasks.values().any(awaits)
    }

    /// The initiator has been heard of.
    pub fn note_received(&mut self) {
        self.heard_ns = monotonic_ns();
        self.pinged_ns = None;
    }

    /// When a ping was sent that is not answered, if one was.
    pub fn pinged(&mut self) -> Option<u64> {
        self.pinged_ns.replace(monotonic_ns())
    }

    /// A header or what it announced made no sense.
    pub fn count_digest_error(&self) {
        self.core.iscsi.digest_errors.fetch_add(1, Relaxed);
    }

    /// Waits for something to happen.
    pub async fn event(&mut self) -> Event {
        if !self.ready.is_empty() {
            return Event::Finished;
        }
        let (since, patience) = match self.pinged_ns {
            None => (self.heard_ns, ISCSI_NOP_AFTER),
            Some(pinged) => (pinged, ISCSI_NOP_TIME_MAX),
        };
        let past = Duration::from_nanos(monotonic_ns().saturating_sub(since));
        let waits = !self.waiting.is_empty();
        // That the service ends is heard by the connection's own ear.
        let completed = poll_fn(|cx| self.completions.poll(cx, true));
        tokio::select! {
            Some(done) = self.waiting.join_next(), if waits => {
                self.core.engine.budgets.count_panic(&done);
                self.ready.extend(done);
                Event::Finished
            }
            _ = completed => Event::Finished,
            () = self.wake.notified() => Event::Finished,
            () = tokio::time::sleep(patience.saturating_sub(past)) => Event::Quiet,
        }
    }

    /// Answers what has ended.
    pub fn collect(&mut self, wire: &mut Wire) {
        while let Some(done) = self.waiting.try_join_next() {
            self.core.engine.budgets.count_panic(&done);
            self.ready.extend(done);
        }
        self.completions.drain(&mut self.ready);
        for finished in std::mem::take(&mut self.ready) {
            match finished {
                // One that was aborted before it began has been forgotten, and its tag may be that
                // of another one by now.
                Finished::Command { itt, entered, .. } if !self.is_task(itt, &entered) => {}
                Finished::Command { itt, done, buffer, entered, held, clock }
                    if done.aborts.is_empty() =>
                {
                    self.set_clock(itt, clock);
                    drop(entered);
                    self.ended(wire, itt, done, buffer);
                    drop(held);
                }
                Finished::Command { itt, done, buffer, entered, clock, .. } => {
                    self.set_clock(itt, clock);
                    self.abort_others(itt, done, (buffer, entered));
                }
                Finished::Management { itt, immediate, outcome, ends } => {
                    self.managed(wire, (itt, immediate), outcome);
                    self.leaves |= ends;
                }
            }
        }
        self.sweep(wire);
        self.continue_waiting(wire);
    }

    /// What has run elsewhere comes back with its clock.
    fn set_clock(&mut self, itt: u32, clock: PhaseClock) {
        if let Some(task) = self.tasks.get_mut(&itt) {
            task.about.clock = clock;
        }
    }

    fn is_task(&self, itt: u32, entered: &TaskEntry) -> bool {
        self.tasks.get(&itt).is_some_and(|task| entered.is_of(&task.mark))
    }

    /// Ends commands that were aborted before they began: a disk that is stuck may keep them from
    /// it for good.
    fn sweep(&mut self, wire: &mut Wire) {
        let is_dead = |task: &Task| {
            task.mark.verdict().is_some()
                && match task.stage {
                    Stage::Gathering { .. } | Stage::Waiting { .. } => true,
                    Stage::Running(_) => task.mark.is_over(),
                }
        };
        let dead: Vec<u32> =
            self.tasks.iter().filter(|(_, task)| is_dead(task)).map(|(itt, _)| *itt).collect();
        for itt in dead {
            self.ended(wire, itt, Done::good(0), ReplyBuf::default());
        }
    }

    /// A task has ended: it is answered, unless it was aborted.
    pub fn ended(&mut self, wire: &mut Wire, itt: u32, done: Done, buffer: ReplyBuf) {
        let Some(mut task) = self.tasks.remove(&itt) else { return };
        if let Stage::Gathering { gather, .. } = &task.stage {
            task.about.asked = gather.asked();
        }
        self.line.retain(|waiting| *waiting != itt);
        // It has no further effect now, and no verdict any more.
        task.mark.end();
        match task.mark.verdict() {
            None => self.respond(wire, &task.about, &done, buffer),
            Some(verdict) => self.aborted(wire, &task.about, verdict),
        }
    }

    /// The end of a task that was aborted.
    pub fn aborted(&mut self, wire: &mut Wire, about: &About, verdict: Verdict) {
        match verdict {
            Verdict::TaskAborted => {
                let status = wire::scsi::Status::TASK_ABORTED;
                let done = Done { status, ..Done::good(0) };
                self.respond(wire, about, &done, ReplyBuf::default());
            }
            Verdict::Silent => self.forget(about),
        }
    }

    /// A command has come to its end, answered or not.
    pub fn forget(&mut self, about: &About) {
        if about.immediate {
            self.immediate = self.immediate.saturating_sub(1);
        } else {
            self.window.end();
        }
    }

    /// Writes down how a command went, once the response that was put last is sent.
    pub fn measure(&self, wire: &mut Wire, about: &About, done: &Done, moved: usize) {
        let record = OpRecord {
            status: status::number(done.status, done.sense.as_ref()),
            bytes: u32::try_from(moved).unwrap_or(u32::MAX),
            ..about.record
        };
        wire.ends(Span { facts: record, arrived_ns: about.arrived_ns, clock: about.clock });
    }

    /// The record of a command that begins.
    pub fn record(&self, opcode: u8) -> OpRecord {
        OpRecord {
            client: self.client,
            user: self.nexus,
            share: probe::names::NO_SHARE,
            protocol: Protocol::Iscsi as u8,
            op: super::ops::number(opcode),
            core: self.core.id,
            ..OpRecord::default()
        }
    }

    /// Refuses a PDU.
    pub fn reject(&mut self, wire: &mut Wire, reason: RejectReason, bhs: &Bhs) {
        let sn = self.status_sn();
        wire.put(&Reject { reason, sn, data_sn: Serial(0), header: header(bhs) });
    }

    /// Asks the initiator to log out.
    pub fn request_logout(&mut self, wire: &mut Wire) {
        let seconds = u16::try_from(ISCSI_LOGOUT_TIME_MAX.as_secs()).unwrap_or(u16::MAX);
        let sn = self.status_sn();
        wire.put(&AsyncMessage {
            lun: 0,
            sn,
            event: AsyncEvent::LOGOUT,
            vendor_code: 0,
            parameters: [0, 0, seconds],
            sense: &[],
            event_data: &[],
        });
    }

    /// It has ended: what has not begun never does.
    pub fn end(&mut self) {
        for task in self.tasks.values() {
            task.mark.judge(Verdict::Silent);
        }
        // Those that wait for their data leave their unit, those that run do so when they end.
        self.tasks.clear();
        self.waiting.detach_all();
    }
}
