//! `plimsoll bridge …`: run, set, show, stop, key.
//!
//! Exit codes of `run`: 0 good, 1 failed, 2 wrong usage, 3 the bridge was late, so that what was
//! measured over it is invalid.

use std::error::Error;
use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use base::out::{note, offer};
use base::random::{Random, SystemRandom};
use base::text::{hex, visible};
use clap::{Args, Subcommand};
use wire::bridge::KEY;

use super::control::{Request, ask};
use super::device::{End, check_name};
use super::pair::MTU_MAX;
use super::run::{self, Options, Other, RunError};
use super::shape::{Shapes, time};
use super::status::{Event, Status};
use super::text;
use crate::agent::with_sources;
use crate::cli::exit::EXIT_DEGRADED;
use crate::cli::{print_line, print_text};

/// The default of the largest packet: Ethernet's.
const MTU: u32 = 1500;
/// The default of the largest packet between two hosts: leaves room for tunnels on the path.
const MTU_PAIR: u32 = 1400;

/// Options of `bridge`.
#[derive(Debug, Args)]
pub struct BridgeArgs {
    #[command(subcommand)]
    command: BridgeCommand,
}

#[derive(Debug, Subcommand)]
enum BridgeCommand {
    /// Run a link between two networks until interrupted
    #[command(after_help = RUN_HELP)]
    Run(Box<RunArgs>),
    /// Change a running link
    #[command(
        after_help = "For example: plimsoll bridge set wan rtt=200ms loss=0.1% back.rate=50Mbit"
    )]
    Set(SetArgs),
    /// Show the status of a running link
    Show(AskArgs),
    /// Stop a running link
    Stop(AskArgs),
    /// Generate a key for a link between two hosts, on standard output
    Key,
}

const RUN_HELP: &str = "An END is PLACE[,DEVICE]@ADDRESS/PREFIX. PLACE is a network namespace: \
    ns:NAME (as in `ip netns`), pid:PID (that of a process) or here. Examples:

  plimsoll bridge run --make-namespaces --between ns:a@10.9.0.1/24 --and ns:b@10.9.0.2/24 \\
    --rtt 100ms --rate 1Gbit --loss 0.1%
  ip netns exec a ping 10.9.0.2

Between two hosts, with the same key file on both:

  here$  plimsoll bridge run --end here@10.9.0.1/24 --listen 0.0.0.0:2160 --key FILE --delay 50ms
  there$ plimsoll bridge run --end here@10.9.0.2/24 --peer here:2160 --key FILE --delay 50ms

Requires root or a user namespace (unshare -Urnm). Exit code 3: the emulator \
could not keep its schedule; discard measurements made over the link.";

#[derive(Debug, Args)]
struct RunArgs {
    /// First end
    #[arg(long, value_name = "END", requires = "and", required_unless_present = "end")]
    between: Option<End>,
    /// Second end
    #[arg(long, value_name = "END", requires = "between")]
    and: Option<End>,
    /// Create missing network namespaces, and remove them at exit
    #[arg(long)]
    make_namespaces: bool,
    /// Name of the link and its devices
    #[arg(long, value_name = "NAME", default_value = "wan")]
    name: String,
    /// Encrypt all traffic with AES-256-GCM
    #[arg(long)]
    encrypt: bool,
    /// MTU in bytes [default: 1500, between two hosts 1400]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(576..=65_535))]
    mtu: Option<u32>,
    /// Random seed; the same seed treats the same packets the same way [default: random, printed at
    /// start]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run time [default: until interrupted]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    lasts: Option<Duration>,
    /// Print JSON, one object per line: when ready, every second, and at the end
    #[arg(long)]
    json: bool,
    /// Control socket for `set`, `show` and `stop` [default: derived from the name]
    #[arg(long, value_name = "SOCKET")]
    socket: Option<PathBuf>,
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    pair: PairArgs,
}

/// What the link does.
#[derive(Debug, Args)]
#[command(next_help_heading = "Link properties, both directions")]
struct LinkArgs {
    /// One-way delay, for example 50ms
    #[arg(long, value_name = "TIME", conflicts_with = "rtt")]
    delay: Option<String>,
    /// Round-trip time
    #[arg(long, value_name = "TIME")]
    rtt: Option<String>,
    /// Delay variation, for example 5ms or 5ms,normal; packets stay in order
    #[arg(long, value_name = "TIME[,normal]")]
    jitter: Option<String>,
    /// Rate in bits per second, for example 1Gbit or 50Mbit [default: unlimited]
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Framing overhead per packet in bytes, 38 for Ethernet [default: 0]
    #[arg(long, value_name = "BYTES")]
    overhead: Option<String>,
    /// Queue limit in bytes, for example 2M [default: auto, one bandwidth-delay product]
    #[arg(long, value_name = "BYTES")]
    queue: Option<String>,
    /// Packet loss, for example 0.1%
    #[arg(long, value_name = "SHARE")]
    loss: Option<String>,
    /// Mean length of a loss burst, in packets
    #[arg(long, value_name = "N")]
    burst: Option<String>,
    /// Share of packets that are reordered
    #[arg(long, value_name = "SHARE")]
    reorder: Option<String>,
    /// Extra delay of reordered packets [default: 1ms]
    #[arg(long, value_name = "TIME")]
    reorder_by: Option<String>,
    /// Share of packets that are duplicated
    #[arg(long, value_name = "SHARE")]
    duplicate: Option<String>,
    /// Share of packets with a flipped bit
    #[arg(long, value_name = "SHARE")]
    corrupt: Option<String>,
    /// Set one direction only, for example back.loss=1% or forth.rate=10Mbit; repeatable
    #[arg(long = "set", value_name = "WAY.NAME=VALUE")]
    set: Vec<String>,
}

