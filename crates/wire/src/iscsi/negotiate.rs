//! Negotiation of operational parameters (RFC 7143 §6.2, §13), of both sides: what was proposed,
//! what is answered, and what holds in the end. Keys of identity and of authentication are left to
//! [`super::login_phase`].

use base::limits::{ISCSI_DATA_MAX, ISCSI_LIST_MAX};
use thiserror::Error;

use super::keys::{
    CRC32C, IRRELEVANT, Key, NONE, NOT_UNDERSTOOD, REJECT, Range, Rule, Sender, boolean, yes_no,
};
use super::pairs::{Pair, put};
use super::{Digests, keys};

/// Which side we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The initiator.
    Initiator,
    /// The target.
    Target,
}

/// Why a negotiation fails: a login ends with "initiator error" (§6.2, §7.11). The peer is at
/// fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NegotiationError {
    /// A key came again (§6.2: at most once in a negotiation).
    #[error("{} was negotiated before", .0.name())]
    Again(Key),
    /// The answer to a key is none that what was proposed allows.
    #[error("the answer to {} is none of those offered", .0.name())]
    BadAnswer(Key),
    /// A declared number is out of the key's range (§13): it is not answered, so that the login
    /// fails (§7.11).
    #[error("{} is out of its range", .0.name())]
    OutOfRange(Key),
}

/// What a session and its connection work with (§13). Until it is negotiated, each has the RFC's
/// default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// Header and data digests.
    pub digests: Digests,
    /// Connections of the session.
    pub max_connections: u32,
    /// Whether a write waits for an R2T before its first data beyond the immediate.
    pub initial_r2t: bool,
    /// Whether a command may bring data.
    pub immediate_data: bool,
    /// Most bytes of a data segment that we receive; we declare it.
    pub max_recv_data: u32,
    /// Most bytes of a data segment that the peer receives.
    pub max_send_data: u32,
    /// Bytes of one sequence of Data-Ins or Data-Outs.
    pub max_burst: u32,
    /// Bytes of unsolicited data of one command; never more than `max_burst`.
    pub first_burst: u32,
    /// Seconds to wait before a reconnection.
    pub time2wait: u32,
    /// Seconds after that for which tasks are kept.
    pub time2retain: u32,
    /// R2Ts of one command at once.
    pub max_outstanding_r2t: u32,
    /// Whether the PDUs of a sequence come in order.
    pub data_pdu_in_order: bool,
    /// Whether the sequences of a command come in order.
    pub data_sequence_in_order: bool,
    /// Error recovery level.
    pub error_recovery: u32,
    /// Level of the protocol: 1 for RFC 7143.
    pub protocol_level: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            digests: Digests::default(),
            max_connections: 1,
            initial_r2t: true,
            immediate_data: true,
            max_recv_data: 8192,
            max_send_data: 8192,
            max_burst: 262_144,
            first_burst: 65_536,
            time2wait: 2,
            time2retain: 20,
            max_outstanding_r2t: 1,
            data_pdu_in_order: true,
            data_sequence_in_order: true,
            error_recovery: 0,
            protocol_level: 1,
        }
    }
}

impl Parameters {
    /// The limits of our targets: the largest values that we accept, digests as the initiator
    /// prefers, error recovery level 0, one connection.
    pub fn of_target() -> Self {
        Self {
            digests: Digests { header: true, data: true },
            initial_r2t: false,
            max_recv_data: ISCSI_DATA_MAX as u32,
            max_burst: 16 * 1024 * 1024 - 512,
            first_burst: ISCSI_DATA_MAX as u32,
            time2retain: 0,
            max_outstanding_r2t: 8,
            ..Self::default()
        }
    }

