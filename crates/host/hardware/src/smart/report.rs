//! The output of smartctl as a report: how a disk is, in a word, a sentence and figures.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Output;
use crate::files::clean;

/// Most lines on errors of a report.
const ERRORS_MAX: usize = 32;
/// Attributes of ATA that count sectors which cannot be read (smartctl's numbers and names).
const BAD_SECTORS: [(u64, &str); 2] =
    [(197, "sectors that cannot be read"), (198, "sectors that a test could not read")];
/// Attributes of ATA with a value that falls from 100 as an SSD wears.
const WEAR: [&str; 6] = [
    "Wear_Leveling_Count",
    "Media_Wearout_Indicator",
    "SSD_Life_Left",
    "Percent_Lifetime_Remain",
    "Percent_Life_Remaining",
    "Remaining_Lifetime_Perc",
];

/// Bits of the exit status (smartctl(8), section EXIT STATUS).
const COMMAND_LINE: u8 = 1;
const NOT_OPENED: u8 = 1 << 1;
pub(super) const FAILING: u8 = 1 << 3;
const PRE_FAILURE: u8 = 1 << 4;
const ERROR_LOG: u8 = 1 << 6;
const SELF_TEST_LOG: u8 = 1 << 7;

/// How a disk is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing is wrong.
    Healthy,
    /// It works, and will fail: spare sectors or endurance run out, or sectors cannot be read.
    PreFailure,
    /// It reports its own failure.
    Failing,
    /// It sleeps, and was left alone.
    Standby,
    /// It cannot be determined; the sentence states why.
    #[default]
    Unknown,
}

impl Verdict {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::PreFailure => "pre-failure",
            Self::Failing => "failing",
            Self::Standby => "standby",
            Self::Unknown => "unknown",
        }
    }
}

/// A report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// How it is.
    pub verdict: Verdict,
    /// The same as a sentence, with the reason.
    pub sentence: String,
    /// Model.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Degrees Celsius.
    pub temperature_c: Option<i64>,
    /// Hours in operation.
    pub hours: Option<u64>,
    /// Used part of its endurance, in percent; above 100 is possible.
    pub wear_percent: Option<u64>,
    /// Counts of errors, a line each; none for those that are zero.
    pub errors: Vec<String>,
}

impl Report {
    /// That it cannot be known, and why.
    pub fn unknown(why: &str) -> Self {
        Self { sentence: why.to_owned(), ..Self::default() }
    }

    /// That it sleeps.
    pub fn standby() -> Self {
        let sentence = "the disk is in standby and was not queried".to_owned();
        Self { verdict: Verdict::Standby, sentence, ..Self::default() }
    }

    /// Reads the output of smartctl.
    pub fn read(output: &Output) -> Self {
        let Ok(root) = serde_json::from_str::<Value>(&output.text) else {
            return Self::unknown("smartctl has printed no JSON: version 7.0 or later is needed");
        };
        if let Some(report) = without_data(&root, output.status) {
            return report;
        }
        let mut report = Self {
            model: text(&root, "/model_name").or_else(|| text(&root, "/scsi_model_name")),
            serial: text(&root, "/serial_number"),
            temperature_c: root.pointer("/temperature/current").and_then(Value::as_i64),
            hours: number(&root, "/power_on_time/hours"),
            wear_percent: wear(&root),
            errors: errors(&root, output.status),
            ..Self::default()
        };
        (report.verdict, report.sentence) = judge(&root, output.status, &report);
        report
    }
}

fn text(root: &Value, at: &str) -> Option<String> {
    clean(root.pointer(at)?.as_str()?.as_bytes())
}

fn number(root: &Value, at: &str) -> Option<u64> {
    root.pointer(at)?.as_u64()
}

fn list<'a>(root: &'a Value, at: &str) -> &'a [Value] {
    root.pointer(at).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The report of an output without data of the disk.
