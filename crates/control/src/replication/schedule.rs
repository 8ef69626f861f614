//! When an action is due. Pure: the time and the zone are handed in. Times of day at which clocks
//! change are resolved by [`base::local_time::utc_of`]: once a day, whatever clocks do.

use base::local_time::utc_of;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// When runs begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// When a user starts them.
    Off,
    /// Whenever the time since the epoch is a multiple of this number of seconds: every hour is at
    /// the full hour, whenever the server was started.
    Every(u64),
    /// Each day at this minute since midnight, as clocks here show it.
    Daily(u16),
}

/// Seconds that clocks are ahead of UTC at a second since the epoch.
pub type Offset<'a> = &'a dyn Fn(u64) -> i64;

impl Schedule {
    /// The first time after `after` that a run is due, in seconds since the epoch; never when it is
    /// off. Where clocks skip the time of day, it is as much later as they are set forward; where
    /// they show it twice, it is the first of both.
    pub fn next(self, after: u64, offset: Offset<'_>) -> Option<u64> {
        match self {
            Self::Off => None,
            Self::Every(0) => None,
            Self::Every(seconds) => Some((after / seconds).saturating_add(1).checked_mul(seconds)?),
            Self::Daily(minute) => daily(i64::from(minute), after, offset),
        }
    }

    /// Whether a run is due at `now`, if all up to `looked` has been seen to: once, however often
    /// it would have been due meanwhile.
    pub fn is_due(self, looked: u64, now: u64, offset: Offset<'_>) -> bool {
        self.next(looked, offset).is_some_and(|next| next <= now)
    }
}

fn daily(minute: i64, after: u64, offset: Offset<'_>) -> Option<u64> {
    let here = offset(after);
    let midnight = i64::try_from(after).ok()?.checked_add(here)?.div_euclid(DAY) * DAY;
    // Yesterday's may still come where clocks are set back; the day after tomorrow's is enough.
    let days = (-1..=2).map(|day| midnight + day * DAY + minute * 60);
    let ahead = |second: i64| offset(u64::try_from(second).unwrap_or(0));
    let times = days.filter_map(|shown| u64::try_from(utc_of(shown, &ahead)?).ok());
    times.filter(|time| *time > after).min()
}
