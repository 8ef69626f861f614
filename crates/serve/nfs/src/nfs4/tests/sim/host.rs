//! A simulated client: it keeps to the protocol, repeats unanswered requests, believes the replies,
//! and reclaims after a restart what it believes to hold.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use vfs::locks::{Kind, Share};
use wire::nfs4::{Nfsstat4, SequenceArgs4, Stateid4};

use super::dice::Dice;
use super::model::{Model, Verdict, is_counted};
use super::server::{FILES, LEASE_NS};
use super::wire::{
    BYTES, By, Bytes, Handles, Reply, ReplyContent, Request, Sender, Span, What, message,
};

/// One lane for what concerns the client itself, and one for each of its owners. From 4.1 on each
/// has its slot. In each there is one request at a time.
pub const LANES: usize = 3;
/// Without a reply for this long, a request is repeated.
const REPEAT_NS: u64 = LEASE_NS / 8;

type At = (usize, u32);

#[derive(Debug, Clone)]
struct Belief {
    share: Share,
    bytes: Bytes,
    open: Stateid4,
    lock: Option<Stateid4>,
    /// What it was opened with, one by one.
    opened: Vec<Share>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Confirm([u8; 8]),
    Create(u32),
    Reclaim,
    Complete,
    Ready,
    Leaving,
    Left,
}

#[derive(Default)]
struct Lane {
    pending: Option<(Arc<Request>, u64)>,
    sequence: u32,
    owner: u32,
}

pub struct Host {
    pub index: usize,
    pub minor: u32,
    pub silent_until: u64,
    name: Vec<u8>,
    verifier: u64,
    clientid: u64,
    session: [u8; 16],
    phase: Phase,
    lanes: [Lane; LANES],
    beliefs: BTreeMap<At, Belief>,
    /// What is to be reclaimed still.
    todo: VecDeque<(At, Share, Bytes)>,
    /// The number of each owner's next request (4.0), and the confirmed owners.
    numbers: HashMap<(u32, bool), u32>,
    confirmed: HashSet<u32>,
    owners: u32,
    /// Stateids of former lives, and what was closed.
    dead: Vec<(usize, Stateid4)>,
    spoke: u64,
}

/// Numbers of requests, and the way to the network.
pub struct Post<'a> {
    pub number: &'a mut u64,
    pub out: &'a mut Vec<Arc<Request>>,
    pub handles: &'a Handles,
    pub now: u64,
}

impl Host {
    pub fn new(index: usize, minor: u32) -> Self {
        let mut host = Self {
            index,
            minor,
            silent_until: 0,
            name: format!("host {index}").into_bytes(),
            verifier: 1,
            clientid: 0,
            session: [0; 16],
            phase: Phase::New,
            lanes: Default::default(),
            beliefs: BTreeMap::new(),
            todo: VecDeque::new(),
            numbers: HashMap::new(),
            confirmed: HashSet::new(),
            owners: 0,
            dead: Vec::new(),
            spoke: 0,
        };
        (1..LANES).for_each(|lane| host.new_owner(lane));
        host
    }

    /// A former owner is never heard of again.
    fn new_owner(&mut self, lane: usize) {
        let old = self.lanes[lane].owner;
        self.owners += 1;
        self.lanes[lane].owner = self.owners * LANES as u32 + lane as u32;
        self.forget(|at| at.1 == old);
        self.todo.retain(|(at, ..)| at.1 != old);
    }

    fn forget(&mut self, which: impl Fn(&At) -> bool) {
        let gone: Vec<_> = self.beliefs.extract_if(.., |at, _| which(at)).collect();
        for ((file, _), belief) in gone {
            self.dead.extend(
                [Some(belief.open), belief.lock].into_iter().flatten().map(|id| (file, id)),
            );
        }
        let surplus = self.dead.len().saturating_sub(16);
        self.dead.drain(..surplus);
    }

    /// It has lost its memory.
    pub fn crash(&mut self) {
        self.verifier += 1;
        self.forget(|_| true);
        self.todo.clear();
        self.numbers.clear();
        self.confirmed.clear();
        self.phase = Phase::New;
        for lane in 0..LANES {
            self.lanes[lane].pending = None;
            if lane > 0 {
                self.new_owner(lane);
            }
        }
    }

