//! What comes of samples: figures, deviations, what is never a figure, text and page.

use super::*;

/// A sweep with one good point, one that is off, and one that the link has spoiled.
pub(crate) fn made_up() -> Sweep {
    let mut plan = Plan::figure(5, 100_000_000).unwrap();
    (plan.rtt_ms, plan.encrypt) = (vec![200.0], vec![false]);
    plan.windows.drain(..2);
    let mut points: Vec<Point> = plan.points().into_iter().map(Point::new).collect();
    for (point, part) in points.iter_mut().zip([0.98, 0.5]) {
        let predicted = plan.predicted(&point.at, 0.2002);
        point.samples = (0..3)
            .map(|round| Sample {
                round,
                // Whole ones are the same when they have been text.
                bytes_s: (predicted * (part + 0.01 * f64::from(round))).round(),
                rtt_s: 0.2002,
                tcp: Some(Tcp { elapsed_us: 1_000_000, min_rtt_us: 200_200, ..Tcp::default() }),
            })
            .collect();
    }
    points[2].spoiled = vec!["forth: the bridge was starved </script>".to_owned()];
    let mut sweep = Sweep {
        kind: "sweep".into(),
        format: VERSION,
        program: "plimsoll".into(),
        started: 1_700_000_000.0,
        ended: 1_700_000_060.0,
        link_bytes_s: plan.link(),
        plan,
        command: vec!["plimsoll".into(), "lab".into(), "sweep".into()],
        machine: serde_json::Value::Null,
        points,
        degraded: Vec::new(),
    };
    sweep.derive();
    sweep
}

#[test]
fn figures_are_medians_next_to_the_model() {
    let sweep = made_up();
    let good = sweep.points[0].figures.unwrap();
    assert!((good.off_percent + 1.0).abs() < 0.01 && good.is_near(), "{good:?}");
    assert_eq!(good.limiter, Limiter::Acknowledgements);
    // 16 MiB at 200 ms carry 77 MB/s on the source's link.
    assert!((good.source_bytes_s.unwrap() - 77e6 * 0.99).abs() < 1e6, "{good:?}");
    let off = sweep.points[1].figures.unwrap();
    assert!((off.off_percent + 49.0).abs() < 0.01 && !off.is_near(), "{off:?}");
}

#[test]
fn points_that_the_link_has_spoiled_are_reported_without_a_figure() {
    let sweep = made_up();
    assert_eq!(sweep.points[2].figures, None);
    assert_eq!(sweep.degraded.len(), 2, "{:?}", sweep.degraded);
    assert!(sweep.degraded[0].contains("-49.0 % off"), "{:?}", sweep.degraded);
    assert!(sweep.degraded[1].contains("invalid") && sweep.degraded[1].contains("starved"));
}

#[test]
fn a_point_that_is_abandoned_states_its_reason() {
    let mut sweep = made_up();
    sweep.points[0].failed = Some("no such congestion control".to_owned());
    sweep.derive();
    assert!(sweep.degraded[0].contains("abandoned: no such"), "{:?}", sweep.degraded);
}

#[test]
fn what_is_written_is_read_and_other_kinds_are_none() {
    let dir = std::env::temp_dir().join(format!("plimsoll-sweep-record-{}", std::process::id()));
    let sweep = made_up();
    sweep.write(&dir).unwrap();
    let mut read = Sweep::read(&dir).unwrap().unwrap();
    let figures = |sweep: &Sweep| sweep.points.iter().map(|p| p.figures).collect::<Vec<_>>();
    for (read, own) in figures(&read).into_iter().zip(figures(&sweep)) {
        let off = |figures: Option<Figures>| figures.map_or(0.0, |f| f.off_percent);
        assert!(read.is_some() == own.is_some() && (off(read) - off(own)).abs() < 1e-9);
    }
    // The last bit of a figure may be lost in text; those of the samples, which are whole, are not.
    read.derive();
    assert_eq!(read, sweep);
    assert_eq!(crate::transfer::Comparison::read(&dir).unwrap(), None);
    let newer = Sweep { format: VERSION + 1, ..sweep };
    newer.write(&dir).unwrap();
    assert!(Sweep::read(&dir).is_err());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn the_text_has_every_point_with_what_limits_it() {
    let text = made_up().text();
    let row = text.lines().find(|line| line.contains("-1.0 %")).unwrap_or_else(|| panic!("{text}"));
    assert!(row.contains("200 ms") && row.contains("waiting for acknowledgements"), "{row}");
    assert!(row.contains("16 MiB"), "the source's buffer: {row}");
    assert!(text.lines().any(|line| line.ends_with("SPOILED")), "{text}");
    assert!(text.contains("degraded: "), "{text}");
}

#[test]
fn the_page_carries_the_sweep_and_loads_nothing_from_other_hosts() {
    let sweep = made_up();
    let page = crate::report::sweep_page(&sweep);
    assert!(!page.contains("{{") && !page.contains("/*PANELS*/"), "all is filled in");
    for outside in ["src=", "@import", "url(", "fetch(", "https://"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let read: Sweep = serde_json::from_str(data).unwrap();
    assert_eq!(read.points.len(), 3);
    assert_eq!(read.points[2].spoiled, sweep.points[2].spoiled);
}
