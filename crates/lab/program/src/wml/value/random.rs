//! Random variables: `randvar` of both dialects, and the eight types of `cvar`.

use super::{Scope, Value, View};
use crate::dist::{Dist, Form, Segment};
use crate::wml::Fault;
use crate::wml::lex::Token;
use crate::wml::parse::{Attr, Attrs, Expr};

/// Shape of a gamma distribution that states none, in thousandths.
const GAMMA: u64 = 1500;

/// `randvar(type=…, …)`.
pub(crate) fn randvar(scope: &Scope, attrs: &Attrs, at: &Token) -> Result<Dist, Fault> {
    const VALID: &[&str] =
        &["type", "seed", "randsrc", "min", "mean", "gamma", "round", "randtable"];
    let view = View::new(scope, attrs, at, VALID)?;
    let kind = view.required("type")?;
    let (min, round) = (view.number("min", 0)?, view.number("round", 0)?);
    let mean = view.get("mean").map(|_| view.number("mean", 0)).transpose()?.map(|m| m as f64);
    let least = min as f64;
    let dist = match kind.as_str() {
        "uniform" => {
            let upper = 2.0 * mean.unwrap_or(least) - least;
            Dist { round, ..Form::Uniform { lower: least, upper }.into() }
        }
        "gamma" => {
            let shape = view.number("gamma", GAMMA)? as f64 / 1000.0;
            // Without a mean, Filebench takes the shape for it.
            let mean = mean.unwrap_or(shape) - least;
            Dist { round, offset: least, ..Form::Gamma { shape, mean }.into() }
        }
        "tabular" => {
            let form = Form::Tabular(rows(scope, view.get("randtable"), at, least, mean)?);
            Dist { round, min, ..form.into() }
        }
        _ => return Err(Fault::at(at, "type is uniform, gamma or tabular")),
    };
    checked(dist, at)
}

/// A table; with a mean its values are scaled to have it.
fn rows(
    scope: &Scope,
    attr: Option<&Attr>,
    at: &Token,
    least: f64,
    mean: Option<f64>,
) -> Result<Vec<Segment>, Fault> {
    let Some(Expr::Table(rows)) = attr.and_then(|attr| attr.value.as_ref()) else {
        return Err(Fault::at(at, "type=tabular has a randtable={{share, low, high}, …}"));
    };
    let mut segments = Vec::with_capacity(rows.len());
    for row in rows {
        let mut numbers = [0.0; 3];
        for (number, expr) in numbers.iter_mut().zip(row) {
            *number = scope.number(expr, at)? as f64;
        }
        let [weight, low, high] = numbers;
        segments.push(Segment { weight, low, high });
    }
    if let Some(mean) = mean {
        let own = Dist::from(Form::Tabular(segments.clone())).mean();
        let factor = (mean - least) / (own - least);
        for segment in &mut segments {
            for value in [&mut segment.low, &mut segment.high] {
                *value = (*value - least) * factor + least;
            }
        }
    }
    Ok(segments)
}

/// `cvar(type=cvar-…, parameters=name:value;…, min=…, max=…, round=…)`.
pub(crate) fn cvar(scope: &Scope, attrs: &Attrs, at: &Token) -> Result<Dist, Fault> {
    let view = View::new(scope, attrs, at, &["type", "parameters", "min", "max", "round"])?;
    let kind = view.required("type")?;
    let text = match view.value("parameters")? {
        None => String::new(),
        Some(Value::Text(text)) => text,
        Some(_) => return Err(Fault::at(at, "parameters are name:value;name:value")),
    };
    let parameters = Parameters { given: pairs(&text, at)?, at };
    let form = form(&kind, &parameters)?;
    let round = view.number("round", 0)?;
    let (min, max) = (view.number("min", 0)?, view.number("max", u64::MAX)?);
    checked(Dist { round, min, max, ..form.into() }, at)
}

fn form(kind: &str, parameters: &Parameters<'_>) -> Result<Form, Fault> {
    let get = |name, default| parameters.get(name, default);
    let valid = |names: &[&str]| parameters.valid(names);
    Ok(match kind.strip_prefix("cvar-").unwrap_or(kind) {
        "gamma" => {
            valid(&["mean", "gamma"])?;
            Form::Gamma { mean: get("mean", 4096.0), shape: get("gamma", 1.5) }
        }
        // The rate of Filebench is the mean: its code divides by nothing else.
        "erlang" => {
            valid(&["shape", "rate"])?;
            Form::Erlang { order: get("shape", 1.0) as u32, mean: get("rate", 1.0) }
        }
        "exponential" => {
            valid(&["mean"])?;
            Form::Exponential { mean: get("mean", 1.0) }
        }
        "lognormal" => {
            valid(&["shape", "scale"])?;
            Form::Lognormal { mu: get("scale", 1.0), sigma: get("shape", 1.0) }
        }
        "normal" => {
            valid(&["mean", "sigma"])?;
            Form::Normal { mean: get("mean", 0.0), sigma: get("sigma", 1.0) }
        }
        "triangular" => {
            valid(&["lower", "upper", "mode"])?;
            let (lower, upper) = (get("lower", 0.0), get("upper", 1.0));
            Form::Triangular { lower, upper, mode: get("mode", 0.5) }
        }
        "uniform" => {
            valid(&["lower", "upper"])?;
            Form::Uniform { lower: get("lower", 0.0), upper: get("upper", 1.0) }
        }
        "weibull" => {
            valid(&["shape", "scale"])?;
            Form::Weibull { shape: get("shape", 1.0), scale: get("scale", 1.0) }
        }
        _ => {
            let what = "type is cvar-erlang, -exponential, -gamma, -lognormal, -normal, \
                -triangular, -uniform or -weibull";
            return Err(Fault::at(parameters.at, what));
        }
    })
}

struct Parameters<'a> {
    given: Vec<(String, f64)>,
    at: &'a Token,
}

impl Parameters<'_> {
    fn get(&self, name: &str, default: f64) -> f64 {
        self.given.iter().find(|(given, _)| given == name).map_or(default, |(_, value)| *value)
    }

    fn valid(&self, names: &[&str]) -> Result<(), Fault> {
        match self.given.iter().find(|(given, _)| !names.contains(&given.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                let what = format!("{name} is not a parameter; expected {}", names.join(", "));
                Err(Fault::at(self.at, what))
            }
        }
    }
}

fn pairs(text: &str, at: &Token) -> Result<Vec<(String, f64)>, Fault> {
    let mut pairs = Vec::new();
    for pair in text.split(';').filter(|pair| !pair.is_empty()) {
        let value = pair
            .split_once(':')
            .and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
        let what = format!("\"{pair}\" is not a parameter: expected name:value");
        pairs.push(value.ok_or_else(|| Fault::at(at, what))?);
    }
    Ok(pairs)
}

fn checked(dist: Dist, at: &Token) -> Result<Dist, Fault> {
    match dist.fault() {
        None => Ok(dist),
        Some(what) => Err(Fault::at(at, what)),
    }
}