    fn number(&mut self, key: Key) -> Option<&mut u32> {
        Some(match key {
            Key::MaxConnections => &mut self.max_connections,
            Key::MaxBurstLength => &mut self.max_burst,
            Key::FirstBurstLength => &mut self.first_burst,
            Key::DefaultTime2Wait => &mut self.time2wait,
            Key::DefaultTime2Retain => &mut self.time2retain,
            Key::MaxOutstandingR2T => &mut self.max_outstanding_r2t,
            Key::ErrorRecoveryLevel => &mut self.error_recovery,
            Key::ProtocolLevel => &mut self.protocol_level,
            _ => return None,
        })
    }

    fn boolean(&mut self, key: Key) -> Option<&mut bool> {
        Some(match key {
            Key::InitialR2T => &mut self.initial_r2t,
            Key::ImmediateData => &mut self.immediate_data,
            Key::DataPduInOrder => &mut self.data_pdu_in_order,
            Key::DataSequenceInOrder => &mut self.data_sequence_in_order,
            Key::HeaderDigest => &mut self.digests.header,
            Key::DataDigest => &mut self.digests.data,
            _ => return None,
        })
    }
}

/// Keys that are negotiated here, in the order in which they are proposed.
const PROPOSED: [Key; 15] = [
    Key::HeaderDigest,
    Key::DataDigest,
    Key::MaxConnections,
    Key::InitialR2T,
    Key::ImmediateData,
    Key::MaxRecvDataSegmentLength,
    Key::MaxBurstLength,
    Key::FirstBurstLength,
    Key::DefaultTime2Wait,
    Key::DefaultTime2Retain,
    Key::MaxOutstandingR2T,
    Key::DataPduInOrder,
    Key::DataSequenceInOrder,
    Key::ErrorRecoveryLevel,
    Key::ProtocolLevel,
];

/// How far a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Progress {
    /// Neither side has sent a value.
    #[default]
    Untouched,
    /// We have proposed a value and wait for the answer.
    Proposed,
    /// A value is agreed on.
    Agreed,
}

/// One negotiation, from the first key to the full feature phase.
#[derive(Debug, Clone)]
pub struct Negotiation {
    side: Side,
    wishes: Parameters,
    result: Parameters,
    progress: Vec<Progress>,
    is_discovery: bool,
}

impl Negotiation {
    /// Begins one. `wishes` is what we would like, which the peer may lower (or raise) by the rule
    /// of each key; `max_recv_data` is declared as it is.
    pub fn new(side: Side, wishes: Parameters) -> Self {
        let result = Parameters { max_recv_data: 8192, ..Parameters::default() };
        let progress = vec![Progress::default(); Key::ALL.len()];
        Self { side, wishes, result, progress, is_discovery: false }
    }

    /// From now on this is a discovery session, in which many keys are irrelevant.
    pub const fn set_discovery(&mut self) {
        self.is_discovery = true;
    }

    /// What holds so far; what holds at all once both sides have gone on to the full feature phase.
    pub fn result(&self) -> Parameters {
        let first_burst = self.result.first_burst.min(self.result.max_burst);
        Parameters { first_burst, ..self.result }
    }

    /// Whether an answer of the peer is still missing.
    pub fn is_waiting(&self) -> bool {
        self.progress.contains(&Progress::Proposed)
    }

    fn progress(&mut self, key: Key) -> Option<&mut Progress> {
        let at = Key::ALL.iter().position(|other| *other == key)?;
        self.progress.get_mut(at)
    }

    /// Appends every key that was not negotiated yet, with our values.
    pub fn propose(&mut self, out: &mut Vec<u8>) {
        for key in PROPOSED {
            let skipped = self.is_discovery && key.is_irrelevant_in_discovery();
            if !skipped {
                self.propose_key(key, out);
            }
        }
    }

    /// Appends what we declare of ourselves, if that is not done: the length of data segments that
    /// we take. All else a target leaves to what the initiator proposes.
    pub fn declare(&mut self, out: &mut Vec<u8>) {
        self.propose_key(Key::MaxRecvDataSegmentLength, out);
    }