    /// Whether a restart now would leave it with half of what it had, in a version that cannot
    /// report it: 4.0 has no RECLAIM_COMPLETE.
    pub fn is_half_way(&self) -> bool {
        self.minor == 0 && self.phase == Phase::Reclaim && !self.todo.is_empty()
    }

    /// The server knows it no more: it begins again, and reclaims unless it knows that it is late.
    fn lost(&mut self, keep: bool) {
        for lane in 0..LANES {
            if let Some((request, _)) = self.lanes[lane].pending.take() {
                self.give_up(&request.what);
            }
        }
        let mut all = BTreeMap::new();
        if keep {
            for (at, share, bytes) in self.todo.drain(..) {
                all.insert(at, (share, bytes));
            }
            for (at, belief) in &self.beliefs {
                let (share, bytes) = all.entry(*at).or_default();
                *share = share.union(belief.share);
                bytes.iter_mut().zip(&belief.bytes).for_each(|(b, had)| *b = (*b).max(*had));
            }
        }
        self.todo = all.into_iter().map(|(at, (share, bytes))| (at, share, bytes)).collect();
        self.forget(|_| true);
        self.numbers.clear();
        self.confirmed.clear();
        self.phase = Phase::New;
    }

    /// A request that releases something counts as done when its result is unknown.
    fn give_up(&mut self, what: &What) {
        match what {
            What::Close { file, owner, .. } => self.forget(|at| at == &(*file, *owner)),
            What::Unlock { file, owner, span, .. } => self.lower(*file, *owner, *span, 0),
            // It is refused where the open is for writing alone.
            What::Lock { file, owner, span, kind: Kind::Read, .. }
                if self.beliefs.get(&(*file, *owner)).is_some_and(|b| b.share.access & 1 != 0) =>
            {
                self.lower(*file, *owner, *span, 1);
            }
            What::Downgrade { file, owner, to, .. } => {
                if let Some(belief) = self.beliefs.get_mut(&(*file, *owner)) {
                    belief.share = *to;
                }
            }
            _ => {}
        }
    }

    fn lower(&mut self, file: usize, owner: u32, span: Span, most: u8) {
        if let Some(belief) = self.beliefs.get_mut(&(file, owner)) {
            belief.bytes[span.from..span.to].iter_mut().for_each(|b| *b = (*b).min(most));
        }
    }

    fn number(&self, owner: u32, locks: bool) -> u32 {
        self.numbers.get(&(owner, locks)).copied().unwrap_or(1)
    }

    fn send(&mut self, lane: usize, what: What, post: &mut Post<'_>) {
        let alone = matches!(
            what,
            What::ExchangeId | What::CreateSession(_) | What::DestroySession | What::DestroyClient
        );
        let slot = (self.minor > 0 && !alone).then(|| SequenceArgs4 {
            sessionid: self.session,
            sequenceid: self.lanes[lane].sequence + 1,
            slotid: lane as u32,
            highest_slotid: LANES as u32 - 1,
            cachethis: true,
        });
        *post.number += 1;
        let verifier = self.verifier.to_be_bytes();
        let from =
            Sender { name: &self.name, verifier, clientid: self.clientid, session: self.session };
        let bytes = message(self.minor, slot, &what, &from, post.handles);
        let (number, host, clientid, minor) = (*post.number, self.index, self.clientid, self.minor);
        let request = Request { number, host, clientid, lane, slot, what, minor, bytes };
        let request = Arc::new(request);
        self.lanes[lane].pending = Some((request.clone(), post.now));
        self.spoke = post.now;
        post.out.push(request);
    }

