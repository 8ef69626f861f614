//! The second in which a process ends and the next one begins: it is on disk with what the former
//! one had, and operations of the next one in it are counted with the second after it.

use probe::schema::{Source, schema};

use crate::model::{Frame, Sum, Table};

/// The operations of a frame of a second that is on disk already, to be added up. Levels of the
/// rest of a second are left out.
pub(super) fn operations(frame: &Frame) -> Frame {
    let is_of_operations = |table: &&Table| {
        let id = table.stat.split_once('.');
        id.and_then(|(group, metric)| schema().statistic(group, metric))
            .is_some_and(|statistic| statistic.source == Source::Operations)
    };
    let tables = frame.tables.iter().filter(is_of_operations).cloned().collect();
    Frame { covered: 0, tables, ..*frame }
}

/// A frame with what was left of the second before it.
pub(super) fn together(frame: &Frame, rest: &Frame) -> Frame {
    let mut sum = Sum::new(frame.time, frame.span);
    sum.add(frame);
    sum.add(rest);
    sum.finish()
}
