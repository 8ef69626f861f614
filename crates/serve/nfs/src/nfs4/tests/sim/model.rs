//! The invariants: the simplest model of the state that clients hold, derived from the replies
//! alone, and the replies that it permits.

use std::collections::{BTreeMap, HashMap, HashSet};

use vfs::locks::{Kind, Share};
use wire::nfs4::{Nfsstat4, Stateid4};

use super::server::{LEASE_NS, Table};
use super::wire::{BYTES, By, Bytes, Reply, ReplyContent, Request, Span, What};

/// What an owner has of a file.
type Hold = (Share, Bytes);
/// What one client has, by file and owner.
type Holds = BTreeMap<(usize, u32), Hold>;

/// A confirmed client.
#[derive(Default)]
struct Holder {
    host: usize,
    has_sessions: bool,
    /// Heard of for certain, and perhaps.
    heard: (u64, u64),
    complete: bool,
    holds: Holds,
    confirmed: HashSet<u32>,
}

/// What a host had when the server ended.
#[derive(Default)]
struct Before {
    holds: Holds,
    /// It is on record for certain.
    sure: bool,
    done: bool,
}

/// A stateid that works.
struct StateidEntry {
    clientid: u64,
    at: (usize, u32),
    is_lock: bool,
    seqid: u32,
}

/// One request that the server has done.
pub struct Observation<'a> {
    pub request: &'a Request,
    pub reply: Reply,
    pub bytes: &'a [u8],
    pub before: &'a Table,
    pub after: &'a Table,
    pub clients: Vec<u64>,
    pub now: u64,
}

#[derive(Default)]
pub struct Model {
    clients: HashMap<u64, Holder>,
    states: HashMap<[u8; 12], StateidEntry>,
    before: HashMap<usize, Before>,
    grace_until: u64,
    /// The grace period has been ended for certain: until then it may be longer.
    over: bool,
    /// The first reply to each request since the start.
    replies: HashMap<u64, Vec<u8>>,
    /// The last request of each slot, and of each owner of 4.0.
    last: HashMap<(Vec<u8>, u32, bool), u64>,
}

macro_rules! must {
    ($holds:expr, $($what:tt)+) => {
        if !$holds { return Err(format!($($what)+)); }
    };
}

/// An error describes how the server violates the model.
pub type Verdict = Result<(), String>;

fn weight(kind: Kind) -> u8 {
    if kind == Kind::Read { 1 } else { 2 }
}

fn sequences(request: &Request) -> Vec<(Vec<u8>, u32, bool)> {
    match &request.slot {
        Some(slot) => vec![(slot.sessionid.to_vec(), slot.slotid, false)],
        None => {
            let id = request.clientid.to_be_bytes().to_vec();
            let all = request.what.sequences().into_iter();
            all.map(|(owner, locks)| (id.clone(), owner, locks)).collect()
        }
    }
}

/// Statuses that leave an owner's number where it was (RFC 7530 §9.1.7).
pub fn is_counted(status: Nfsstat4) -> bool {
    ![
        Nfsstat4::STALE_CLIENTID,
        Nfsstat4::STALE_STATEID,
        Nfsstat4::BAD_STATEID,
        Nfsstat4::BAD_SEQID,
        Nfsstat4::EXPIRED,
    ]
    .contains(&status)
}

impl Model {
    /// The server has restarted.
    pub fn restarted(&mut self, now: u64, grace_until: u64) {
        let in_time = now < self.grace_until;
        self.before.retain(|_, before| !self.over && !before.done);
        self.before.values_mut().for_each(|before| before.sure &= in_time);
        for (_, client) in self.clients.drain() {
            let entry = self.before.entry(client.host).or_default();
            // Clients that hold state are on record; from 4.1 on that is certain only after
            // RECLAIM_COMPLETE.
            let recorded = !client.holds.is_empty() && (client.complete || !client.has_sessions);
            entry.sure |= recorded;
            for (at, hold) in client.holds {
                let had = entry.holds.entry(at).or_default();
                had.0 = had.0.union(hold.0);
                had.1.iter_mut().zip(&hold.1).for_each(|(b, now)| *b = (*b).max(*now));
            }
        }
        self.states.clear();
        self.replies.clear();
        self.last.clear();
        (self.grace_until, self.over) = (grace_until, false);
    }