    /// Makes a step: repeats a request, continues its recovery, or works.
    pub fn act(&mut self, dice: &mut Dice, post: &mut Post<'_>) {
        let lane = match self.phase {
            Phase::Ready => dice.roll(LANES as u64) as usize,
            Phase::Reclaim => 1,
            _ => 0,
        };
        if let Some((request, sent)) = &mut self.lanes[lane].pending {
            if post.now - *sent > REPEAT_NS {
                *sent = post.now;
                post.out.push(request.clone());
            }
            return;
        }
        let has_sessions = self.minor > 0;
        let what = match self.phase {
            Phase::New if has_sessions => What::ExchangeId,
            Phase::New => What::SetClientId,
            Phase::Confirm(confirm) => What::Confirm(confirm),
            Phase::Create(sequence) => What::CreateSession(sequence),
            Phase::Reclaim => return self.reclaim(post),
            Phase::Complete => What::Complete,
            Phase::Leaving => What::DestroySession,
            Phase::Left => What::DestroyClient,
            Phase::Ready if lane > 0 => match self.work(lane, dice) {
                Some(what) => what,
                None => return,
            },
            Phase::Ready => {
                let idle = self.lanes.iter().all(|lane| lane.pending.is_none());
                if has_sessions && idle && self.beliefs.is_empty() && dice.roll(8) == 0 {
                    self.phase = Phase::Leaving;
                    return;
                }
                if post.now - self.spoke < LEASE_NS / 4 {
                    return;
                }
                if has_sessions { What::SequenceOnly } else { What::Renew }
            }
        };
        self.send(lane, what, post);
    }

    /// Uses what it should not have any more.
    pub fn probe(&mut self, dice: &mut Dice, post: &mut Post<'_>) {
        let idle = self.lanes[0].pending.is_none();
        if self.phase != Phase::Ready || !idle || self.dead.is_empty() {
            return;
        }
        let (file, id) = self.dead[dice.roll(self.dead.len() as u64) as usize];
        self.send(0, What::Write { file, id }, post);
    }

    fn reclaim(&mut self, post: &mut Post<'_>) {
        let Some((at, share, bytes)) = self.todo.front().copied() else {
            self.phase = if self.minor > 0 { Phase::Complete } else { Phase::Ready };
            return;
        };
        let (file, owner) = at;
        let Some(belief) = self.beliefs.get(&at) else {
            let seqid = self.number(owner, false);
            return self.send(1, What::Open { file, owner, seqid, share, reclaim: true }, post);
        };
        if let Some(confirm) = self.confirmation(file, owner) {
            return self.send(1, confirm, post);
        }
        let Some(from) = bytes.iter().position(|byte| *byte != 0) else {
            self.todo.pop_front();
            return;
        };
        let run = bytes[from..].iter().take_while(|byte| **byte == bytes[from]).count();
        let kind = if bytes[from] == 1 { Kind::Read } else { Kind::Write };
        let (span, by) = (Span { from, to: from + run }, self.by(belief, owner));
        self.send(1, What::Lock { file, owner, span, kind, reclaim: true, by }, post);
    }

    fn by(&self, belief: &Belief, owner: u32) -> By {
        match belief.lock {
            Some(id) => By::Lock(id, self.number(owner, true)),
            None => By::Open(belief.open, self.number(owner, false), self.number(owner, true)),
        }
    }

    fn confirmation(&self, file: usize, owner: u32) -> Option<What> {
        if self.minor > 0 || self.confirmed.contains(&owner) {
            return None;
        }
        let id = self.beliefs.get(&(file, owner))?.open;
        Some(What::OpenConfirm { file, owner, id, seqid: self.number(owner, false) })
    }

