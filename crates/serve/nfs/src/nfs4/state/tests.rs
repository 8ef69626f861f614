//! The state of clients with a given clock: each case of the RFCs' tables by its name.

use std::sync::Arc;

use base::clock::NS_PER_S;
use base::limits::NFS4_CLIENTS_PER_ADDRESS_MAX;
use base::random::SeededRandom;
use probe::core::thread_cpu_ns;
use vfs::locks::{FileKey, Kind, LockTable, Range, Share};
use wire::nfs4::{ChannelAttrs4, Nfsstat4, SequenceArgs4, Stateid4};

use super::memory::Memory;
use super::*;

mod admin;
mod deleg;
mod deleg_random;
mod random;

impl State {
    /// Clients that are made from now on have so much memory together, and of one address.
    fn limit_memory(&self, most: usize, most_each: usize) -> Arc<Memory> {
        let memory = Memory::new(most, most_each);
        self.names.lock().memory = Arc::clone(&memory);
        memory
    }

    /// Clients known by name, confirmed or not.
    pub(in crate::nfs4) fn names_known(&self) -> usize {
        self.names.lock().known()
    }
}

const LEASE: u64 = 90 * NS_PER_S;
const KEY: FileKey = FileKey { fsid: 1, fileid: 7, generation: 0 };
const READ: Share = Share { access: 1, deny: 0 };
const BOTH: Share = Share { access: 3, deny: 0 };

fn known_as(has_sessions: bool, name: &[u8], principal: u32) -> Identity {
    Identity { name: (has_sessions, name.to_vec()), principal }
}

fn state_after(known: Vec<Identity>) -> State {
    State::new(Config {
        boot: 5,
        lease_ns: LEASE,
        grace_until_ns: LEASE,
        known,
        records: Arc::new(NoRecords),
        locks: Arc::new(LockTable::default()),
        random: Box::new(SeededRandom::new(1)),
    })
}

fn state() -> State {
    state_after(Vec::new())
}

fn attrs() -> ChannelAttrs4 {
    ChannelAttrs4 {
        headerpadsize: 0,
        maxrequestsize: 1 << 20,
        maxresponsesize: 1 << 20,
        maxresponsesize_cached: 4096,
        maxoperations: 16,
        maxrequests: 4,
        rdma_ird: None,
    }
}

fn new_session(clientid: u64, sequence: u32) -> NewSession {
    NewSession { clientid, sequence, flags: 0, fore: attrs(), back: attrs(), cb_program: 1 }
}

/// A confirmed 4.0 client.
fn client40(state: &State, name: &[u8], now: u64) -> Arc<Client> {
    let (id, confirm) = state.setclientid(name, [1; 8], 0, now).unwrap();
    state.setclientid_confirm(id, confirm, 0, now).unwrap();
    state.renew(id, now).unwrap()
}

/// A confirmed 4.1 client with a session, done with reclaiming.
fn client41(state: &State, name: &[u8], now: u64) -> (Arc<Client>, [u8; 16]) {
    let (client, _) = state.exchange_id(name, [1; 8], false, 0, now).unwrap();
    let made = state.create_session(&new_session(client.id, 1), 0, now).unwrap();
    state.reclaim_complete(&client).unwrap();
    (client, made.sessionid)
}

fn sequence(sessionid: [u8; 16], slotid: u32, sequenceid: u32) -> SequenceArgs4 {
    SequenceArgs4 { sessionid, sequenceid, slotid, highest_slotid: slotid, cachethis: false }
}

// --- RFC 7530 §16.33, §16.34 ------------------------------------------------------------------

#[test]
fn setclientid_again_with_the_same_verifier_keeps_id_and_state() {
    let state = state();
    let client = client40(&state, b"a", 0);
    let owner = client.owner(b"o").unwrap();
    state.open(&client, KEY, &owner, READ, 0).unwrap();
    let (id, confirm) = state.setclientid(b"a", [1; 8], 0, 1).unwrap();
    assert_eq!(id, client.id);
    state.setclientid_confirm(id, confirm, 0, 1).unwrap();
    assert_eq!(state.locks.counts().opens, 1);
}

