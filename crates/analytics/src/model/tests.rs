//! A sum stays within its bound, and reports its error.

use super::*;

fn client(n: u64) -> Key {
    Key::Name(Name::plain(&format!("client {n}")))
}

#[test]
fn a_sum_of_many_elements_keeps_the_busiest_within_its_bound() {
    let ops: Vec<Key> = (0..8).map(|n| Key::Name(Name::plain(&format!("op {n}")))).collect();
    let mut sum = Sum::new(0, 60);
    let mut most = 0;
    for second in 0..60 {
        let mut rows = Rows::default();
        // One that is always there, and others that never come again.
        for n in std::iter::once(0).chain(1 + second * 150..151 + second * 150) {
            let figures = [if n == 0 { 1000 } else { 1 + n % 3 }, 4096];
            ops.iter().for_each(|op| rows.add(client(n), op.clone(), figures));
        }
        let by = ["client".into(), "op".into()];
        let table = Table::from_rows("nfs3.ops".into(), by, rows, [0; 2]);
        sum.add(&Frame { time: second, span: 1, covered: 1, dropped: 0, tables: vec![table] });
        most = most.max(sum.tables[0].1.0.len());
    }
    assert!((SUM_ROWS_MAX / 2..=SUM_ROWS_MAX).contains(&most), "{most} rows");
    let minute = sum.finish();
    let table = &minute.tables[0];
    let of = |key: &Key| table.rows.iter().filter(|r| r.0 == *key).map(|r| r.2[0]).sum::<u64>();
    assert_eq!(of(&client(0)), 60 * 8 * 1000);
    let all: u64 = (1..=60 * 150).map(|n| 8 * (1 + n % 3)).sum();
    assert_eq!(table.total[0], 60 * 8 * 1000 + all);
    assert_eq!(table.rows.iter().map(|r| r.2[0]).sum::<u64>(), table.total[0]);
    // What a client may lack: the greatest that was cut at each time, no more.
    let (lost, times) = (8 * 3, 3);
    assert!((lost..=2 * lost * times).contains(&table.error[0]), "{:?}", table.error);
}

#[test]
fn samples_beyond_the_range_of_one_figure_are_ranked_and_bounded_as_one_number() {
    let mut rows = Rows::default();
    let figures = [[9, 0], [u64::MAX, 0], [3, 1], [5, 0]];
    (0..).zip(figures).for_each(|(n, figures)| rows.add(client(n), Key::Other, figures));
    let by = ["client".into(), "".into()];
    let mut table = Table::from_rows("tcp.rtt".into(), by, rows, [0; 2]);
    assert_eq!(table.total, [16, 2]);
    table.trim(1);
    let kept = |key: Key| table.rows.iter().find(|row| row.0 == key).map(|row| row.2);
    assert_eq!((kept(client(2)), kept(Key::Other)), (Some([3, 1]), Some([13, 1])));
    assert_eq!((table.error, table.total), ([u64::MAX, 0], [16, 2]));
    // Twice as much may be missing then, of more than that.
    table.error = [7, 2];
    table.tighten();
    assert_eq!(table.error, [13, 1]);
}