    fn work(&self, lane: usize, dice: &mut Dice) -> Option<What> {
        let owner = self.lanes[lane].owner;
        if let Some(confirm) = (0..FILES).find_map(|file| self.confirmation(file, owner)) {
            return Some(confirm);
        }
        let file = dice.roll(FILES as u64) as usize;
        let from = dice.roll(BYTES as u64) as usize;
        let to = from + 1 + dice.roll((BYTES - from) as u64) as usize;
        let span = Span { from, to };
        let kind = if dice.roll(2) == 0 { Kind::Read } else { Kind::Write };
        let deny = if dice.roll(4) == 0 { dice.roll(4) as u8 } else { 0 };
        let share = Share { access: 1 + dice.roll(3) as u8, deny };
        let seqid = self.number(owner, false);
        let open = What::Open { file, owner, seqid, share, reclaim: false };
        let what = dice.roll(16);
        let Some(belief) = self.beliefs.get(&(file, owner)) else {
            return Some(if what == 0 { What::Test { file, owner, span, kind } } else { open });
        };
        let held = belief.bytes != [0; BYTES];
        let id = belief.open;
        Some(match (what, belief.lock) {
            (0, _) => open,
            (1, _) => What::Test { file, owner, span, kind },
            (2, _) => What::Write { file, id: belief.lock.unwrap_or(id) },
            (3, _) if !held => {
                let to = belief.opened[dice.roll(belief.opened.len() as u64) as usize];
                What::Downgrade { file, owner, id, seqid, to }
            }
            (4 | 5, _) => What::Close { file, owner, id, seqid },
            (6..=9, Some(id)) => {
                What::Unlock { file, owner, id, seqid: self.number(owner, true), span }
            }
            (10, Some(id)) if !held && self.minor > 0 => What::Free { id },
            _ => What::Lock { file, owner, span, kind, reclaim: false, by: self.by(belief, owner) },
        })
    }

    /// A reply has arrived. One without a pending request is ignored.
    pub fn receive(&mut self, number: u64, reply: &Reply) -> Verdict {
        let waits = |lane: &Lane| lane.pending.as_ref().is_some_and(|p| p.0.number == number);
        let Some(lane) = self.lanes.iter().position(waits) else { return Ok(()) };
        let Some((request, _)) = self.lanes[lane].pending.take() else { return Ok(()) };
        if reply.in_slot {
            self.lanes[lane].sequence += 1;
        }
        if self.minor == 0 && is_counted(reply.status) {
            for at in request.what.sequences() {
                let next = self.number(at.0, at.1) + 1;
                self.numbers.insert(at, next);
            }
        }
        match reply.status {
            // An old stateid may have any error, but must not be valid, which the model checks.
            _ if lane == 0 && matches!(request.what, What::Write { .. }) => {}
            Nfsstat4::BADSESSION if self.phase == Phase::Leaving => self.phase = Phase::Left,
            Nfsstat4::STALE_CLIENTID | Nfsstat4::STALE_STATEID | Nfsstat4::BADSESSION => {
                self.give_up(&request.what);
                self.lost(true);
            }
            Nfsstat4::EXPIRED => self.lost(false),
            Nfsstat4::OK => self.succeeded(&request, reply)?,
            status => return self.refused(&request, status),
        }
        Ok(())
    }

    fn refused(&mut self, request: &Request, status: Nfsstat4) -> Verdict {
        let reclaiming = self.phase == Phase::Reclaim;
        let unconfirmed = |owner| self.minor == 0 && !self.confirmed.contains(owner);
        let lane = request.lane;
        match (&request.what, status) {
            (What::Open { owner, .. } | What::OpenConfirm { owner, .. }, _)
                if unconfirmed(owner) =>
            {
                // Whatever it was: another owner has no past.
                let owner = *owner;
                self.forget(|at| at.1 == owner);
                self.todo.retain(|(at, ..)| at.1 != owner);
                if let Some(lane) = (1..LANES).find(|n| self.lanes[*n].owner == owner) {
                    self.new_owner(lane);
                }
            }
            (What::Open { .. }, Nfsstat4::SHARE_DENIED | Nfsstat4::NO_GRACE) if reclaiming => {
                self.todo.pop_front();
            }
            (What::Lock { span, .. }, Nfsstat4::NO_GRACE | Nfsstat4::DENIED) if reclaiming => {
                if let Some((_, _, bytes)) = self.todo.front_mut() {
                    span.set(bytes, 0);
                }
            }
            (What::Open { .. }, Nfsstat4::SHARE_DENIED | Nfsstat4::GRACE)
            | (What::Lock { .. }, Nfsstat4::DENIED | Nfsstat4::OPENMODE | Nfsstat4::GRACE)
            | (What::Test { .. }, Nfsstat4::DENIED | Nfsstat4::GRACE)
            | (What::Write { .. }, Nfsstat4::OPENMODE) => {}
            (what, status) => {
                return Err(format!("host {}, lane {lane}: {status:?} for {what:?}", self.index));
            }
        }
        Ok(())
    }