#[test]
fn a_restarted_clients_state_ends_when_it_confirms_and_not_before() {
    let state = state();
    let client = client40(&state, b"a", 0);
    let owner = client.owner(b"o").unwrap();
    let open = state.open(&client, KEY, &owner, READ, 0).unwrap();
    let (id, confirm) = state.setclientid(b"a", [2; 8], 0, 1).unwrap();
    assert_ne!(id, client.id);
    assert_eq!(state.locks.counts().opens, 1);
    state.setclientid_confirm(id, confirm, 0, 1).unwrap();
    assert_eq!(state.locks.counts().opens, 0);
    assert_eq!(state.renew(client.id, 1).err(), Some(Nfsstat4::STALE_CLIENTID));
    assert_eq!(state.client_of(&open, 1).err(), Some(Nfsstat4::EXPIRED));
    assert_eq!(state.counts().0, 1);
}

#[test]
fn a_repeated_confirmation_succeeds_and_a_wrong_one_is_stale() {
    let state = state();
    let (id, confirm) = state.setclientid(b"a", [1; 8], 0, 0).unwrap();
    let stale = Err(Nfsstat4::STALE_CLIENTID);
    assert_eq!(state.setclientid_confirm(id, [9; 8], 0, 0), stale);
    assert_eq!(state.setclientid_confirm(id, confirm, 1, 0), Err(Nfsstat4::CLID_INUSE));
    assert_eq!(state.setclientid_confirm(id, confirm, 0, 0), Ok(()));
    assert_eq!(state.setclientid_confirm(id, confirm, 0, 0), Ok(()));
    assert_eq!(state.setclientid_confirm(id + 1, confirm, 0, 0), stale);
}

#[test]
fn an_unconfirmed_record_is_replaced() {
    let state = state();
    let (first, by) = state.setclientid(b"a", [1; 8], 0, 0).unwrap();
    let (second, _) = state.setclientid(b"a", [1; 8], 0, 0).unwrap();
    assert_ne!(first, second);
    assert_eq!(state.setclientid_confirm(first, by, 0, 0), Err(Nfsstat4::STALE_CLIENTID));
}

#[test]
fn another_principal_is_refused_while_the_client_holds_something_and_lives() {
    let state = state();
    let client = client40(&state, b"a", 0);
    let owner = client.owner(b"o").unwrap();
    state.open(&client, KEY, &owner, READ, 0).unwrap();
    assert_eq!(state.setclientid(b"a", [1; 8], 7, 1).err(), Some(Nfsstat4::CLID_INUSE));
    assert!(state.setclientid(b"a", [1; 8], 7, LEASE + 1).is_ok());
}

// --- RFC 8881 §18.35, §18.36 ------------------------------------------------------------------

#[test]
fn exchange_id_in_its_nine_cases() {
    let state = state();
    let ask = |verifier, update, principal, now| {
        let answer = state.exchange_id(b"c", [verifier; 8], update, principal, now);
        answer.map(|(client, confirmed)| (client.id, confirmed))
    };
    assert_eq!(ask(1, true, 0, 0), Err(Nfsstat4::NOENT), "7: update of nobody");
    let (first, confirmed) = ask(1, false, 0, 0).unwrap();
    assert!(!confirmed, "1: new");
    let (second, _) = ask(1, false, 0, 0).unwrap();
    assert_ne!(first, second, "4: an unconfirmed one is replaced");
    let gone = state.create_session(&new_session(first, 1), 0, 0);
    assert_eq!(gone.err(), Some(Nfsstat4::STALE_CLIENTID));
    state.create_session(&new_session(second, 1), 0, 0).unwrap();
    assert_eq!(ask(1, false, 0, 0), Ok((second, true)), "2: the same again");
    assert_eq!(ask(1, false, 7, 0), Err(Nfsstat4::CLID_INUSE), "3: another's, and it lives");
    assert_eq!(ask(1, true, 0, 0), Ok((second, true)), "6: update");
    assert_eq!(ask(2, true, 0, 0), Err(Nfsstat4::NOT_SAME), "8");
    assert_eq!(ask(1, true, 7, 0), Err(Nfsstat4::PERM), "9");
    let (third, confirmed) = ask(2, false, 0, 0).unwrap();
    assert!(!confirmed && third != second, "5: restarted");
    assert_eq!(state.counts(), (1, 1));
    state.create_session(&new_session(third, 1), 0, 0).unwrap();
    assert_eq!(state.counts(), (1, 1), "the old one's session ended with it");
    assert!(ask(1, false, 7, LEASE + 1).is_ok(), "3: another's, that has lapsed");
    assert_eq!(state.counts(), (0, 0));
}

