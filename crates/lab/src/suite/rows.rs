//! The rows of the suites: jobs as the sources ran them, at the scale that is asked for.

use crate::job::{Job, JobError, Plateau};
use crate::limits::summary::NOT_MEASURED;
use crate::workload::Kind;
use serde::{Deserialize, Serialize};

/// The job that rows are made from.
const TEMPLATE: &str = include_str!("../../../../jobs/seqread.toml");

/// Block sizes of `seqread`: from a byte, which is the cost of an operation, to the largest.
pub const SIZES: [u64; 7] = [1, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Threads of each client in `seqread`.
pub const THREADS: [u32; 4] = [1, 2, 3, 5];
/// Sets of files, of which rows share some.
pub const SETS: [char; 3] = ['a', 'b', 'c'];
/// Files of a set: as many as there are threads in the rows that stream with most.
pub const SET_FILES: u32 = 20;
/// A set of the source, bytes.
pub const SOURCE_SET: u64 = 20 << 30;
/// Clients of the source.
pub const SOURCE_CLIENTS: u32 = 18;
/// Seconds of rows that read, and of those that write, in the source.
pub const SOURCE_SECONDS: [u32; 2] = [30, 120];
/// Threads that create files; the workload that Filebench ships has as many.
const CREATE_THREADS: u32 = 16;
/// Largest block of rows that stream.
const STREAM_BLOCK: u64 = 1 << 20;
/// Block of rows that count operations.
const RANDOM_BLOCK: u32 = 8 << 10;

/// Times of a quick run, ms: a row or a step, its warm-up, a window.
const QUICK_MS: u64 = 500;
const QUICK_WARMUP_MS: u64 = 100;
const QUICK_WINDOW_MS: u64 = 50;
/// Windows of data that is read once are short. With 10 ms eighteen clients on two cores only
/// closed windows.
const COLD_WINDOW_MS: u64 = 50;

/// What the source found in a row.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct SourceFigures {
    /// MB/s or operations per second of all clients.
    pub aggregate: f64,
    /// Network, MB/s.
    pub network_mb_s: f64,
    /// CPU of the server, percent.
    pub cpu_percent: f64,
}

/// Whether a row reads from the disk or from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// It does not read files.
    #[default]
    None,
    /// The set was dropped from memory before.
    Uncached,
    /// The set was read before.
    Cached,
}

/// A row that is to be run.
#[derive(Debug, Clone)]
pub struct RowPlan {
    /// What is done.
    pub job: Job,
    /// The set of files, which rows share; its folder has this name at its end.
    pub set: char,
    /// Where it reads from.
    pub cache: Cache,
    /// What the source found.
    pub source: Option<SourceFigures>,
}

/// The scale of `seqread`.
#[derive(Debug, Clone)]
pub struct SeqreadScale {
    /// Block sizes, bytes.
    pub sizes: Vec<u64>,
    /// Threads of each client.
    pub threads: Vec<u32>,
    /// Clients.
    pub clients: u32,
    /// Size of each file, bytes.
    pub file_size: u64,
    /// Whether it is quick.
    pub quick: bool,
}

/// The rows of `seqread`, a block size each.
///
/// # Errors
/// A value or a setting does not fit.
pub fn seqread(scale: &SeqreadScale, settings: &[String]) -> Result<Vec<RowPlan>, JobError> {
    let row = |size: &u64| {
        let mut job = template()?;
        job.name = format!("seqread-{}", size_text(*size));
        job.title = format!("Sequential reads of {}", size_text(*size));
        job.answers = "How does sequential reading grow with threads?".to_owned();
        job.expect = "small blocks: the CPU; large ones: the network".to_owned();
        job.workload = Kind::SeqRead;
        job.block = u32::try_from(*size).unwrap_or(u32::MAX);
        job.files = scale.threads.iter().copied().max().unwrap_or(1);
        job.file_size = scale.file_size.max(*size);
        job.own_files = true;
        job.schedule = scale.threads.iter().map(|threads| (scale.clients, *threads)).collect();
        let steps = scale.threads.len() as u32;
        job.plateau = Plateau { min_steps: steps, ..Plateau::default() };
        if scale.quick {
            job.warmup_ms = QUICK_WARMUP_MS;
            job.window_ms = QUICK_WINDOW_MS;
            job.step_max_ms = QUICK_WARMUP_MS + QUICK_MS;
        }
        let job = set(job, settings, None)?;
        Ok(RowPlan { job, set: 'a', cache: Cache::Cached, source: None })
    };
    scale.sizes.iter().map(row).collect()
}