    fn succeeded(&mut self, request: &Request, reply: &Reply) -> Verdict {
        match (&request.what, reply.content) {
            (What::SetClientId, ReplyContent::Client(id, confirm)) => {
                (self.clientid, self.phase) = (id, Phase::Confirm(confirm));
            }
            (What::ExchangeId, ReplyContent::Exchanged { clientid, sequence, .. }) => {
                (self.clientid, self.phase) = (clientid, Phase::Create(sequence));
            }
            (What::Confirm(_), _) => self.phase = Phase::Reclaim,
            (What::CreateSession(_), ReplyContent::Session(session)) => {
                self.session = session;
                self.lanes.iter_mut().for_each(|lane| lane.sequence = 0);
                self.phase = Phase::Reclaim;
            }
            (What::Complete, _) => self.phase = Phase::Ready,
            (What::DestroySession, _) => self.phase = Phase::Left,
            (What::DestroyClient, _) => self.phase = Phase::New,
            (What::Open { file, owner, share, .. }, ReplyContent::Opened(id, confirm)) => {
                let fresh = Belief {
                    share: *share,
                    bytes: [0; BYTES],
                    open: id,
                    lock: None,
                    opened: Vec::new(),
                };
                let belief = self.beliefs.entry((*file, *owner)).or_insert(fresh);
                belief.share = belief.share.union(*share);
                belief.opened.push(*share);
                belief.open = id;
                if !confirm {
                    self.confirmed.insert(*owner);
                }
            }
            (What::OpenConfirm { file, owner, .. }, ReplyContent::State(id)) => {
                self.confirmed.insert(*owner);
                self.believe(*file, *owner)?.open = id;
            }
            (What::Downgrade { file, owner, to, .. }, ReplyContent::State(id)) => {
                let belief = self.believe(*file, *owner)?;
                (belief.share, belief.open) = (*to, id);
                belief.opened.retain(|share| to.covers(*share));
            }
            (What::Close { file, owner, .. }, _) => self.forget(|at| at == &(*file, *owner)),
            (What::Lock { file, owner, span, kind, reclaim, .. }, ReplyContent::State(id)) => {
                let belief = self.believe(*file, *owner)?;
                belief.lock = Some(id);
                span.set(&mut belief.bytes, if *kind == Kind::Read { 1 } else { 2 });
                if let (true, Some((_, _, bytes))) = (*reclaim, self.todo.front_mut()) {
                    span.set(bytes, 0);
                }
            }
            (What::Unlock { file, owner, span, .. }, ReplyContent::State(id)) => {
                let belief = self.believe(*file, *owner)?;
                belief.lock = Some(id);
                span.set(&mut belief.bytes, 0);
            }
            (What::Free { id }, _) => {
                self.beliefs
                    .values_mut()
                    .for_each(|b| b.lock = b.lock.filter(|l| l.other != id.other));
            }
            _ => {}
        }
        Ok(())
    }

    fn believe(&mut self, file: usize, owner: u32) -> Result<&mut Belief, String> {
        self.beliefs.get_mut(&(file, owner)).ok_or_else(|| "it was not open".to_owned())
    }

    /// What was granted to it and not lost, it holds.
    pub fn check(&self, model: &Model) -> Verdict {
        if self.phase != Phase::Ready || !model.lives(self.clientid) {
            return Ok(());
        }
        for (at, belief) in &self.beliefs {
            let busy = self.lanes.iter().any(|l| l.owner == at.1 && l.pending.is_some());
            let is_sure = self.minor > 0 || self.confirmed.contains(&at.1);
            let has = model.holds(self.clientid, *at);
            if !busy && is_sure && has != Some((belief.share, belief.bytes)) {
                return Err(format!(
                    "host {} believes {belief:?} of {at:?}, has {has:?}",
                    self.index
                ));
            }
        }
        Ok(())
    }
}
