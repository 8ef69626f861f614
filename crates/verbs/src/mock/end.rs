//! One end of a connection, and what both share.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use super::lock;
use crate::region::Registration;
use crate::{
    Access, Account, Completion, Connection, ExposedMemory, Piece, Purpose, Region, VerbsError,
    Work,
};

/// What both ends share: what belongs to each.
#[derive(Default)]
pub(super) struct Link {
    sides: [Side; 2],
    /// Why it has ended.
    ended: Option<&'static str>,
    /// The connection ends after this number of messages.
    messages_left: Option<usize>,
    /// Whether what each side sends, reads and writes is never done, and what that is.
    stuck: [bool; 2],
    undone: VecDeque<(usize, u64, Work)>,
}

#[derive(Default)]
struct Side {
    receives: VecDeque<(u64, Region)>,
    done: Vec<Completion>,
    memory: HashMap<u32, Memory>,
    waker: Option<Waker>,
    /// The private data with which the peer accepted.
    accepted: Option<Vec<u8>>,
}

#[derive(Clone)]
struct Memory {
    bytes: Arc<Mutex<Vec<u8>>>,
    writable: bool,
}

/// Where memory seems to begin: an address of 0 would hide mistakes.
const BASE: u64 = 0x1000;

impl Memory {
    /// The range of a piece in it.
    fn range(&self, piece: &Piece) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(piece.address.checked_sub(BASE)?).ok()?;
        let end = start.checked_add(piece.local.len())?;
        (end <= lock(&self.bytes).len()).then_some(start..end)
    }
}

/// One end of a connection.
pub struct End {
    link: Arc<Mutex<Link>>,
    side: usize,
    account: Arc<Account>,
    next_key: u32,
}

/// Memory that the peer may read, or write. No longer so when this is dropped, or when the peer
/// has invalidated it.
pub struct Exposed {
    link: Arc<Mutex<Link>>,
    side: usize,
    /// Its key.
    pub key: u32,
    /// Where it begins.
    pub address: u64,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Exposed {
    /// What is in it now.
    pub fn bytes(&self) -> Vec<u8> {
        lock(&self.bytes).clone()
    }

    /// Whether the peer has invalidated it.
    pub fn is_invalidated(&self) -> bool {
        !lock(&self.link).sides[self.side].memory.contains_key(&self.key)
    }
}

impl ExposedMemory for Exposed {
    fn key(&self) -> u32 {
        self.key
    }

    fn address(&self) -> u64 {
        self.address
    }

    fn length(&self) -> usize {
        lock(&self.bytes).len()
    }

    fn read(&self, at: usize, into: &mut [u8]) -> bool {
        let bytes = lock(&self.bytes);
        let part = at.checked_add(into.len()).and_then(|end| bytes.get(at..end));
        part.map(|part| into.copy_from_slice(part)).is_some()
    }

    fn write(&mut self, at: usize, from: &[u8]) -> bool {
        let mut bytes = lock(&self.bytes);
        let part = at.checked_add(from.len()).and_then(|end| bytes.get_mut(at..end));
        part.map(|part| part.copy_from_slice(from)).is_some()
    }
}

impl Drop for Exposed {
    fn drop(&mut self) {
        lock(&self.link).sides[self.side].memory.remove(&self.key);
    }
}

struct Nothing;

impl Registration for Nothing {
    fn local_key(&self) -> u32 {
        0
    }

    fn remote_key(&self) -> u32 {
        0
    }
}

impl End {
    pub(super) fn new(link: Arc<Mutex<Link>>, side: usize, account: Arc<Account>) -> Self {
        Self { link, side, account, next_key: 1 }
    }

    /// Lets the peer read this memory, and write to it if it is `writable`.
    pub fn expose(&mut self, bytes: Vec<u8>, writable: bool) -> Exposed {
        let (key, bytes) = (self.next_key, Arc::new(Mutex::new(bytes)));
        self.next_key += 1;
        let memory = Memory { bytes: Arc::clone(&bytes), writable };
        lock(&self.link).sides[self.side].memory.insert(key, memory);
        Exposed { link: Arc::clone(&self.link), side: self.side, key, address: BASE, bytes }
    }