#[test]
fn a_session_id_reveals_nothing_of_the_next_one() {
    let state = state();
    let (client, first) = client41(&state, b"a", 0);
    let second = state.create_session(&new_session(client.id, 2), 0, 0).unwrap().sessionid;
    assert_ne!(first[..8], second[..8]);
    assert_ne!(first[8..], second[8..]);
    assert!(!first.windows(8).any(|part| part == client.id.to_be_bytes()));
}

#[test]
fn create_session_again_gets_the_first_result_and_other_numbers_are_misordered() {
    let state = state();
    let (client, _) = state.exchange_id(b"c", [1; 8], false, 0, 0).unwrap();
    let misordered = Some(Nfsstat4::SEQ_MISORDERED);
    assert_eq!(state.create_session(&new_session(client.id, 0), 0, 0).err(), misordered);
    assert_eq!(state.create_session(&new_session(client.id, 2), 0, 0).err(), misordered);
    let first = state.create_session(&new_session(client.id, 1), 0, 0).unwrap();
    assert_eq!(state.create_session(&new_session(client.id, 1), 0, 0), Ok(first));
    assert_eq!(state.counts(), (1, 1));
    let second = state.create_session(&new_session(client.id, 2), 0, 0).unwrap();
    assert_ne!(first.sessionid, second.sessionid);
    let mut small = new_session(client.id, 3);
    small.fore.maxrequestsize = 10;
    assert_eq!(state.create_session(&small, 0, 0).err(), Some(Nfsstat4::TOOSMALL));
}

/// The result has the session's id, which is all that it takes to use the session.
#[test]
fn create_session_is_repeated_to_its_client_only() {
    let state = state();
    let by = |principal, host: u8| By { principal, address: [192, 0, 2, host].into() };
    let (client, _) = state.exchange_id(b"c", [1; 8], false, by(0, 1), 0).unwrap();
    let again = |by| state.create_session(&new_session(client.id, 1), by, 0);
    let first = again(by(0, 1)).unwrap();
    assert_eq!(again(by(7, 1)), Err(Nfsstat4::CLID_INUSE), "another user");
    assert_eq!(again(by(0, 2)), Err(Nfsstat4::SEQ_MISORDERED), "another machine");
    assert_eq!(again(by(0, 1)), Ok(first));
    let (next, second) = (new_session(client.id, 2), by(0, 2));
    assert!(state.create_session(&next, second, 0).is_ok(), "it may have several addresses");
}

#[test]
fn clients_with_sessions_and_without_are_not_confused() {
    let state = state();
    let stale = Some(Nfsstat4::STALE_CLIENTID);
    let (newer, _) = client41(&state, b"c", 0);
    let open = state.open(&newer, KEY, &newer.owner(b"o").unwrap(), READ, 0).unwrap();
    assert_eq!(state.renew(newer.id, 1).err(), stale);
    assert_eq!(state.client_of(&open, 1).err(), Some(Nfsstat4::BAD_STATEID));
    assert_eq!(newer.renewed_ns(), 0, "strangers do not keep it alive");
    // What confirms a client of 4.0 is a number that goes up.
    let (pending, _) = state.exchange_id(b"p", [1; 8], false, 0, 0).unwrap();
    for n in 0..16_u64 {
        let confirm = (5 << 32 ^ n).to_be_bytes();
        assert_eq!(state.setclientid_confirm(pending.id, confirm, 0, 0).err(), stale);
    }
    let older = client40(&state, b"a", 0);
    assert_eq!(state.create_session(&new_session(older.id, 1), 0, 0).err(), stale);
    assert_eq!(state.destroy_clientid(older.id).err(), stale);
    assert!(state.renew(older.id, 0).is_ok());
}

#[test]
fn a_session_is_destroyed_when_no_other_request_is_in_progress() {
    let state = state();
    let (_, id) = client41(&state, b"c", 0);
    let session = state.session(&id).unwrap();
    for slot in 0..2 {
        let begun = session.sequence(&sequence(id, slot, 1), (0, 2), 0);
        assert_eq!(begun, Ok(SlotDecision::Next));
    }
    assert_eq!(state.destroy_session(&id, true), Err(Nfsstat4::DELAY), "a second compound");
    session.finish(1, b"results");
    assert_eq!(state.destroy_session(&id, false), Err(Nfsstat4::DELAY));
    assert_eq!(state.destroy_session(&id, true), Ok(()));
}