    /// Clients that are gone without a request.
    pub fn swept(&mut self, clients: &[u64], now: u64) -> Verdict {
        self.over |= now >= self.grace_until;
        let gone = self.clients.keys().find(|id| !clients.contains(id));
        must!(gone.is_none(), "the sweep has ended client {gone:x?}");
        Ok(())
    }

    /// Looks at a request that was done and at its reply.
    pub fn observe(&mut self, seen: &Observation<'_>) -> Verdict {
        self.deaths(seen)?;
        self.note_contact(seen);
        let known = self.clients.contains_key(&seen.request.clientid);
        let first = self.replies.get(&seen.request.number);
        let same = first.map(|first| first == seen.bytes);
        match same {
            Some(same) if !self.may_start_again(seen) => self.repeated(seen, same, known)?,
            _ => {
                self.replies.insert(seen.request.number, seen.bytes.to_vec());
                let counts = match seen.request.slot {
                    Some(_) => seen.reply.in_slot,
                    None => is_counted(seen.reply.status),
                };
                if counts {
                    for at in sequences(seen.request) {
                        self.last.insert(at, seen.request.number);
                    }
                }
                self.done(seen)?;
            }
        }
        let mine = self.table();
        must!(mine == *seen.after, "the table holds {:x?}, not {mine:x?}", seen.after);
        Ok(())
    }

    /// An unconfirmed owner of 4.0 may start again, even by an old request.
    fn may_start_again(&self, seen: &Observation<'_>) -> bool {
        let What::Open { owner, .. } = seen.request.what else { return false };
        let confirmed =
            self.clients.get(&seen.request.clientid).is_some_and(|c| c.confirmed.contains(&owner));
        seen.request.slot.is_none() && !confirmed && !self.is_last(seen.request)
    }

    fn is_last(&self, request: &Request) -> bool {
        let all = sequences(request);
        !all.is_empty() && all.iter().all(|at| self.last.get(at) == Some(&request.number))
    }

    fn repeated(&self, seen: &Observation<'_>, same: bool, known: bool) -> Verdict {
        must!(seen.before == seen.after || seen.request.what.ends_others(), "done twice");
        let sequenced = !sequences(seen.request).is_empty();
        let is_last = self.is_last(seen.request);
        // A session that was destroyed remembers nothing.
        let lives = known && seen.reply.status != Nfsstat4::BADSESSION;
        // Nor does a lock owner with a stateid that ended with a CLOSE, which came later.
        let by_lock = match seen.request.what {
            What::Lock { by: By::Lock(id, _), .. } | What::Unlock { id, .. } => Some(id),
            _ => None,
        };
        let gone = by_lock.is_some_and(|id| !self.states.contains_key(&id.other));
        let lives = lives && !(gone && seen.reply.status == Nfsstat4::BAD_STATEID);
        must!(!is_last || !lives || same, "repeated, and another reply: {:?}", seen.reply);
        must!(!sequenced || same || !seen.reply.status.is_ok(), "an old one is done again");
        if matches!(seen.request.what, What::CreateSession(_)) {
            must!(same || !seen.reply.status.is_ok(), "a second session");
        }
        Ok(())
    }

    /// Clients that are gone must have had to go.
    fn deaths(&mut self, seen: &Observation<'_>) -> Verdict {
        let gone: Vec<u64> =
            self.clients.keys().filter(|id| !seen.clients.contains(id)).copied().collect();
        let ok = seen.reply.status.is_ok();
        for id in gone {
            let Some(client) = self.clients.remove(&id) else { continue };
            let lapsed = seen.now.saturating_sub(client.heard.0) > LEASE_NS;
            let request = seen.request;
            let explained = match request.what {
                What::Confirm(_) | What::CreateSession(_) => {
                    ok && client.host == request.host && id != request.clientid
                }
                What::DestroyClient => ok && id == request.clientid && client.holds.is_empty(),
                _ => lapsed && request.what.ends_others(),
            };
            must!(explained, "client {id:x} of host {} has lost all it held", client.host);
            self.states.retain(|_, live| live.clientid != id);
        }
        for id in &seen.clients {
            let comes = ok && *id == seen.request.clientid;
            let is_new = !self.clients.contains_key(id);
            let how = matches!(seen.request.what, What::Confirm(_) | What::CreateSession(_));
            must!(!is_new || (comes && how), "client {id:x} has come from nowhere");
            if is_new {
                let (host, has_sessions) = (seen.request.host, seen.request.minor > 0);
                let holder = Holder { host, has_sessions, ..Holder::default() };
                self.clients.insert(*id, holder);
            }
        }
        Ok(())
    }