fn without_data(root: &Value, status: u8) -> Option<Report> {
    let messages = list(root, "/smartctl/messages").iter().filter_map(|one| text(one, "/string"));
    let messages: Vec<String> = messages.take(ERRORS_MAX).collect();
    let any = |words: &str| messages.iter().any(|message| message.contains(words));
    // The same bit as for a disk that cannot be opened.
    if status & NOT_OPENED != 0 && any("mode, exit(") {
        return Some(Report::standby());
    }
    if any("USB bridge") {
        let why = "the USB bridge passes no health data (smartctl does not support it)";
        return Some(Report::unknown(why));
    }
    if any("Permission denied") || any("Operation not permitted") {
        return Some(Report::unknown("no permission: smartctl has to run as root"));
    }
    if status & (COMMAND_LINE | NOT_OPENED) != 0 {
        let why = messages.first().cloned().unwrap_or_else(|| format!("exit status {status}"));
        return Some(Report::unknown(&format!("smartctl: {why}")));
    }
    let offers = root.pointer("/smart_support/available").and_then(Value::as_bool);
    let passed = root.pointer("/smart_status/passed");
    if offers == Some(false) || passed.is_none() && status & (FAILING | PRE_FAILURE) == 0 {
        return Some(Report::unknown("the disk offers no health data"));
    }
    None
}

/// Verdict and sentence.
fn judge(root: &Value, status: u8, report: &Report) -> (Verdict, String) {
    let passed = root.pointer("/smart_status/passed").and_then(Value::as_bool);
    if passed == Some(false) || status & FAILING != 0 {
        let reasons = failures(root);
        let why = match reasons.is_empty() {
            true => "no reason is given".to_owned(),
            false => reasons.join(", "),
        };
        return (Verdict::Failing, format!("the disk reports its own failure: {why}"));
    }
    let warnings = warnings(root, status, report);
    if !warnings.is_empty() {
        return (Verdict::PreFailure, format!("the disk will fail: {}", warnings.join(", ")));
    }
    let notes: Vec<&str> =
        [(ERROR_LOG, "its log has errors"), (SELF_TEST_LOG, "its log has self-tests that failed")]
            .iter()
            .filter(|(bit, _)| status & bit != 0)
            .map(|(_, note)| *note)
            .collect();
    let sentence = match notes.is_empty() {
        true => "the disk is healthy".to_owned(),
        false => format!("the disk is healthy; {}", notes.join(", ")),
    };
    (Verdict::Healthy, sentence)
}

/// Attributes of ATA at or below their thresholds.
fn below_threshold(root: &Value, only_failures: bool) -> Vec<String> {
    let table = list(root, "/ata_smart_attributes/table").iter();
    let now =
        table.filter(|one| one.pointer("/when_failed").and_then(Value::as_str) == Some("now"));
    let of_failures = now.filter(|one| {
        let is_one = one.pointer("/flags/prefailure").and_then(Value::as_bool).unwrap_or_default();
        is_one || !only_failures
    });
    of_failures.filter_map(|one| text(one, "/name")).take(ERRORS_MAX).collect()
}

/// Bits of the critical warning of NVMe (section "SMART / Health Information").
const CRITICAL_WARNINGS: [(u64, &str); 5] = [
    (1, "spare capacity is used up"),
    (1 << 1, "temperature beyond its limits"),
    (1 << 2, "reliability is degraded"),
    (1 << 3, "the disk is read-only"),
    (1 << 4, "backup of volatile memory failed"),
];

fn failures(root: &Value) -> Vec<String> {
    let mut reasons = below_threshold(root, true);
    let warning = number(root, "/nvme_smart_health_information_log/critical_warning").unwrap_or(0);
    let set = CRITICAL_WARNINGS.iter().filter(|(bit, _)| warning & bit != 0);
    reasons.extend(set.map(|(_, words)| (*words).to_owned()));
    reasons.extend(text(root, "/smart_status/scsi/ie_string").map(|words| words.to_lowercase()));
    reasons
}