    /// The private data with which the server accepted; `None` as long as it has not. Ready in any
    /// case if it has closed the connection.
    pub fn poll_established(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let mut link = lock(&self.link);
        let ended = link.ended.is_some();
        let side = &mut link.sides[self.side];
        if side.accepted.is_some() || ended {
            return Poll::Ready(side.accepted.clone());
        }
        side.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Loses the connection after this many messages of either end.
    pub fn lose_after(&self, messages: usize) {
        lock(&self.link).messages_left = Some(messages);
    }

    /// From now on nothing that the peer sends, reads or writes is done, as with a device that
    /// does not answer. What it receives is.
    pub fn take_nothing(&self) {
        lock(&self.link).stuck[1 - self.side] = true;
    }

    /// Work of the peer that is not done.
    pub fn undone(&self) -> usize {
        let peer = 1 - self.side;
        lock(&self.link).undone.iter().filter(|(side, ..)| *side == peer).count()
    }

    /// Does what was not done, and from now on everything.
    pub fn take_again(&self) {
        let wakers = {
            let mut link = lock(&self.link);
            link.stuck[1 - self.side] = false;
            let undone = std::mem::take(&mut link.undone);
            let done =
                undone.into_iter().try_for_each(|(side, id, work)| link.work(side, id, work));
            match done {
                Ok(()) => link.wakers(),
                Err(why) => link.end(why),
            }
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends the connection.
    pub fn close(&self, why: &'static str) {
        let wakers = lock(&self.link).end(why);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Link {
    fn end(&mut self, why: &'static str) -> Vec<Waker> {
        self.ended.get_or_insert(why);
        for side in &mut self.sides {
            side.receives.clear();
            side.memory.clear();
        }
        self.undone.clear();
        self.sides.iter_mut().filter_map(|side| side.waker.take()).collect()
    }

    /// Of sides for which something was done.
    fn wakers(&mut self) -> Vec<Waker> {
        let sides = self.sides.iter_mut().filter(|side| !side.done.is_empty());
        sides.filter_map(|side| side.waker.take()).collect()
    }

    /// Does the work of this side; why it fails.
    fn work(&mut self, side: usize, id: u64, work: Work) -> Result<(), &'static str> {
        let peer = 1 - side;
        let done = match work {
            Work::Receive(region) => {
                self.sides[side].receives.push_back((id, region));
                return Ok(());
            }
            Work::Send { region, length, invalidate } => {
                match &mut self.messages_left {
                    Some(0) => return Err("the connection was lost"),
                    Some(left) => *left -= 1,
                    None => {}
                }
                let message = region.get(..length).ok_or("a message beyond its region")?;
                let to = &mut self.sides[peer];
                let (receive, mut room) =
                    to.receives.pop_front().ok_or("the peer has no receive posted")?;
                let fits = room.get_mut(..length).ok_or("the peer's receive is too short")?;
                fits.copy_from_slice(message);
                if let Some(key) = invalidate {
                    to.memory.remove(&key).ok_or("no memory of this key to invalidate")?;
                }
                to.done.push(Completion { id: receive, region: room, outcome: Ok(length) });
                region
            }
            Work::Write { region, pieces } => {
                for piece in &pieces {
                    let (memory, range) = self.memory(peer, piece)?;
                    if !memory.writable {
                        return Err("the peer's memory may not be written");
                    }
                    let from =
                        region.get(piece.local.clone()).ok_or("a piece beyond its region")?;
                    lock(&memory.bytes)[range].copy_from_slice(from);
                }
                region
            }
            Work::Read { mut region, pieces } => {
                for piece in &pieces {
                    let (memory, range) = self.memory(peer, piece)?;
                    let to =
                        region.get_mut(piece.local.clone()).ok_or("a piece beyond its region")?;
                    to.copy_from_slice(&lock(&memory.bytes)[range]);
                }
                region
            }
        };
        self.sides[side].done.push(Completion { id, region: done, outcome: Ok(0) });
        Ok(())
    }

    fn memory(
        &self,
        of: usize,
        piece: &Piece,
    ) -> Result<(Memory, std::ops::Range<usize>), &'static str> {
        let memory = self.sides[of].memory.get(&piece.key).ok_or("no memory of this key")?;
        let range = memory.range(piece).ok_or("beyond the peer's memory")?;
        Ok((memory.clone(), range))
    }
}

impl Connection for End {
    fn accept(&mut self, private_data: &[u8]) -> Result<(), VerbsError> {
        let waker = {
            let mut link = lock(&self.link);
            let peer = &mut link.sides[1 - self.side];
            peer.accepted = Some(private_data.to_vec());
            peer.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
        Ok(())
    }

    fn register(&mut self, buffer: Vec<u8>, _: Purpose) -> Result<Region, (Vec<u8>, VerbsError)> {
        match self.account.take(buffer.len()) {
            Some(permit) => Ok(Region::new(buffer, Box::new(Nothing), permit)),
            None => Err((buffer, VerbsError::NoRoom)),
        }
    }

    fn expose_memory(
        &mut self,
        bytes: usize,
        access: Access,
    ) -> Result<Box<dyn ExposedMemory>, VerbsError> {
        Ok(Box::new(self.expose(vec![0; bytes], access == Access::Write)))
    }

    fn post(&mut self, id: u64, work: Work) -> Result<(), VerbsError> {
        let (failed, wakers) = {
            let mut link = lock(&self.link);
            if let Some(why) = link.ended {
                return Err(VerbsError::Work(why));
            }
            if link.stuck[self.side] && !matches!(work, Work::Receive(_)) {
                link.undone.push_back((self.side, id, work));
                return Ok(());
            }
            match link.work(self.side, id, work) {
                Ok(()) => (None, link.wakers()),
                Err(why) => (Some(why), link.end(why)),
            }
        };
        wakers.into_iter().for_each(Waker::wake);
        failed.map_or(Ok(()), |why| Err(VerbsError::Work(why)))
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        done: &mut Vec<Completion>,
    ) -> Poll<Result<(), VerbsError>> {
        let mut link = lock(&self.link);
        let ended = link.ended;
        let side = &mut link.sides[self.side];
        if !side.done.is_empty() {
            done.append(&mut side.done);
            return Poll::Ready(Ok(()));
        }
        match ended {
            Some(CLOSED) => Poll::Ready(Err(VerbsError::Closed)),
            Some(why) => Poll::Ready(Err(VerbsError::Work(why))),
            None => {
                side.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The reason that the peer of a dropped end gets.
const CLOSED: &str = "closed by the peer";

impl Drop for End {
    fn drop(&mut self) {
        self.close(CLOSED);
    }
}