    fn note_contact(&mut self, seen: &Observation<'_>) {
        let Some(client) = self.clients.get_mut(&seen.request.clientid) else { return };
        client.heard.1 = seen.now;
        let renews = match seen.request.what {
            What::ExchangeId | What::SetClientId | What::DestroySession => false,
            _ => seen.reply.status.is_ok() || seen.reply.in_slot,
        };
        if renews {
            client.heard.0 = seen.now;
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        for (id, client) in &self.clients {
            let rows = client.holds.iter();
            table.extend(rows.map(|((file, owner), hold)| ((*file, *id, *owner), *hold)));
        }
        table
    }

    /// The clients with holds that conflict with this, each with whether its lease has surely
    /// expired.
    fn conflicts(
        &self,
        file: usize,
        own: (u64, u32),
        now: u64,
        meets: impl Fn(&Hold, bool) -> bool,
    ) -> Vec<(u64, bool)> {
        let mut found = Vec::new();
        for (id, client) in &self.clients {
            let surely_lapsed = now.saturating_sub(client.heard.1) > LEASE_NS;
            let here = client.holds.iter().filter(|((f, _), _)| *f == file);
            let met = here.filter(|((_, owner), hold)| meets(hold, (*id, *owner) == own));
            found.extend(met.map(|_| (*id, surely_lapsed)));
        }
        found
    }

    /// The client named in a refusal must hold something, and its lease must be valid.
    fn refused(&self, found: &[(u64, bool)], named: Option<u64>) -> Verdict {
        must!(!found.is_empty(), "refused, and nobody is in the way");
        must!(found.iter().any(|(_, lapsed)| !lapsed), "refused for one who went away");
        must!(named.is_none_or(|id| found.iter().any(|f| f.0 == id)), "another is in the way");
        Ok(())
    }

    /// What new state and reclaims must wait for.
    fn gate(
        &mut self,
        seen: &Observation<'_>,
        reclaim: bool,
        item: Option<(&Hold, (usize, u32))>,
    ) -> Verdict {
        let request = seen.request;
        let Some(client) = self.clients.get(&request.clientid) else {
            return Err("given to a client that is not there".into());
        };
        let before = self.before.get(&client.host);
        let time = seen.now < self.grace_until;
        if !reclaim {
            let waited_for = self.before.values().any(|b| b.sure && !b.done);
            must!(!(time && waited_for), "new state in the grace period");
            must!(!client.has_sessions || client.complete, "new state before RECLAIM_COMPLETE");
            self.over = true;
            return Ok(());
        }
        let over = self.over || (!time && matches!(request.what, What::Open { .. }));
        must!(!over, "reclaimed after the grace period");
        must!(!client.complete, "reclaimed after RECLAIM_COMPLETE");
        if let (Some((hold, at)), true) = (item, true) {
            let had = before.is_some_and(|b| covers(b, at, hold));
            must!(had, "reclaimed what it had not: {hold:?} of {at:?}");
        }
        Ok(())
    }

    /// A refusal of new state, or of a reclaim, because of the grace period.
    fn gated(
        &self,
        seen: &Observation<'_>,
        reclaim: bool,
        item: &Hold,
        at: (usize, u32),
    ) -> Verdict {
        let Some(client) = self.clients.get(&seen.request.clientid) else { return Ok(()) };
        let time = seen.now < self.grace_until;
        if !reclaim {
            let on = !self.over && (time || !matches!(seen.request.what, What::Open { .. }));
            let due = on || (client.has_sessions && !client.complete);
            must!(seen.reply.status != Nfsstat4::GRACE || due, "grace without an end");
            must!(seen.reply.status != Nfsstat4::NO_GRACE, "that was no reclaim");
            return Ok(());
        }
        let right = self.before.get(&client.host).is_some_and(|b| b.sure && covers(b, at, item));
        let due = right && time && !client.complete;
        must!(!due, "it came back in time, and may not have {item:?} of {at:?}");
        Ok(())
    }

    /// Uses of stateids: only of those that are there, in their last version.
    fn uses(&self, seen: &Observation<'_>, id: Stateid4) -> Verdict {
        let clientid = seen.request.clientid;
        let live = self.states.get(&id.other);
        must!(live.is_some_and(|l| l.clientid == clientid), "a stateid that is gone: {id:?}");
        let latest = live.map_or(0, |l| l.seqid);
        let any = id.seqid == 0 && seen.request.minor > 0;
        must!(any || id.seqid == latest, "version {} of a stateid, not {latest}", id.seqid);
        Ok(())
    }

    /// A request done for the first time.
    fn done(&mut self, seen: &Observation<'_>) -> Verdict {
        let (request, reply) = (seen.request, &seen.reply);
        let ok = reply.status.is_ok();
        if let (true, Some(id)) = (ok, request.what.stateid()) {
            self.uses(seen, id)?;
        }
        match request.what {
            What::Open { file, owner, share, reclaim, .. } => {
                self.opened(seen, (file, owner), share, reclaim)
            }
            What::Lock { file, owner, span, kind, reclaim, by } => {
                let under = matches!(by, By::Open(..));
                self.locked(seen, (file, owner), (span, kind), reclaim, under)
            }
            What::Test { file, owner, span, kind } => {
                let own = (request.clientid, owner);
                let found =
                    self.conflicts(file, own, seen.now, |h, own| !own && span.meets(&h.1, kind));
                match reply.content {
                    ReplyContent::Denied(id) => self.refused(&found, Some(id)),
                    _ if ok => {
                        must!(found.is_empty(), "a lock is not seen");
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }
            What::Complete if ok => {
                let client = self.clients.get_mut(&request.clientid).ok_or("no such client")?;
                must!(!client.complete, "RECLAIM_COMPLETE twice");
                client.complete = true;
                if let Some(before) = self.before.get_mut(&client.host) {
                    before.done = true;
                }
                Ok(())
            }
            _ if ok => self.changed(seen),
            _ => Ok(()),
        }
    }

    fn opened(
        &mut self,
        seen: &Observation<'_>,
        at: (usize, u32),
        share: Share,
        reclaim: bool,
    ) -> Verdict {
        let clientid = seen.request.clientid;
        // One's own open is no exception.
        let met = |hold: &Hold, _| hold.0.conflicts(share);
        let found = self.conflicts(at.0, (clientid, at.1), seen.now, met);
        let item = (share, [0; BYTES]);
        // None of these statuses is possible later unless the grace period has ended first.
        let looked = [Nfsstat4::OK, Nfsstat4::NO_GRACE, Nfsstat4::SHARE_DENIED];
        self.over |= seen.now >= self.grace_until && looked.contains(&seen.reply.status);
        match seen.reply.content {
            ReplyContent::Opened(id, confirm) => {
                must!(found.is_empty(), "opened against the open of {:x}", found[0].0);
                self.gate(seen, reclaim, Some((&item, at)))?;
                self.note(clientid, at, false, id)?;
                let client = self.clients.get_mut(&clientid).ok_or("no such client")?;
                if !confirm {
                    client.confirmed.insert(at.1);
                }
                let hold = client.holds.entry(at).or_default();
                hold.0 = hold.0.union(share);
                Ok(())
            }
            _ if seen.reply.status == Nfsstat4::SHARE_DENIED && !reclaim => {
                self.refused(&found, None)
            }
            _ => self.gated(seen, reclaim, &item, at),
        }
    }

    fn locked(
        &mut self,
        seen: &Observation<'_>,
        at: (usize, u32),
        (span, kind): (Span, Kind),
        reclaim: bool,
        is_new: bool,
    ) -> Verdict {
        let clientid = seen.request.clientid;
        let met = |hold: &Hold, own: bool| !own && span.meets(&hold.1, kind);
        let found = self.conflicts(at.0, (clientid, at.1), seen.now, met);
        let mut item = (Share::default(), [0; BYTES]);
        span.set(&mut item.1, weight(kind));
        match seen.reply.content {
            ReplyContent::State(id) => {
                must!(found.is_empty(), "locked against the lock of {:x}", found[0].0);
                self.gate(seen, reclaim, Some((&item, at)))?;
                must!(is_new || self.states.contains_key(&id.other), "another lock stateid");
                self.note(clientid, at, true, id)?;
                let client = self.clients.get_mut(&clientid).ok_or("no such client")?;
                let hold = client.holds.get_mut(&at).ok_or("locked without an open")?;
                must!(hold.0.access & weight(kind) != 0, "locked beyond the open's mode");
                span.set(&mut hold.1, weight(kind));
                Ok(())
            }
            ReplyContent::Denied(id) if !reclaim => self.refused(&found, Some(id)),
            _ => self.gated(seen, reclaim, &item, at),
        }
    }

    /// A stateid was given: a new one, or the next version of one.
    fn note(&mut self, clientid: u64, at: (usize, u32), is_lock: bool, id: Stateid4) -> Verdict {
        let live =
            self.states.entry(id.other).or_insert(StateidEntry { clientid, at, is_lock, seqid: 0 });
        let right = (live.clientid, live.at, live.is_lock) == (clientid, at, is_lock);
        must!(right, "the stateid of another: {id:?}");
        must!(id.seqid == live.seqid + 1, "version {} after {}", id.seqid, live.seqid);
        live.seqid = id.seqid;
        Ok(())
    }

    /// What gives back or only uses.
    fn changed(&mut self, seen: &Observation<'_>) -> Verdict {
        let Request { clientid, what, .. } = seen.request;
        let Some(client) = self.clients.get_mut(clientid) else { return Ok(()) };
        let content =
            if let ReplyContent::State(id) = seen.reply.content { Some(id) } else { None };
        match what {
            What::OpenConfirm { file, owner, .. } => {
                client.confirmed.insert(*owner);
                self.note(*clientid, (*file, *owner), false, content.ok_or("no stateid")?)?;
            }
            What::Downgrade { file, owner, to, .. } => {
                let hold = client.holds.get_mut(&(*file, *owner)).ok_or("not open")?;
                must!(hold.0.covers(*to), "downgraded to more");
                hold.0 = *to;
                self.note(*clientid, (*file, *owner), false, content.ok_or("no stateid")?)?;
            }
            What::Unlock { file, owner, span, .. } => {
                let hold = client.holds.get_mut(&(*file, *owner)).ok_or("not open")?;
                span.set(&mut hold.1, 0);
                self.note(*clientid, (*file, *owner), true, content.ok_or("no stateid")?)?;
            }
            What::Close { file, owner, .. } => {
                client.holds.remove(&(*file, *owner)).ok_or("closed twice")?;
                let gone = (*clientid, (*file, *owner));
                self.states.retain(|_, live| (live.clientid, live.at) != gone);
            }
            What::Free { id } => {
                let live = self.states.remove(&id.other).ok_or("freed twice")?;
                let held = client.holds.get(&live.at).is_some_and(|h| h.1 != [0; BYTES]);
                must!(live.is_lock && !held, "freed what is held");
            }
            What::Write { id, .. } => {
                let at = self.states.get(&id.other).map_or((0, 0), |live| live.at);
                let writes = client.holds.get(&at).is_some_and(|h| h.0.access & 2 != 0);
                must!(writes, "written without having opened for it");
            }
            _ => {}
        }
        Ok(())
    }

    /// What a client holds; nothing of one that is gone.
    pub fn holds(&self, clientid: u64, at: (usize, u32)) -> Option<Hold> {
        self.clients.get(&clientid)?.holds.get(&at).copied()
    }

    /// Whether a client is there.
    pub fn lives(&self, clientid: u64) -> bool {
        self.clients.contains_key(&clientid)
    }
}

/// Whether it had that much before the restart.
fn covers(before: &Before, at: (usize, u32), item: &Hold) -> bool {
    before.holds.get(&at).is_some_and(|had| {
        had.0.covers(item.0) && had.1.iter().zip(&item.1).all(|(had, want)| had >= want)
    })
}
