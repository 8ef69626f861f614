//! A query of the log's records.

use base::clock::NS_PER_S;

use super::record::{self, Record};

/// Which records; all conditions hold together.
#[derive(Debug, Clone, Default)]
pub struct TransferFilter {
    /// Those that ended at this second or later, in seconds since the Unix epoch.
    pub since: Option<u64>,
    /// Those that ended before this second.
    pub until: Option<u64>,
    /// Over this protocol.
    pub protocol: Option<String>,
    /// This way.
    pub direction: Option<String>,
    /// That ended so.
    pub outcome: Option<String>,
    /// By this user.
    pub user: Option<String>,
    /// From this address.
    pub client: Option<String>,
    /// On this share.
    pub share: Option<String>,
    /// The maximum number of records, the newest ones.
    pub limit: usize,
}

/// [`TransferFilter`] in the form that records are held against.
pub(super) struct Matcher<'a> {
    wanted: &'a TransferFilter,
    since: Option<String>,
    until: Option<String>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(wanted: &'a TransferFilter) -> Self {
        let text = |second: Option<u64>| Some(record::time(second?.saturating_mul(NS_PER_S)));
        Self { wanted, since: text(wanted.since), until: text(wanted.until) }
    }

    /// Whether the record matches.
    pub(super) fn takes(&self, record: &Record) -> bool {
        let is = |want: &Option<String>, has: &str| want.as_ref().is_none_or(|want| want == has);
        let TransferFilter { protocol, direction, outcome, user, client, share, .. } = self.wanted;
        self.since.as_ref().is_none_or(|since| record.end >= *since)
            && self.until.as_ref().is_none_or(|until| record.end < *until)
            && is(protocol, &record.protocol)
            && is(direction, &record.direction)
            && is(outcome, &record.outcome)
            && is(user, &record.user)
            && is(client, &record.client)
            && is(share, &record.share)
    }
}
