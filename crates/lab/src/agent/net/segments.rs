//! Segments that leave TCP while a transaction runs, by what handed them to the adapter, if this
//! process may have programs in the kernel.

use super::message::{ContextCount, Segments};
use host::Root;
use host::segments::{Context, Count, Observer, Tier};

const CONTEXTS: usize = Context::ALL.len();

/// What counts them.
pub(super) struct SegmentCounter {
    observer: Option<Observer>,
    source: String,
    before: [Count; CONTEXTS],
}

impl SegmentCounter {
    /// Loads the programs, or notes why it does not.
    pub fn start() -> Self {
        let (observer, source) = match Observer::start_sent(&Root::default()) {
            Ok(observer) => (Some(observer), Tier::Programs.to_string()),
            Err(why) => (None, format!("segments are not counted: {why}")),
        };
        Self { observer, source, before: [Count::default(); CONTEXTS] }
    }

    fn counts(&self) -> [Count; CONTEXTS] {
        let mut sums = [Count::default(); CONTEXTS];
        let counts = self.observer.as_ref().and_then(|observer| observer.counts().ok());
        for (key, count) in counts.into_iter().flatten() {
            let at = Context::ALL.iter().position(|context| *context == key.context);
            if let Some(sum) = at.and_then(|at| sums.get_mut(at)) {
                *sum = sum.plus(count);
            }
        }
        sums
    }

    /// A transaction begins.
    pub fn begin(&mut self) {
        self.before = self.counts();
    }

    /// What left since then.
    pub fn since(&self) -> Segments {
        let each = Context::ALL.iter().zip(self.counts().into_iter().zip(self.before));
        let each = each.map(|(context, (now, before))| (context, now.since(before)));
        let contexts = each.filter(|(_, count)| count.segments > 0);
        let context = |(context, count): (&Context, Count)| ContextCount {
            context: context.name().to_owned(),
            segments: count.segments,
            bytes: count.bytes,
            squares: count.squares,
        };
        Segments { source: self.source.clone(), contexts: contexts.map(context).collect() }
    }
}