#[test]
fn destroy_clientid_only_when_nothing_is_left() {
    let state = state();
    let (client, session) = client41(&state, b"c", 0);
    assert_eq!(state.destroy_clientid(client.id), Err(Nfsstat4::CLIENTID_BUSY));
    assert_eq!(state.destroy_session(&session, false), Ok(()));
    assert_eq!(state.destroy_session(&session, false), Err(Nfsstat4::BADSESSION));
    assert_eq!(state.destroy_clientid(client.id), Ok(()));
    assert_eq!(state.destroy_clientid(client.id), Err(Nfsstat4::STALE_CLIENTID));
    assert_eq!(state.counts(), (0, 0));
}

// --- RFC 8881 §2.10.6 -------------------------------------------------------------------------

#[test]
fn a_slot_takes_the_next_number_repeats_the_last_and_refuses_the_rest() {
    let state = state();
    let (_, id) = client41(&state, b"c", 0);
    let ask = |slot, seq| state.session(&id)?.sequence(&sequence(id, slot, seq), (0, 2), 0);
    let misordered = Err(Nfsstat4::SEQ_MISORDERED);
    assert_eq!(ask(0, 0), misordered, "nothing was asked yet");
    assert_eq!(ask(0, 2), misordered);
    assert_eq!(ask(0, 1), Ok(SlotDecision::Next));
    assert_eq!(ask(0, 1), Err(Nfsstat4::DELAY), "the first is under way");
    assert_eq!(ask(0, 2), misordered, "the first is under way");
    let session = state.session(&id).unwrap();
    session.finish(0, b"results");
    assert_eq!(ask(0, 1), Ok(SlotDecision::Again(b"results".to_vec())));
    let other = session.sequence(&sequence(id, 0, 1), (0, 3), 0);
    assert_eq!(other, Err(Nfsstat4::SEQ_FALSE_RETRY));
    assert_eq!(ask(0, 2), Ok(SlotDecision::Next));
    session.finish(0, &[0; 2_000]);
    assert_eq!(ask(0, 2), Err(Nfsstat4::RETRY_UNCACHED_REP), "long, and not asked to be kept");
    assert_eq!(ask(0, 1), misordered);
    assert_eq!(ask(4, 1), Err(Nfsstat4::BADSLOT));
    let high = SequenceArgs4 { highest_slotid: 4, ..sequence(id, 1, 1) };
    assert_eq!(session.sequence(&high, (0, 1), 0).err(), Some(Nfsstat4::BAD_HIGH_SLOT));
    let gone = state.session(&[9; 16]).err();
    assert_eq!(gone, Some(Nfsstat4::BADSESSION));
}

#[test]
fn a_slots_numbers_go_round() {
    let (_, session) = {
        let state = state();
        let (client, id) = client41(&state, b"c", 0);
        (client, state.session(&id).unwrap())
    };
    session.start_at(0, u32::MAX);
    assert_eq!(session.sequence(&sequence([0; 16], 0, 0), (0, 1), 0), Ok(SlotDecision::Next));
}

// --- RFC 8881 §8.2 ----------------------------------------------------------------------------

#[test]
fn stateids_are_old_bad_or_stale_by_the_rules_of_their_minor_version() {
    let state = state();
    let client = client40(&state, b"a", 0);
    let owner = client.owner(b"o").unwrap();
    let first = state.open(&client, KEY, &owner, READ, 0).unwrap();
    let second = state.open(&client, KEY, &owner, BOTH, 0).unwrap();
    assert_eq!((first.other, first.seqid + 1), (second.other, second.seqid));
    let check = |id: Stateid4, access| state.check_io(&client, &id, KEY, access);
    assert_eq!(check(second, 3), Ok(()));
    assert_eq!(check(first, 1), Err(Nfsstat4::OLD_STATEID));
    assert_eq!(check(Stateid4 { seqid: 9, ..second }, 1), Err(Nfsstat4::BAD_STATEID));
    assert_eq!(check(Stateid4 { seqid: 0, ..second }, 1), Err(Nfsstat4::OLD_STATEID));
    let mut stale = second;
    stale.other[0] ^= 1;
    assert_eq!(check(stale, 1), Err(Nfsstat4::STALE_STATEID));
    let elsewhere = FileKey { generation: 1, ..KEY };
    assert_eq!(state.check_io(&client, &second, elsewhere, 1), Err(Nfsstat4::BAD_STATEID));

    let (newer, _) = client41(&state, b"c", 0);
    let owner = newer.owner(b"o").unwrap();
    let open = state.open(&newer, KEY, &owner, READ, 0).unwrap();
    let latest = Stateid4 { seqid: 0, ..open };
    assert_eq!(state.check_io(&newer, &latest, KEY, 1), Ok(()));
    assert_eq!(state.check_io(&newer, &latest, KEY, 2), Err(Nfsstat4::OPENMODE));
    assert_eq!(state.check_io(&newer, &second, KEY, 1), Err(Nfsstat4::BAD_STATEID));
}

