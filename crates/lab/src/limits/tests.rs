//! Rows say where to look, as a URL path and as a command.

use super::*;
use crate::report::tests::made_up;

#[test]
fn a_row_names_value_load_limiter_and_interval() {
    let row = row(&made_up());
    assert_eq!((row.clients, row.threads, row.text.as_str()), (8, 3, "1.2 K ops/s"));
    assert_eq!(row.report, "iops-4k/report.html");
    assert!(row.analytics.starts_with("/analytics?w=nfs3.ops%5Bclient%5D&w="));
    let command = &row.command;
    assert!(command.starts_with("plimsoll analytics show 'nfs3.ops[client]' --from "), "{command}");
    assert!(command.ends_with('Z') && command.matches("Z").count() == 2, "{command}");
    assert_eq!(row.doubts, ["lost client 1: <killed>"]);
}

#[test]
fn the_text_has_a_line_for_each_row() {
    let text = summarise(&[made_up(), made_up()]).text();
    assert_eq!(text.matches("8 × 3").count(), 2);
}

#[test]
fn what_the_generator_limits_is_a_lower_bound() {
    let mut result = made_up();
    if let Some(limit) = &mut result.limit {
        limit.limiter = Limiter::Generator;
    }
    assert_eq!(row(&result).text, "at least 1.2 K ops/s");
}