/// The scale of `filebench-suite`.
#[derive(Debug, Clone)]
pub struct FilebenchScale {
    /// Clients.
    pub clients: u32,
    /// Bytes of a set of each client.
    pub set: u64,
    /// Seconds of rows that read, and of those that write.
    pub seconds: [u32; 2],
    /// Whether it is quick.
    pub quick: bool,
}

impl FilebenchScale {
    /// In a sentence, next to the source's.
    pub fn sentence(&self) -> String {
        let set = self.set / u64::from(SET_FILES) * u64::from(SET_FILES);
        let times = match self.quick {
            true => format!("{:.1} s rows", QUICK_MS as f64 / 1e3),
            false => format!("{} s and {} s rows", self.seconds[0], self.seconds[1]),
        };
        format!(
            "scale: {} clients (source: {SOURCE_CLIENTS}), sets of {} for each (source: 20 GB, \
             1/{:.0} of it), {times} (source: {} s and {} s); a set is read at most once uncached",
            self.clients,
            base::units::bytes(set as f64),
            SOURCE_SET as f64 / set.max(1) as f64,
            SOURCE_SECONDS[0],
            SOURCE_SECONDS[1],
        )
    }
}

/// A row of the source's table: name, title, workload, threads, set, cache, what it found.
struct Line(&'static str, &'static str, Kind, u32, char, Cache, Option<[f64; 3]>);

const LINES: [Line; 10] = [
    Line(
        "stream-read-1-uncached",
        "1 thread streaming reads from an uncached set",
        Kind::SeqRead,
        1,
        'a',
        Cache::Uncached,
        Some([871.0, 936.0, 82.0]),
    ),
    Line(
        "stream-read-1-cached",
        "1 thread streaming reads from the same set",
        Kind::SeqRead,
        1,
        'a',
        Cache::Cached,
        Some([1012.6, 1086.0, 68.0]),
    ),
    Line(
        "stream-read-20-uncached",
        "20 threads streaming reads from a different uncached set",
        Kind::SeqRead,
        20,
        'b',
        Cache::Uncached,
        Some([924.2, 1008.0, 88.0]),
    ),
    Line(
        "stream-read-10-cached",
        "10 threads streaming reads from the same set",
        Kind::SeqRead,
        10,
        'b',
        Cache::Cached,
        Some([1005.9, 1071.0, 83.0]),
    ),
    Line(
        "stream-write-1",
        "1 thread streaming write",
        Kind::SeqWrite,
        1,
        'a',
        Cache::None,
        Some([461.5, 589.0, 68.0]),
    ),
    Line(
        "stream-write-20",
        "20 threads streaming write",
        Kind::SeqWrite,
        20,
        'a',
        Cache::None,
        Some([444.5, 503.0, 81.0]),
    ),
    Line(
        "random-read-20-uncached",
        "20 threads 8K random reads from a different uncached set",
        Kind::RandRead,
        20,
        'c',
        Cache::Uncached,
        Some([6204.0, 52.0, 14.0]),
    ),
    Line(
        "random-read-128-cached",
        "128 threads 8K random reads from the same set",
        Kind::RandRead,
        128,
        'c',
        Cache::Cached,
        Some([7047.0, 57.0, 23.0]),
    ),
    Line(
        "sync-write-128",
        "128 threads 8K synchronous writes",
        Kind::SyncWrite,
        128,
        'c',
        Cache::None,
        Some([24555.0, 111.0, 73.0]),
    ),
    Line(
        "create-16",
        "16 threads file creation",
        Kind::Create,
        CREATE_THREADS,
        'c',
        Cache::None,
        None,
    ),
];