#[test]
fn a_downgrade_is_to_a_union_of_what_was_opened() {
    let state = state();
    let (client, _) = client41(&state, b"c", 0);
    let owner = client.owner(b"o").unwrap();
    let open = state.open(&client, KEY, &owner, BOTH, 0).unwrap();
    assert_eq!(state.downgrade(&client, &open, READ, KEY), Err(Nfsstat4::INVAL), "never opened so");
    let open = state.open(&client, KEY, &owner, READ, 0).unwrap();
    let open = state.downgrade(&client, &open, READ, KEY).unwrap();
    assert_eq!(state.locks.share_of(KEY, &owner), Some(READ));
    assert_eq!(state.downgrade(&client, &open, BOTH, KEY), Err(Nfsstat4::INVAL), "no way up");
    assert_eq!(state.close(&client, &open, KEY), Ok(()));
    assert_eq!(state.close(&client, &open, KEY), Err(Nfsstat4::BAD_STATEID));
    assert_eq!(state.locks.counts().opens, 0);
}

// --- locks, leases ----------------------------------------------------------------------------

#[test]
fn locks_exclude_other_clients_and_end_with_the_open() {
    let state = state();
    let (one, two) = (client41(&state, b"1", 0).0, client41(&state, b"2", 0).0);
    let lock_of = |client: &Arc<Client>, kind| Locking {
        owner: client.owner(b"l").unwrap(),
        range: Range::to_end(10),
        kind,
    };
    let open = |client: &Arc<Client>, share| {
        state.open(client, KEY, &client.owner(b"o").unwrap(), share, 0).unwrap()
    };
    let (of_one, of_two) = (open(&one, BOTH), open(&two, READ));
    let first = state.lock_new(&one, &of_one, KEY, &lock_of(&one, Kind::Write), 0).unwrap();
    let refused = state.lock_new(&two, &of_two, KEY, &lock_of(&two, Kind::Write), 0);
    assert_eq!(refused, Err(LockRefused::Status(Nfsstat4::OPENMODE)));
    let refused = state.lock_new(&two, &of_two, KEY, &lock_of(&two, Kind::Read), 0);
    let Err(LockRefused::Denied(held)) = refused else { panic!("{refused:?}") };
    assert_eq!((held.owner.client, held.range), (one.key(), Range::to_end(10)));
    assert_eq!(state.free_stateid(&one, &first), Err(Nfsstat4::LOCKS_HELD));
    let second = state.unlock(&one, &first, KEY, Range::to_end(0)).unwrap();
    assert_eq!(state.free_stateid(&one, &second), Ok(()));
    assert!(state.lock_new(&two, &of_two, KEY, &lock_of(&two, Kind::Read), 0).is_ok());
    state.close(&two, &of_two, KEY).unwrap();
    assert_eq!(state.locks.counts().locks, 0);
    assert!(state.lock_test(KEY, &lock_of(&one, Kind::Write), 0).is_none());
}

/// An owner may have locks under several opens of a file, by different open owners.
#[test]
fn locks_end_with_the_last_open_that_their_owner_has_them_under() {
    let state = state();
    let (client, _) = client41(&state, b"c", 0);
    let [first, second] = [b"1", b"2"]
        .map(|owner| state.open(&client, KEY, &client.owner(owner).unwrap(), BOTH, 0).unwrap());
    let lock = |open, owner: &[u8], start| {
        let (owner, range) = (client.owner(owner).unwrap(), Range::new(start, 1).unwrap());
        state.lock_new(&client, open, KEY, &Locking { owner, range, kind: Kind::Write }, 0)
    };
    lock(&first, b"both", 0).unwrap();
    lock(&second, b"both", 10).unwrap();
    let alone = lock(&first, b"one", 2).unwrap();
    assert_eq!(client.held.lock().counts(), (2, 3));
    let alone = state.unlock(&client, &alone, KEY, Range::new(2, 1).unwrap()).unwrap();
    state.free_stateid(&client, &alone).unwrap();
    assert_eq!(client.held.lock().counts(), (2, 2));
    state.close(&client, &first, KEY).unwrap();
    assert_eq!((client.held.lock().counts(), state.locks.counts().locks), ((1, 1), 2));
    state.close(&client, &second, KEY).unwrap();
    assert_eq!((client.held.lock().counts(), state.locks.counts().locks), ((0, 0), 0));
    assert!(client.held.lock().is_empty());
}

