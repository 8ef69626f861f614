//! Figures of a network profile.

use crate::net::record::tests::net_result;
use crate::report::Figures;

#[test]
fn figures_show_both_ends_and_what_tcp_says() {
    let text = Figures::of_net(&net_result()).text();
    for part in ["failed: why", "0.0000 %", "1.00 + 2.00 s", "1.50 s/GB", "retransmits"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let segments = Figures::of_net(&net_result()).sections;
    let segments = segments.iter().find(|section| section.id == "segments").expect("segments");
    let row = |at: usize| segments.rows[at].join(" ");
    assert_eq!(row(0), "sender 3 75.0 % 293 KiB 100000 B 100000 B");
    assert!(row(2).starts_with("all 4 100.0 %"), "{segments:?}");
    assert!(segments.sentences[0].starts_with("the source saw 40 KiB"), "{segments:?}");
    let page = Figures::of_net(&net_result()).html();
    assert!(page.contains("figures-ends"), "{page}");
}