    fn propose_key(&mut self, key: Key, out: &mut Vec<u8>) {
        let mut wishes = self.wishes;
        if key == Key::MaxRecvDataSegmentLength {
            // Both sides declare this one, so that the peer's is kept apart.
            if self.result.max_recv_data != wishes.max_recv_data {
                self.result.max_recv_data = wishes.max_recv_data;
                put(out, key.name(), &wishes.max_recv_data.to_string());
            }
            return;
        }
        match self.progress(key) {
            Some(progress) if *progress == Progress::Untouched => *progress = Progress::Proposed,
            _ => return,
        }
        match key {
            Key::HeaderDigest | Key::DataDigest => {
                let wanted = wishes.boolean(key).is_some_and(|wanted| *wanted);
                put(out, key.name(), if wanted { "CRC32C,None" } else { NONE });
            }
            _ => {
                if let Some(wish) = wishes.number(key) {
                    put(out, key.name(), &wish.to_string());
                } else if let Some(wish) = wishes.boolean(key) {
                    put(out, key.name(), yes_no(*wish));
                }
            }
        }
    }

    /// Takes a pair of the peer: a proposal, which is answered into `out`, an answer, or a
    /// declaration. Unknown keys are answered with NotUnderstood.
    ///
    /// # Errors
    /// [`NegotiationError`]: the login fails.
    pub fn take(&mut self, pair: Pair<'_>, out: &mut Vec<u8>) -> Result<(), NegotiationError> {
        let Some(key) = Key::of(pair.key) else {
            if !matches!(pair.value, NOT_UNDERSTOOD | IRRELEVANT | REJECT) {
                put(out, pair.key, NOT_UNDERSTOOD);
            }
            return Ok(());
        };
        let waited = match self.progress(key) {
            Some(progress) => std::mem::replace(progress, Progress::Agreed),
            None => Progress::Untouched,
        };
        match waited {
            Progress::Agreed => Err(NegotiationError::Again(key)),
            Progress::Proposed => self.take_answer(key, pair.value),
            Progress::Untouched => {
                if let Some(answer) = self.answer(key, pair.value)? {
                    put(out, key.name(), &answer);
                }
                Ok(())
            }
        }
    }

    /// The answer to a proposal of the peer; `None` where none is due.
    fn answer(&mut self, key: Key, value: &str) -> Result<Option<String>, NegotiationError> {
        let allowed = match key.sender() {
            Sender::Both => true,
            Sender::Initiator => self.side == Side::Target,
            Sender::Target => self.side == Side::Initiator,
        };
        if !allowed {
            return Ok(Some(REJECT.to_owned()));
        }
        if self.is_discovery && key.is_irrelevant_in_discovery() {
            return Ok(Some(IRRELEVANT.to_owned()));
        }
        let answer = match key.rule() {
            Rule::Declared => return Ok(None),
            Rule::DeclaredNumber(range) => {
                let bytes = within(value, range).ok_or(NegotiationError::OutOfRange(key))?;
                if key == Key::MaxRecvDataSegmentLength {
                    self.result.max_send_data = bytes;
                }
                return Ok(None);
            }
            Rule::List => self.choose(key, value),
            Rule::And | Rule::Or => boolean(value).and_then(|theirs| self.combine(key, theirs)),
            Rule::Minimum(range) | Rule::Maximum(range) => {
                within(value, range).and_then(|theirs| self.settle(key, theirs))
            }
            Rule::Question | Rule::Chap | Rule::Obsolete => None,
        };
        Ok(Some(answer.unwrap_or_else(|| REJECT.to_owned())))
    }

    /// The number that results from the peer's and ours; `None` if no number can be agreed on.
    fn settle(&mut self, key: Key, theirs: u32) -> Option<String> {
        let ours = *self.wishes.number(key)?;
        let lower = matches!(key.rule(), Rule::Minimum(_));
        let mut result = if lower { theirs.min(ours) } else { theirs.max(ours) };
        // FirstBurstLength must not exceed MaxBurstLength (§13.14): what is agreed on first binds
        // the other.
        match key {
            Key::FirstBurstLength => result = result.min(self.result.max_burst),
            Key::MaxBurstLength if self.is_settled(Key::FirstBurstLength) => {
                let first_burst = self.result.first_burst;
                (result >= first_burst).then_some(())?;
            }
            _ => {}
        }
        *self.result.number(key)? = result;
        Some(result.to_string())
    }

