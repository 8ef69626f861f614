//! Statistics of the fabric: the rates of the last interval of each port, as `schema/ib.toml`
//! declares them.

use std::sync::Arc;

use host_fabric::attribute::ERRORS;
use host_fabric::counters::Rates;
use probe::sample::{Sample, Sampler};

use super::watch::Fabrics;

/// Samples the fabrics.
pub struct FabricSampler(pub Arc<Fabrics>);

impl Sampler for FabricSampler {
    fn sample(&mut self, _now_ns: u64) -> Vec<Sample> {
        let mut ports: Vec<(String, Rates)> = Vec::new();
        for report in self.0.reports() {
            for (id, counted) in &report.counters.ports {
                let name = report.port_name(*id);
                let Some(rates) = counted.rates else { continue };
                // Two devices of this machine may be in one fabric.
                if ports.binary_search_by(|(other, _)| other.cmp(&name)).is_err() {
                    ports.push((name, rates));
                }
            }
            ports.sort_by(|(a, _), (b, _)| a.cmp(b));
            ports.dedup_by(|(a, _), (b, _)| a == b);
        }
        if ports.is_empty() { Vec::new() } else { samples(&ports) }
    }
}

fn samples(ports: &[(String, Rates)]) -> Vec<Sample> {
    let pairs = |stat, field: fn(&Rates) -> [f64; 2], scale: f64| {
        let rows = ports.iter().flat_map(|(name, rates)| {
            let values = ["in", "out"].into_iter().zip(field(rates));
            values.map(move |(way, value)| (name.clone(), way.to_owned(), value / scale))
        });
        sample(stat, ["port", "direction"], rows)
    };
    let errors = ports.iter().flat_map(|(name, rates)| {
        let values = ERRORS.iter().zip(rates.errors);
        values.map(move |(error, value)| (name.clone(), error.name.to_owned(), value))
    });
    let wait = ports.iter().map(|(name, rates)| (name.clone(), String::new(), rates.wait));
    vec![
        pairs("ib.kilobytes", |rates| rates.bytes, 1_024.0),
        pairs("ib.packets", |rates| rates.packets, 1.0),
        sample("ib.errors", ["port", "kind"], errors),
        sample("ib.wait", ["port", ""], wait),
    ]
}

fn sample(
    stat: &'static str,
    dimensions: [&'static str; 2],
    rows: impl Iterator<Item = (String, String, f64)>,
) -> Sample {
    let rows: Vec<_> = rows.filter(|(_, _, value)| *value > 0.0).collect();
    let total = rows.iter().map(|(_, _, value)| value).sum();
    Sample { stat, dimensions, total, rows }
}

#[cfg(test)]
mod tests;