/// The other half on another host.
#[derive(Debug, Args)]
#[command(next_help_heading = "Link between two hosts; each host emulates its outgoing direction")]
struct PairArgs {
    /// End on this host
    #[arg(long, value_name = "END", requires = "key", conflicts_with_all = ["between", "encrypt"])]
    end: Option<End>,
    /// Address of the other host, which must be listening
    #[arg(long, value_name = "HOST:PORT", requires = "end", conflicts_with = "listen")]
    peer: Option<String>,
    /// Listen address for the other host (UDP)
    #[arg(long, value_name = "ADDRESS:PORT", requires = "end")]
    listen: Option<SocketAddr>,
    /// File with the shared key from `plimsoll bridge key`
    #[arg(long, value_name = "FILE", requires = "end")]
    key: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct SetArgs {
    /// Link name and changes, for example wan delay=50ms rate=none back.loss=1%. Omit the name with
    /// --socket
    #[arg(value_name = "NAME|CHANGE", required = true)]
    words: Vec<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Control socket, instead of the name
    #[arg(long, value_name = "SOCKET")]
    socket: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct AskArgs {
    /// Name of the link
    #[arg(default_value = "wan")]
    name: String,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Control socket, instead of the name
    #[arg(long, value_name = "SOCKET")]
    socket: Option<PathBuf>,
}

fn duration(text: &str) -> Result<Duration, String> {
    time(text).map(Duration::from_nanos).map_err(|e| e.to_string())
}

type Outcome = Result<ExitCode, Box<dyn Error>>;

/// Runs the command; sockets of bridges are below `run_dir` by default.
pub fn run(args: BridgeArgs, run_dir: &Path) -> ExitCode {
    let outcome = match args.command {
        BridgeCommand::Run(args) => start(*args, run_dir),
        BridgeCommand::Set(args) => set(args, run_dir),
        BridgeCommand::Show(args) => {
            send_request(&args.socket, &args.name, run_dir, &Request::Show, args.json)
        }
        BridgeCommand::Stop(args) => {
            send_request(&args.socket, &args.name, run_dir, &Request::Stop, args.json)
        }
        BridgeCommand::Key => key(),
    };
    outcome.unwrap_or_else(|error| {
        note(&format!("plimsoll bridge: {}", visible(&with_sources(&*error))));
        ExitCode::FAILURE
    })
}

fn usage(error: &dyn Error) -> ExitCode {
    note(&format!("plimsoll bridge: {}", visible(&with_sources(error))));
    ExitCode::from(2)
}

/// The folder with the sockets of bridges, in that of what runs.
pub const SOCKETS: &str = "bridges";

/// Where a bridge is asked.
fn socket(given: &Option<PathBuf>, name: &str, run_dir: &Path) -> PathBuf {
    given.clone().unwrap_or_else(|| run_dir.join(SOCKETS).join(format!("{name}.sock")))
}

fn set(args: SetArgs, run_dir: &Path) -> Outcome {
    let (name, changes) = match (&args.socket, args.words.split_first()) {
        (None, Some((name, changes))) if !name.contains('=') => (name.as_str(), changes),
        (Some(_), _) => ("", &args.words[..]),
        _ => return Ok(usage(&*Box::<dyn Error>::from("name the link: bridge set NAME CHANGE…"))),
    };
    if changes.is_empty() {
        return Ok(usage(&*Box::<dyn Error>::from("name a change, for example delay=50ms")));
    }
    send_request(&args.socket, name, run_dir, &Request::Set(changes.to_vec()), args.json)
}

fn send_request(
    given: &Option<PathBuf>,
    name: &str,
    run_dir: &Path,
    request: &Request,
    json: bool,
) -> Outcome {
    let status = ask(&socket(given, name, run_dir), request)?;
    if json {
        print_line(&status.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    match request {
        Request::Stop => {
            print_line(&format!("{} ends", status["name"].as_str().unwrap_or("it")))?;
        }
        _ => print_text(status["text"].as_str().unwrap_or_default())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn key() -> Outcome {
    let mut key = [0; KEY];
    SystemRandom.fill(&mut key);
    print_line(&hex(&key))?;
    Ok(ExitCode::SUCCESS)
}

/// A key as [`key`] prints it.
fn read_key(file: &Path) -> Result<[u8; KEY], Box<dyn Error>> {
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    parse_key(text.trim()).ok_or_else(|| {
        format!("{} is not a key; create one with `plimsoll bridge key`", file.display()).into()
    })
}

fn parse_key(text: &str) -> Option<[u8; KEY]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let mut key = [0; KEY];
    (pairs.len() == KEY).then_some(())?;
    for (byte, pair) in key.iter_mut().zip(pairs) {
        let digit = |letter: u8| char::from(letter).to_digit(16);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(key)
}

impl LinkArgs {
    fn shapes(&self) -> Result<Shapes, super::shape::ShapeError> {
        let given = [
            ("delay", &self.delay),
            ("rtt", &self.rtt),
            ("jitter", &self.jitter),
            ("rate", &self.rate),
            ("overhead", &self.overhead),
            ("queue", &self.queue),
            ("loss", &self.loss),
            ("burst", &self.burst),
            ("reorder", &self.reorder),
            ("reorder-by", &self.reorder_by),
            ("duplicate", &self.duplicate),
            ("corrupt", &self.corrupt),
        ];
        let given = given
            .into_iter()
            .filter_map(|(name, value)| value.as_ref().map(|value| format!("{name}={value}")));
        let changes: Vec<String> = given.chain(self.set.iter().cloned()).collect();
        let mut shapes = Shapes::default();
        shapes.change(&changes)?;
        Ok(shapes)
    }
}

impl PairArgs {
    /// The other host.
    fn other(&self) -> Result<Other, Box<dyn Error>> {
        let secret = read_key(self.key.as_deref().ok_or("--key FILE is missing")?)?;
        let Some(peer) = &self.peer else {
            let listen = self.listen.ok_or("add --peer HOST:PORT or --listen ADDRESS:PORT")?;
            return Ok(Other::Host { listen, call: None, secret });
        };
        let found = peer.to_socket_addrs().map_err(|e| format!("{peer}: {e}"))?.next();
        let call = found.ok_or_else(|| format!("no address found for {peer}"))?;
        let any: IpAddr = match call.is_ipv4() {
            true => [0; 4].into(),
            false => Ipv6Addr::UNSPECIFIED.into(),
        };
        Ok(Other::Host { listen: (any, 0).into(), call: Some(call), secret })
    }
}

impl RunArgs {
    fn options(self, run_dir: &Path) -> Result<Options, Box<dyn Error>> {
        check_name(&self.name)?;
        let shapes = self.link.shapes()?;
        let seed = self.seed.unwrap_or_else(|| SystemRandom.next_u64());
        let (end, other) = match (self.between, self.and, &self.pair.end) {
            (Some(end), Some(other), None) => {
                if end.place == other.place {
                    let why = "both ends are in the same network namespace; packets between its \
                        own addresses never cross a link";
                    return Err(why.into());
                }
                (end, Other::End(other))
            }
            (None, None, Some(end)) => (end.clone(), self.pair.other()?),
            _ => {
                return Err(
                    "add --between END --and END, or --end END for a link to another host".into()
                );
            }
        };
        let pair = matches!(other, Other::Host { .. });
        let mtu = self.mtu.unwrap_or(if pair { MTU_PAIR } else { MTU });
        if pair && mtu > MTU_MAX {
            return Err(format!("the MTU between two hosts is at most {MTU_MAX} bytes").into());
        }
        Ok(Options {
            socket: socket(&self.socket, &self.name, run_dir),
            name: self.name,
            end,
            other,
            shapes,
            mtu,
            encrypt: self.encrypt,
            make_namespaces: self.make_namespaces,
            seed,
            lasts: self.lasts,
        })
    }
}

fn start(args: RunArgs, run_dir: &Path) -> Outcome {
    let json = args.json;
    let options = match args.options(run_dir) {
        Ok(options) => options,
        Err(error) => return Ok(usage(&*error)),
    };
    let status = run::run(options, &mut |status| report_state(status, json))
        .map_err(|error: RunError| -> Box<dyn Error> { with_hint(error) })?;
    report_state(&status, json);
    if status.is_good() {
        return Ok(ExitCode::SUCCESS);
    }
    for why in &status.why {
        note(&format!("plimsoll bridge: {}: {why}", status.name));
    }
    Ok(ExitCode::from(EXIT_DEGRADED))
}

/// Reports on standard output. A closed output does not stop the bridge.
fn report_state(status: &Status, json: bool) {
    let text = match status.event {
        _ if json => serde_json::to_string(status).unwrap_or_default() + "\n",
        Event::Calling => format!("{} waits for {}\n", status.name, status.ends[1].place),
        Event::Ready => text::ready(status),
        Event::End => text::status(status),
        Event::Second | Event::Asked => return,
    };
    let _gone = offer(&text);
}

fn with_hint(error: RunError) -> Box<dyn Error> {
    let text = with_sources(&error);
    let hint = match text.contains("ermission") || text.contains("not permitted") {
        true => "\n  this requires root or a user namespace (unshare -Urnm)",
        false => "",
    };
    format!("{text}{hint}").into()
}

#[cfg(test)]
mod tests;