    fn is_settled(&self, key: Key) -> bool {
        let at = Key::ALL.iter().position(|other| *other == key);
        at.and_then(|at| self.progress.get(at)) == Some(&Progress::Agreed)
    }

    fn combine(&mut self, key: Key, theirs: bool) -> Option<String> {
        let ours = *self.wishes.boolean(key)?;
        let result = if key.rule() == Rule::And { theirs && ours } else { theirs || ours };
        *self.result.boolean(key)? = result;
        Some(yes_no(result).to_owned())
    }

    /// The first value of a list that we can take.
    fn choose(&mut self, key: Key, list: &str) -> Option<String> {
        let mut values = list.split(',').take(ISCSI_LIST_MAX);
        if key == Key::TaskReporting {
            return values.find(|value| *value == "RFC3720").map(str::to_owned);
        }
        let wanted = self.wishes.boolean(key).is_some_and(|wanted| *wanted);
        let chosen = values.find(|value| *value == NONE || (wanted && *value == CRC32C))?;
        *self.result.boolean(key)? = chosen == CRC32C;
        Some(chosen.to_owned())
    }

    /// The peer's answer to what we have proposed.
    fn take_answer(&mut self, key: Key, value: &str) -> Result<(), NegotiationError> {
        // The default holds on, as the RFC has it for keys that end without a value.
        if matches!(value, NOT_UNDERSTOOD | IRRELEVANT | REJECT) {
            return Ok(());
        }
        let bad = NegotiationError::BadAnswer(key);
        let wish = self.wishes.number(key).map(|wish| *wish);
        match key.rule() {
            Rule::Minimum(range) | Rule::Maximum(range) => {
                let theirs = within(value, range).ok_or(bad)?;
                let lower = matches!(key.rule(), Rule::Minimum(_));
                let fits =
                    wish.is_some_and(|ours| if lower { theirs <= ours } else { theirs >= ours });
                let place = self.result.number(key).filter(|_| fits).ok_or(bad)?;
                *place = theirs;
            }
            Rule::And | Rule::Or => {
                let theirs = boolean(value).ok_or(bad)?;
                let ours = self.wishes.boolean(key).is_some_and(|ours| *ours);
                // Yes cannot come out of No and an AND, nor No out of Yes and an OR.
                let fits = if key.rule() == Rule::And { ours || !theirs } else { theirs || !ours };
                let place = self.result.boolean(key).filter(|_| fits).ok_or(bad)?;
                *place = theirs;
            }
            Rule::List => {
                let wanted = self.wishes.boolean(key).is_some_and(|wanted| *wanted);
                let fits = value == NONE || (wanted && value == CRC32C);
                let place = self.result.boolean(key).filter(|_| fits).ok_or(bad)?;
                *place = value == CRC32C;
            }
            _ => return Err(bad),
        }
        Ok(())
    }
}

fn within(value: &str, range: Range) -> Option<u32> {
    keys::number(value).filter(|number| (range.min..=range.max).contains(number))
}

/// A pair in the full feature phase (§6.3 defines which may come there): `Some` bytes of the peer's
/// new MaxRecvDataSegmentLength. SendTargets is the caller's; all others are refused into `out`.
pub fn take_in_full_feature(pair: Pair<'_>, out: &mut Vec<u8>) -> Option<u32> {
    match Key::of(pair.key) {
        None => put(out, pair.key, NOT_UNDERSTOOD),
        Some(key @ Key::MaxRecvDataSegmentLength) => {
            let bytes = within(pair.value, keys::LENGTH);
            if bytes.is_none() {
                put(out, key.name(), REJECT);
            }
            return bytes;
        }
        Some(Key::InitiatorAlias | Key::TargetAlias) => {}
        Some(key) => put(out, key.name(), REJECT),
    }
    None
}
