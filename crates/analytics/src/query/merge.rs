//! Answers of several servers to one question, as one: of the resources of a cluster, each of which
//! has its own server and its own store.

use super::{Bucket, Data, Other, PhaseTime, Row, Source};

/// Why answers cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There is none.
    #[error("there is no answer")]
    None,
    /// Their times differ: they must be queried again with this step.
    #[error("the answers have different steps")]
    Step(u64),
    /// They are not of the same interval.
    #[error("the answers are not of the same interval")]
    Interval,
}

/// Merges answers to the same question: values of the same time and element are added, and are
/// missing where all miss them. At most `top` rows stay; the others are added to `other`.
///
/// # Errors
/// [`MergeError`].
pub fn merge(answers: &[Data], top: usize) -> Result<Data, MergeError> {
    let first = answers.first().ok_or(MergeError::None)?;
    let step = answers.iter().map(|one| one.step).max().unwrap_or(first.step);
    if answers.iter().any(|one| one.step != step) {
        return Err(MergeError::Step(step));
    }
    if answers.iter().any(|one| one.times != first.times || one.stat != first.stat) {
        return Err(MergeError::Interval);
    }
    let mut total = Vec::new();
    let mut dropped = vec![0_u64; first.times.len()];
    let mut other: Option<Vec<Option<f64>>> = None;
    for one in answers {
        add(&mut total, &one.total);
        dropped.iter_mut().zip(&one.dropped).for_each(|(sum, more)| *sum += more);
        if let Some(more) = &one.other {
            add(other.get_or_insert_default(), &more.values);
        }
    }
    let has_rows = answers.iter().any(|one| one.rows.is_some());
    let (rows, cut) = cut(rows(answers), top);
    if !cut.is_empty() {
        cut.iter().for_each(|row| add(other.get_or_insert_default(), &row.values));
    }
    let has_buckets = answers.iter().any(|one| one.buckets.is_some());
    let from_recorder = answers.iter().any(|one| one.source == Source::Recorder);
    let notes: Vec<&str> = answers.iter().filter_map(|one| one.note.as_deref()).collect();
    Ok(Data {
        total,
        dropped,
        rows: has_rows.then_some(rows),
        other: other.map(|values| Other { average: average(&values), values }),
        buckets: has_buckets.then(|| buckets(answers)),
        source: if from_recorder { Source::Recorder } else { Source::Store },
        exact: answers.iter().all(|one| one.exact),
        error_bound: answers.iter().map(|one| one.error_bound).sum(),
        note: (!notes.is_empty()).then(|| notes.join(" ")),
        ..first.clone()
    })
}

/// Adds values of the same times.
fn add(sum: &mut Vec<Option<f64>>, more: &[Option<f64>]) {
    if sum.len() < more.len() {
        sum.resize(more.len(), None);
    }
    for (sum, more) in sum.iter_mut().zip(more) {
        if let Some(more) = more {
            *sum = Some(sum.unwrap_or(0.0) + more);
        }
    }
}

/// Mean of the values that are there.
fn average(values: &[Option<f64>]) -> f64 {
    let (count, sum) =
        values.iter().flatten().fold((0_u32, 0.0), |(n, sum), value| (n + 1, sum + value));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// The rows of all, the greatest first.
fn rows(answers: &[Data]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for row in answers.iter().flat_map(Data::rows) {
        match rows.iter_mut().find(|one| one.key == row.key) {
            Some(one) => add(&mut one.values, &row.values),
            None => rows.push(row.clone()),
        }
    }
    rows.iter_mut().for_each(|row| row.average = average(&row.values));
    times(&mut rows, answers);
    rows.sort_by(|a, b| b.average.total_cmp(&a.average).then_with(|| a.key.cmp(&b.key)));
    rows
}

/// Times of phases: means over the operations of all answers.
fn times(rows: &mut [Row], answers: &[Data]) {
    let is_of_phases = |row: &&mut Row| row.time.is_some();
    let mut all_ns = 0.0;
    for row in rows.iter_mut().filter(is_of_phases) {
        let time = time_of(&row.key, answers);
        all_ns += time.average_ns;
        row.time = Some(time);
    }
    for time in rows.iter_mut().filter_map(|row| row.time.as_mut()).filter(|_| all_ns > 0.0) {
        time.share = time.average_ns / all_ns;
    }
}

/// The time of a phase, without its share. Answers without it have operations, and no time in it.
fn time_of(key: &str, answers: &[Data]) -> PhaseTime {
    let steps = answers.first().map_or(0, |one| one.times.len());
    let (mut ns, mut operations) = (vec![0.0; steps], vec![0.0; steps]);
    for answer in answers {
        let row = answer.rows().iter().find(|row| row.key == key);
        let own = row.and_then(|row| row.time.as_ref());
        for (at, count) in answer.total.iter().enumerate().take(steps) {
            let count = count.unwrap_or(0.0);
            let mean = own.and_then(|own| own.values_ns.get(at).copied().flatten());
            operations[at] += count;
            ns[at] += count * mean.unwrap_or(0.0);
        }
    }
    let mean = |(ns, count): (&f64, &f64)| (*count > 0.0).then(|| ns / count);
    let values_ns = ns.iter().zip(&operations).map(mean).collect();
    let (ns, count) = (ns.iter().sum::<f64>(), operations.iter().sum::<f64>());
    let average_ns = if count > 0.0 { ns / count } else { 0.0 };
    PhaseTime { average_ns, share: 0.0, values_ns }
}

/// The first rows, and those that are too many.
fn cut(mut rows: Vec<Row>, top: usize) -> (Vec<Row>, Vec<Row>) {
    let rest = rows.split_off(top.min(rows.len()));
    (rows, rest)
}

/// The ranges of all, the lowest first.
fn buckets(answers: &[Data]) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = Vec::new();
    for bucket in answers.iter().flat_map(Data::buckets) {
        match buckets.iter_mut().find(|one| (one.low, one.high) == (bucket.low, bucket.high)) {
            Some(one) => add(&mut one.values, &bucket.values),
            None => buckets.push(bucket.clone()),
        }
    }
    buckets.iter_mut().for_each(|bucket| bucket.average = average(&bucket.values));
    buckets.sort_by_key(|bucket| bucket.low);
    buckets
}

/// Intervals without data in an answer, before `end`: their starts, and their ends, not included.
pub fn gaps(data: &Data, end: u64) -> Vec<(u64, u64)> {
    let mut gaps: Vec<(u64, u64)> = Vec::new();
    for (time, value) in data.times.iter().zip(&data.total) {
        let until = (time + data.step).min(end);
        if value.is_some() || until <= *time {
            continue;
        }
        match gaps.last_mut() {
            Some((_, last)) if *last == *time => *last = until,
            _ => gaps.push((*time, until)),
        }
    }
    gaps
}

#[cfg(test)]
mod tests;
