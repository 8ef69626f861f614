//! What an RPC program is to the connection that serves it: procedures, what a call needs, how it
//! ends.

use probe::op::{OpRecord, Protocol};
use vfs::status::Status;
use wire::rpc::CallHeader;
use wire::xdr::{DecodeError, Reader};

use super::caller::Caller;
use engine::exec;
use engine::transport::Budgets;
use engine::transport::buffers::ReplyBuf;

/// An RPC program in one version.
pub trait Program: Send + Sync {
    /// Its number.
    fn number(&self) -> u32;

    /// Its version.
    fn version(&self) -> u32;

    /// What its operations are counted as.
    fn protocol(&self) -> Protocol;

    /// The procedure, if there is one of this number.
    fn procedure(&self, number: u32) -> Option<Procedure>;

    /// Whether doing this very call twice is not the same as doing it once, so that its results
    /// are kept for a repeat; what that is to be counted as goes into `facts`.
    fn is_non_idempotent(
        &self,
        procedure: Procedure,
        _: &Reader<'_>,
        _facts: &mut OpRecord,
    ) -> bool {
        procedure.non_idempotent
    }

    /// Whether `caller` may call the procedure with these arguments; also settles the identity it
    /// acts with.
    ///
    /// # Errors
    /// What to fail with.
    fn admit(&self, _: Procedure, _: &Reader<'_>, caller: &mut Caller) -> Result<(), Status> {
        caller.leave();
        Ok(())
    }

    /// Most bytes that the reply to a call with these arguments may have: so much of the budget is
    /// taken when it is handed to the pool, and given back when its reply has been sent.
    fn reply_max(&self, procedure: Procedure, args: &Reader<'_>) -> usize;

    /// Does a call.
    ///
    /// # Errors
    /// The arguments are garbage; nothing was done.
    fn handle(&self, procedure: Procedure, call: &mut Call<'_>) -> Handled;

    /// Whether the results of a procedure have a status that can express a failure; where they have
    /// none, the reply is RPC's SYSTEM_ERR.
    fn has_status(&self, procedure: u32) -> bool {
        procedure != 0
    }

    /// Writes the results of a call that failed without its handler, with nothing but the status
    /// in them; returns the status as statistics have it.
    fn fail(&self, procedure: u32, status: Status, out: &mut ReplyBuf) -> u16;
}

/// A procedure of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Procedure {
    /// Its number.
    pub number: u32,
    /// Whether doing it twice is not the same as doing it once.
    pub non_idempotent: bool,
}

/// A call in the hands of its program.
pub struct Call<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// False on a connection's thread: reply from memory, or return that it would block.
    pub may_block: bool,
    /// The arguments.
    pub args: Reader<'a>,
    /// Where the results are written, behind what is there already.
    pub out: &'a mut ReplyBuf,
    /// The facts of the operation. With protocol 0 it is not counted: those in `more` are.
    pub facts: &'a mut OpRecord,
    /// Facts of further operations of the same call.
    pub more: &'a mut Vec<OpRecord>,
    /// Where a panic that the program contains itself is counted.
    pub budgets: &'a Budgets,
}

/// What a step of a call came to.
pub type DispatchResult = exec::DispatchResult<Box<dyn Resume>, Box<dyn OnFlushed>>;

/// What a program returns; an error is GARBAGE_ARGS.
pub type Handled = Result<DispatchResult, DecodeError>;

/// A call that was begun, to be resumed where it may block.
pub trait Resume: Send {
    /// Resumes it. Nothing of its results is in `call.out` yet; the arguments are where they were.
    fn resume(self: Box<Self>, call: &mut Call<'_>) -> DispatchResult;

    /// Whether it can be abandoned without an effect: nothing was changed so far.
    fn can_stop(&self) -> bool;

    /// Abandons it, as if the call had never come: its connection has ended.
    fn abandon(self: Box<Self>);
}

/// What must see how the flush of a call ended.
pub trait OnFlushed: Send {
    /// The protocol of the call: its program writes the failure if this panics.
    fn protocol(&self) -> Protocol;

    /// The flush has ended: updates `results`, and adds the operations to be counted to `more`.
    fn flushed(
        self: Box<Self>,
        outcome: Result<(), Status>,
        results: &mut Vec<u8>,
        more: &mut Vec<OpRecord>,
    );
}

/// A call with its decoded header.
pub(super) struct DecodedCall<'a, 'p> {
    pub(super) program: &'p dyn Program,
    pub(super) procedure: Procedure,
    pub(super) header: CallHeader<'a>,
    pub(super) args: Reader<'a>,
}

#[cfg(test)]
mod tests;
