//! Requests have rows, a scale and the words of a command.

use super::*;

#[test]
fn a_request_has_the_words_of_its_command() {
    let mut suite = SuiteRequest::new(Name::Seqread);
    assert_eq!(suite.words(), ["seqread"]);
    (suite.sizes, suite.threads) = (vec![1, 65_536], vec![1, 3]);
    (suite.size, suite.quick) = (Some(1 << 20), true);
    let words = "seqread --sizes 1,65536 --threads 1,3 --file-size 1048576 --quick";
    assert_eq!(suite.words().join(" "), words);
    let mut table = SuiteRequest::new(Name::FilebenchSuite);
    (table.rows, table.seconds) = (vec!["create-16".into()], [5, 7]);
    table.settings = vec!["block=4k".into()];
    let words = "filebench-suite --rows create-16 --seconds 5 --write-seconds 7 --set block=4k";
    assert_eq!(table.words().join(" "), words);
}

#[test]
fn rows_have_the_clients_and_the_space_of_their_sets() {
    let mut suite = SuiteRequest::new(Name::Seqread);
    suite.quick = true;
    let (rows, scale) = suite.rows(18).expect("rows");
    assert_eq!(rows.len(), SIZES.len());
    assert!(scale.contains("18 clients (source: 8), a file of 1 MiB"), "{scale}");
    // Five threads of each client have a file of their own.
    assert_eq!(space(&rows), (18 * 5) << 20);
    let table = SuiteRequest { quick: true, ..SuiteRequest::new(Name::FilebenchSuite) };
    let (rows, _) = table.rows(2).expect("rows");
    assert_eq!(space(&rows), (3 * 2 * 5) << 20, "three sets");
    suite.sizes = vec![0];
    let why = suite.rows(1).expect_err("refused").to_string();
    assert!(why.contains("from 1 to 1m"), "{why}");
}
