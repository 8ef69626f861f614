//! What observes the network and takes steps, and how a state is reached with it.

use std::collections::BTreeSet;

use crate::plan::plan;
use crate::state::State;
use crate::step::Step;

/// How often the state is observed and planned for again after all steps were taken: once for what
/// a kernel has changed along the way, once more for what that brings about.
const ROUNDS_MAX: usize = 3;

/// Why a back end has not done something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The state cannot be observed.
    #[error("cannot observe the network: {0}")]
    Observe(String),
    /// The kernel has refused a step.
    #[error("cannot {step}: {why}")]
    Refused {
        /// Which step, in words.
        step: String,
        /// The kernel's reason.
        why: String,
    },
    /// This back end takes no steps.
    #[error("the network can only be observed: {0}")]
    ObserveOnly(String),
    /// All steps were taken, and the state is another one.
    #[error("the network is not as planned after {ROUNDS_MAX} attempts; next: {0}")]
    Unreached(String),
}

/// A network that can be observed and changed.
pub trait Backend {
    /// The state as it is now.
    ///
    /// # Errors
    /// Why it cannot be observed.
    fn observe(&mut self) -> Result<State, Failure>;

    /// Takes a step.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    fn take(&mut self, step: &Step) -> Result<(), Failure>;
}

/// A back end that takes no steps.
#[derive(Debug)]
pub struct ObserveOnly<B> {
    backend: B,
    reason: String,
}

impl<B: Backend> ObserveOnly<B> {
    /// Observes by `backend`; `reason` is why it takes no steps.
    pub fn new(backend: B, reason: &str) -> Self {
        Self { backend, reason: reason.to_owned() }
    }
}

impl<B: Backend> Backend for ObserveOnly<B> {
    fn observe(&mut self) -> Result<State, Failure> {
        self.backend.observe()
    }

    fn take(&mut self, _step: &Step) -> Result<(), Failure> {
        Err(Failure::ObserveOnly(self.reason.clone()))
    }
}

/// Takes steps until the observed state is `target`; `adopted` are the names of links that Plimsoll
/// has not made and may change. Returns the number of steps.
///
/// # Errors
/// The first step that is refused, or a state that is not reached.
pub fn reach(
    backend: &mut dyn Backend,
    target: &State,
    adopted: &BTreeSet<String>,
) -> Result<usize, Failure> {
    let mut taken = 0;
    for _ in 0..ROUNDS_MAX {
        let steps = plan(&backend.observe()?, target, adopted);
        if steps.is_empty() {
            return Ok(taken);
        }
        for step in &steps {
            backend.take(step)?;
            taken += 1;
        }
    }
    match plan(&backend.observe()?, target, adopted).first() {
        None => Ok(taken),
        Some(step) => Err(Failure::Unreached(step.to_string())),
    }
}