/// To look through all lock states for each that ends would be a thousand million steps, which
/// cost a hundred times what it took to make them.
#[test]
fn a_close_costs_what_ends_with_it() {
    const OWNERS: u32 = 40_000;
    let state = state();
    let (client, _) = client41(&state, b"c", 0);
    let open = state.open(&client, KEY, &client.owner(b"o").unwrap(), BOTH, 0).unwrap();
    let other = state.open(&client, KEY, &client.owner(b"p").unwrap(), BOTH, 0).unwrap();
    let begun = thread_cpu_ns();
    for (n, under) in (0..2 * OWNERS).zip([&open, &other].into_iter().cycle()) {
        let (owner, range) = (client.owner(&n.to_be_bytes()).unwrap(), Range::new(0, 1).unwrap());
        let want = Locking { owner, range, kind: Kind::Write };
        let held = state.lock_new(&client, under, KEY, &want, 0).unwrap();
        state.unlock(&client, &held, KEY, range).unwrap();
    }
    let made = thread_cpu_ns();
    state.close(&client, &open, KEY).unwrap();
    let (making, closing) = (made - begun, thread_cpu_ns() - made);
    assert_eq!(client.held.lock().counts(), (1, OWNERS as usize));
    assert!(closing < 2 * making, "{closing} ns to close what took {making} ns to make");
}

#[test]
fn a_lapsed_client_retains_its_state_until_another_client_needs_it() {
    let state = state();
    let (one, _) = client41(&state, b"1", 0);
    let deny = Share { access: 1, deny: 2 };
    let open = state.open(&one, KEY, &one.owner(b"o").unwrap(), deny, 0).unwrap();
    let later = LEASE + 1;
    let (two, _) = client41(&state, b"2", 0);
    let owner = two.owner(b"o").unwrap();
    let denied = state.open(&two, KEY, &owner, BOTH, LEASE);
    assert_eq!(denied, Err(Nfsstat4::SHARE_DENIED), "its lease runs still");
    state.sweep(later);
    assert_eq!(state.check_io(&one, &open, KEY, 1), Ok(()));
    assert!(state.clients(later).iter().all(|c| c.is_lapsed));
    two.renew(later);
    assert!(state.open(&two, KEY, &owner, BOTH, later).is_ok());
    assert_eq!(state.counts(), (1, 1), "ended, with its session");
    assert_eq!(state.check_io(&one, &open, KEY, 1), Err(Nfsstat4::BAD_STATEID));
    let again = state.open(&one, KEY, &one.owner(b"o").unwrap(), READ, later);
    assert_eq!(again, Err(Nfsstat4::EXPIRED), "nothing is added to a client that has ended");
    state.sweep(later + base::limits::NFS4_COURTESY.as_nanos() as u64 + 1);
    assert_eq!(state.counts(), (0, 0));
    assert_eq!(state.locks.counts().opens, 0);
}

// --- grace ------------------------------------------------------------------------------------

#[test]
fn grace_admits_each_recorded_client_once_and_ends_with_the_last() {
    let state = state_after(vec![known_as(true, b"known", 0)]);
    let join = |name: &[u8]| {
        let (client, _) = state.exchange_id(name, [1; 8], false, 0, 0).unwrap();
        state.create_session(&new_session(client.id, 1), 0, 0).unwrap();
        client
    };
    let (known, stranger) = (join(b"known"), join(b"stranger"));
    assert_eq!(state.may_reclaim(&known), Ok(()));
    assert_eq!(state.may_reclaim(&stranger), Err(Nfsstat4::NO_GRACE));
    assert_eq!(state.reclaim_complete(&stranger), Ok(()));
    assert_eq!(state.may_take(&stranger), Err(Nfsstat4::GRACE));
    assert_eq!(state.reclaim_complete(&known), Ok(()));
    assert_eq!(state.reclaim_complete(&known), Err(Nfsstat4::COMPLETE_ALREADY));
    assert_eq!(state.may_reclaim(&known), Err(Nfsstat4::NO_GRACE));
    assert_eq!(state.may_take(&stranger), Err(Nfsstat4::GRACE), "until the records say so");
    state.end_grace_if_due(1);
    assert_eq!(state.may_take(&stranger), Ok(()));
}

