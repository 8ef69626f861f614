//! What a table takes, and gives back.

use super::*;
use engine::transport::budget::Limits;

fn budget(bytes: usize) -> CoreBudget {
    CoreBudget::new(Limits { bytes, ..Limits::default() }, 1)
}

#[test]
fn records_come_as_they_were_added_and_everything_is_given_back() {
    let (budget, mut table) = (budget(8 << 20), Table::default());
    let record = |n: usize| format!("{n}:{}", "r".repeat(n % 700)).into_bytes();
    for n in 0..3_000 {
        assert!(table.add(&record(n), &budget));
    }
    assert_eq!(table.count(), 3_000);
    assert!(!budget.has_bytes((8 << 20) - 900_000), "it is in the account");
    let mut all = Vec::new();
    while let Some(piece) = table.take(&budget) {
        all.extend(piece);
    }
    assert_eq!(all, (0..3_000).flat_map(record).collect::<Vec<u8>>());
    assert!(budget.has_bytes(8 << 20));
    assert!(table.add(b"one more", &budget));
    table.clear(&budget);
    assert!(budget.has_bytes(8 << 20));
}

#[test]
fn there_is_an_end_to_what_one_takes() {
    let (budget, mut table) = (budget(1 << 20), Table::default());
    let record = vec![b'r'; 60_000];
    let added = (0..100).take_while(|_| table.add(&record, &budget)).count();
    assert!((1..18).contains(&added), "{added} records");
    assert!(!table.is_full(60_000) && table.is_full(HTTP_ARCHIVE_TABLE_MAX));
    table.clear(&budget);
    assert!(budget.has_bytes(1 << 20));
}
