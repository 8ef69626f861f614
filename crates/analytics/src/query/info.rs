//! What can be queried, how far the recorder reaches, how full the budgets are.

use base::clock::NS_PER_S;
use probe::schema::{Kind, schema};

use super::{BreakdownInfo, Budget, Engine, RecorderInfo, StatisticInfo};

impl Engine {
    /// Every statistic with its breakdowns, in the order of menus.
    pub fn statistics() -> Vec<StatisticInfo> {
        let breakdown = |id: &String| {
            let b = schema().breakdown(id)?;
            let (id, sentence, unit) = (b.id.clone(), b.sentence.clone(), b.unit.clone());
            Some(BreakdownInfo { id, sentence, kind: b.kind.as_str(), unit })
        };
        let mut all = Vec::new();
        for group in schema().groups() {
            for statistic in &group.statistics {
                let rate = if statistic.kind == Kind::Counter { " per second" } else { "" };
                all.push(StatisticInfo {
                    id: format!("{}.{}", group.group, statistic.id),
                    group: group.group.clone(),
                    group_name: group.name.clone(),
                    metric: statistic.id.clone(),
                    sentence: format!("{} {}{rate}", group.sentence, statistic.sentence),
                    unit: statistic.unit.clone(),
                    kind: statistic.kind.as_str(),
                    breakdowns: statistic.breakdowns.iter().filter_map(breakdown).collect(),
                });
            }
        }
        all
    }

    /// The flight recorder at a glance.
    pub fn recorder(&self) -> RecorderInfo {
        let recorded = self.hub().recorded();
        RecorderInfo {
            bytes: recorded.bytes,
            records: recorded.records,
            oldest: recorded.since_ns as f64 / NS_PER_S as f64,
            dropped: self.hub().gauges().dropped.get(),
        }
    }

    /// The server's budgets: every level that has a limit.
    pub fn budgets(&self) -> Vec<Budget> {
        let budget = |(id, gauge): (&str, &probe::gauge::Gauge)| {
            let (group, metric) = id.split_once('.')?;
            let statistic = schema().statistic(group, metric)?;
            let limit = gauge.limit().or(statistic.limit)?;
            let sentence = statistic.sentence.clone();
            Some(Budget { id: id.to_owned(), sentence, used: gauge.get(), limit })
        };
        self.hub().gauges().iter().filter_map(budget).collect()
    }
}