#[test]
fn grace_ends_with_its_time_and_a_client_must_still_report_completion() {
    let state = state_after(vec![known_as(true, b"gone", 0)]);
    let (client, _) = state.exchange_id(b"new", [1; 8], false, 0, 0).unwrap();
    state.end_grace_if_due(LEASE - 1);
    assert!(state.in_grace());
    state.end_grace_if_due(LEASE);
    assert!(!state.in_grace());
    assert_eq!(state.may_take(&client), Err(Nfsstat4::GRACE));
    assert_eq!(state.reclaim_complete(&client), Ok(()));
    assert_eq!(state.may_take(&client), Ok(()));
}

// --- RFC 7530 §9.1.7 --------------------------------------------------------------------------

#[test]
fn an_owners_requests_are_numbered_and_the_last_is_repeated() {
    let mut owner = Sequence::default();
    assert_eq!(owner.turn(7, false), Ok(SequenceDecision::Next), "any number to begin with");
    owner.done(7, Nfsstat4::OK, b"first");
    assert_eq!(owner.turn(7, false), Ok(SequenceDecision::Again(b"first".to_vec())));
    assert_eq!(owner.turn(9, false), Err(Nfsstat4::BAD_SEQID));
    assert_eq!(owner.turn(9, true), Ok(SequenceDecision::Next), "not confirmed: it may begin anew");
    owner.confirmed = true;
    assert_eq!(owner.turn(9, true), Err(Nfsstat4::BAD_SEQID));
    assert_eq!(owner.turn(8, true), Ok(SequenceDecision::Next));
    owner.done(8, Nfsstat4::BAD_STATEID, b"uncounted");
    assert_eq!(owner.turn(8, true), Ok(SequenceDecision::Next));
    owner.done(8, Nfsstat4::DENIED, b"counted");
    assert_eq!(owner.turn(8, true), Ok(SequenceDecision::Again(b"counted".to_vec())));
}

// --- limits -------------------------------------------------------------------------------------

/// One host cannot take the records that others need, and loses none that it has confirmed.
#[test]
fn an_address_has_a_part_of_the_records_and_unconfirmed_ones_go_first() {
    let state = state();
    let by = |host: u8| By { principal: 0, address: [192, 0, 2, host].into() };
    let exchange = |name: &[u8], host| state.exchange_id(name, [1; 8], false, by(host), 0);
    let (kept, _) = exchange(b"confirmed", 1).unwrap();
    state.create_session(&new_session(kept.id, 1), 0, 0).unwrap();
    let (first, _) = exchange(b"first", 1).unwrap();
    for n in 2..NFS4_CLIENTS_PER_ADDRESS_MAX + 10 {
        exchange(&n.to_be_bytes(), 1).unwrap();
    }
    let known = state.names.lock().known();
    assert_eq!(known, NFS4_CLIENTS_PER_ADDRESS_MAX);
    let gone = state.create_session(&new_session(first.id, 1), 0, 0);
    assert_eq!(gone.err(), Some(Nfsstat4::STALE_CLIENTID), "the oldest had to go");
    assert!(state.client_info(kept.id, 0).is_some(), "it is confirmed");
    assert!(exchange(b"other", 2).is_ok());
}