fn warnings(root: &Value, status: u8, report: &Report) -> Vec<String> {
    let mut warnings = Vec::new();
    if status & PRE_FAILURE != 0 {
        let below = below_threshold(root, true);
        let which = if below.is_empty() { "an attribute".to_owned() } else { below.join(", ") };
        warnings.push(format!("{which} below the threshold"));
    }
    for (id, words) in BAD_SECTORS {
        if let Some(count) = raw(root, id).filter(|count| *count > 0) {
            warnings.push(format!("{count} {words}"));
        }
    }
    let nvme = |name: &str| number(root, &format!("/nvme_smart_health_information_log/{name}"));
    if let (Some(spare), Some(least)) = (nvme("available_spare"), nvme("available_spare_threshold"))
        && spare < least
    {
        warnings.push(format!("{spare} % spare capacity, below {least} %"));
    }
    if nvme("media_errors").is_some_and(|errors| errors > 0) {
        warnings.push(format!("{} media errors", nvme("media_errors").unwrap_or_default()));
    }
    if let Some(used) = report.wear_percent.filter(|used| *used >= 100) {
        warnings.push(format!("{used} % of its endurance used"));
    }
    let uncorrected = uncorrected(root);
    if uncorrected > 0 {
        warnings.push(format!("{uncorrected} errors that it could not correct"));
    }
    warnings
}

/// Errors of a SCSI disk that it could not correct.
fn uncorrected(root: &Value) -> u64 {
    let of = |kind: &str| {
        number(root, &format!("/scsi_error_counter_log/{kind}/total_uncorrected_errors"))
    };
    ["read", "write", "verify"].iter().filter_map(|kind| of(kind)).fold(0, u64::saturating_add)
}

/// The raw value of an attribute of ATA, as smartctl shows it: the number itself may have others in
/// its upper bytes.
fn raw(root: &Value, id: u64) -> Option<u64> {
    let mut table = list(root, "/ata_smart_attributes/table").iter();
    let one = table.find(|one| number(one, "/id") == Some(id))?;
    one.pointer("/raw/string")?.as_str()?.split_whitespace().next()?.parse().ok()
}

fn wear(root: &Value) -> Option<u64> {
    let nvme = number(root, "/nvme_smart_health_information_log/percentage_used");
    let scsi = number(root, "/scsi_percentage_used_endurance_indicator");
    let newer = number(root, "/endurance_used/current_percent");
    nvme.or(scsi).or(newer).or_else(|| {
        let mut table = list(root, "/ata_smart_attributes/table").iter();
        let is_one = |one: &&Value| {
            let name = one.pointer("/name").and_then(Value::as_str);
            name.is_some_and(|name| WEAR.contains(&name))
        };
        Some(100_u64.saturating_sub(number(table.find(is_one)?, "/value")?))
    })
}

fn errors(root: &Value, status: u8) -> Vec<String> {
    let mut errors = Vec::new();
    let mut add = |count: Option<u64>, words: &str| {
        if let Some(count) = count.filter(|count| *count > 0) {
            errors.push(format!("{count} {words}"));
        }
    };
    add(raw(root, 5), "reallocated sectors");
    for (id, words) in BAD_SECTORS {
        add(raw(root, id), words);
    }
    add(raw(root, 199), "errors of the cable (CRC)");
    add(number(root, "/nvme_smart_health_information_log/media_errors"), "media errors");
    add(number(root, "/scsi_grown_defect_list"), "sectors in the grown defect list");
    add(Some(uncorrected(root)), "errors that it could not correct");
    add(number(root, "/ata_smart_error_log/summary/count"), "errors in its log");
    if status & SELF_TEST_LOG != 0 {
        errors.push("a self-test has failed".to_owned());
    }
    errors.truncate(ERRORS_MAX);
    errors
}