/// Names of the rows of `filebench-suite`.
pub fn filebench_names() -> impl Iterator<Item = &'static str> {
    LINES.iter().map(|line| line.0)
}

/// The rows of `filebench-suite`; all, or those with these names.
///
/// # Errors
/// A name is none, or a setting does not fit.
pub fn filebench(
    scale: &FilebenchScale,
    names: &[String],
    settings: &[String],
) -> Result<Vec<RowPlan>, JobError> {
    if let Some(name) = names.iter().find(|name| filebench_names().all(|known| known != **name)) {
        let rows = filebench_names().collect::<Vec<_>>().join(", ");
        return Err(JobError::Form(name.clone(), format!("the rows are {rows}")));
    }
    let chosen = LINES.iter().filter(|line| names.is_empty() || names.iter().any(|n| n == line.0));
    chosen.map(|line| filebench_row(line, scale, settings)).collect()
}

fn filebench_row(
    line: &Line,
    scale: &FilebenchScale,
    settings: &[String],
) -> Result<RowPlan, JobError> {
    let Line(name, title, kind, threads, set_name, cache, source) = line;
    let mut job = template()?;
    (job.name, job.title) = ((*name).to_owned(), (*title).to_owned());
    job.answers = "What did the source's test find here?".to_owned();
    job.expect = "the limiter of this server, not that of the source's".to_owned();
    (job.workload, job.own_files) = (*kind, kind.is_stream());
    job.cold = *cache == Cache::Uncached;
    job.files = SET_FILES;
    job.file_size = (scale.set / u64::from(SET_FILES)).max(RANDOM_BLOCK.into());
    job.block = match kind.is_stream() {
        true => u32::try_from(STREAM_BLOCK.min(job.file_size)).unwrap_or(RANDOM_BLOCK),
        false => RANDOM_BLOCK,
    };
    job.schedule = vec![(scale.clients, *threads)];
    let writes = matches!(kind, Kind::SeqWrite | Kind::SyncWrite);
    let seconds = scale.seconds[usize::from(writes)];
    let ms = if scale.quick { QUICK_MS } else { u64::from(seconds) * 1_000 };
    if scale.quick {
        (job.warmup_ms, job.window_ms) = (QUICK_WARMUP_MS, QUICK_WINDOW_MS);
    }
    if job.cold {
        (job.warmup_ms, job.window_ms) = (0, COLD_WINDOW_MS);
    }
    job.step_max_ms = job.warmup_ms + ms;
    let job = set(job, settings, Some(ms))?;
    let source = source.map(|[aggregate, network_mb_s, cpu_percent]| SourceFigures {
        aggregate,
        network_mb_s,
        cpu_percent,
    });
    Ok(RowPlan { job, set: *set_name, cache: *cache, source })
}

fn template() -> Result<Job, JobError> {
    let mut job = Job::parse("seqread", TEMPLATE, &[])?;
    job.plateau = Plateau::default();
    Ok(job)
}

/// The job with settings applied; one that runs for a fixed time is a row.
fn set(job: Job, settings: &[String], fixed_ms: Option<u64>) -> Result<Job, JobError> {
    let form = |what: String| JobError::Form(job.name.clone(), what);
    let text = toml::to_string(&job).map_err(|e| form(e.to_string()))?;
    let mut table = crate::job::settled(&job.name, &text, settings)?;
    table.insert("name".to_owned(), job.name.clone().into());
    let mut set: Job = table.try_into().map_err(|e: toml::de::Error| form(e.to_string()))?;
    set.fixed_ms = fixed_ms;
    set.check()?;
    Ok(set)
}

/// A size as names have it: `1`, `4k`, `1m`.
pub fn size_text(bytes: u64) -> String {
    match bytes {
        _ if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        _ if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// The text of a row without a figure.
pub fn not_measured(why: &str) -> String {
    format!("{NOT_MEASURED}: {why}")
}