/// Whatever a host holds, of whichever kind, there is an end to it, and others have room.
#[test]
fn what_the_clients_of_an_address_hold_is_bounded() {
    let state = state();
    let memory = state.limit_memory(1 << 20, 64 << 10);
    let (client, id) = client41(&state, b"c", 0);
    let open = |client: &Arc<Client>, n: u32| {
        let owner = [&n.to_be_bytes()[..], &[0; 1_000]].concat();
        state.open(client, KEY, &client.owner(&owner).unwrap(), READ, 0)
    };
    let opens: Vec<_> = (0..1_000).map_while(|n| open(&client, n).ok()).collect();
    assert!((20..64).contains(&opens.len()), "{} owners of 1 KiB", opens.len());
    assert_eq!(open(&client, 1_000), Err(Nfsstat4::RESOURCE));
    assert_eq!(state.locks.counts().opens, opens.len() as u64, "nothing is left of that");
    let session = state.create_session(&new_session(client.id, 2), 0, 0);
    assert_eq!(session, Err(Nfsstat4::NOSPC));
    let asked = By { principal: 0, address: [192, 0, 2, 2].into() };
    let (other, _) = state.exchange_id(b"other", [1; 8], false, asked, 0).unwrap();
    assert!(state.create_session(&new_session(other.id, 1), asked, 0).is_ok());
    assert!(open(&other, 0).is_ok(), "others have their part");
    // A reply that the client did not request to be retained is not; one that it did has to wait.
    let slot = state.session(&id).unwrap();
    for (kept, first) in [(false, 1), (true, 2)] {
        if kept {
            opens.iter().for_each(|open| state.close(&client, open, KEY).unwrap());
        }
        slot.sequence(&sequence(id, 0, first), (0, 2), 0).unwrap();
        slot.finish(0, &[7; 500]);
        let again = slot.sequence(&sequence(id, 0, first), (0, 2), 0);
        assert_eq!(again.is_ok(), kept, "{again:?}");
    }
    let ids = [client.id, other.id];
    drop((client, other, slot));
    ids.iter().for_each(|id| assert!(state.expire(*id)));
    assert_eq!(memory.used(), 0, "all is given back");
}

/// A request at the start, and the time after which an owner is idle.
const AT_START: (u64, u64) = (0, LEASE);

/// Of 4.0: its owners retain their last replies.
#[test]
fn owners_of_a_client_are_bounded_by_bytes_too() {
    let state = state();
    let memory = state.limit_memory(1 << 20, 64 << 10);
    let client = client40(&state, b"a", 0);
    let owner = |n: u32| n.to_be_bytes();
    let owners =
        (0..1_000).take_while(|n| client.sequence_of(true, &owner(*n), AT_START).is_ok()).count();
    assert!((20..64).contains(&owners), "{owners}");
    assert!(client.sequence_of(true, &owner(0), AT_START).is_ok(), "it is known");
    client.forget_lock_owner(&owner(0));
    assert!(client.sequence_of(true, &owner(2_000), AT_START).is_ok());
    drop(client);
    assert!(state.expire(state.clients(0)[0].id));
    assert_eq!(memory.used(), 0, "all is given back");
}

/// No request of 4.0 releases an owner that opens.
#[test]
fn owners_without_an_open_are_released_after_a_lease_where_there_is_no_room() {
    let state = state();
    let memory = state.limit_memory(1 << 20, 64 << 10);
    let client = client40(&state, b"a", 0);
    let owner = |n: u32| n.to_be_bytes();
    let uses = |n: u32, now: u64| client.sequence_of(false, &owner(n), (now, LEASE));
    let open = state.open(&client, KEY, &client.owner(&owner(0)).unwrap(), READ, 1).unwrap();
    let count = (0..1_000).take_while(|n| uses(*n, 0).is_ok()).count() as u32;
    let used = memory.used();
    assert!((20..64).contains(&count), "{count}");
    assert!(uses(1, 1).is_ok() && uses(2_000, LEASE).is_err(), "none is idle yet");
    let in_progress = uses(2, 1).unwrap();
    assert!(uses(2_000, LEASE + 1).is_ok(), "those that were used at 0 are idle");
    assert!(memory.used() < used);
    let known = |n: u32| client.knows_owner(&owner(n));
    assert_eq!([0, 1, 2, 3, 4, 2_000].map(known), [true, true, true, false, false, true]);
    drop(in_progress);
    state.close(&client, &open, KEY).unwrap();
    let next = (3_000..4_000).take_while(|n| uses(*n, 3 * LEASE).is_ok()).count() as u32;
    assert_eq!(next, count, "all of them, also the one that had a file open");
    assert!(!known(0) && !known(2_000));
}

#[test]
fn an_open_ends_with_the_share_that_it_was_last_made_through_and_once() {
    let state = state();
    let client = client40(&state, b"a", 0);
    let owner = client.owner(b"o").unwrap();
    let id = state.open(&client, KEY, &owner, READ, 1).unwrap();
    let mut held = client.held.lock();
    held.opened_through(&id, Some(1), None);
    let number = held.opens_through(1)[0].0;
    assert!(held.is_open_through(number, 1));
    held.opened_through(&id, Some(2), None);
    assert!(!held.is_open_through(number, 1), "made again while that share is removed");
    drop(held);
    assert_eq!([1, 2, 2].map(|tag| state.release_share(tag)), [(0, 0), (1, 0), (0, 0)]);
    assert!(!client.held.lock().is_open_through(number, 2), "closed");
}
