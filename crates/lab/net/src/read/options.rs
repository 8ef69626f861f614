//! The options of a flowop: words, some of them KEY=VALUE.

use super::{Element, Loader, Read, Refusal, flowop_of, is_size, refuse};
use crate::limits::{DATAGRAM_MAX, FILE_BYTES, FILES_MAX, OPTIONS_MAX, TRANSFER_MAX};
use crate::profile::{Endpoint, Flowop, Op, Protocol, Size, Transfer, Verb};

/// Options of TLS engines.
const TLS: [&str; 3] = ["engine", "cipher", "method"];
/// Protocols of uperf that this program does not speak.
const REFUSED: [&str; 5] = ["sctp", "rds", "udapl", "vsock", "ssl"];

/// The options of one flowop as they were read.
#[derive(Default)]
struct Options {
    host: Option<String>,
    local: Option<String>,
    protocol: Option<Protocol>,
    window: Option<u32>,
    nodelay: bool,
    congestion: Option<String>,
    size: Option<Size>,
    rsize: Option<u32>,
    count: Option<u64>,
    conn: u32,
    canfail: bool,
    timeout_ns: Option<u64>,
    duration_ns: Option<u64>,
    busy: bool,
    files: u32,
}

impl Loader<'_> {
    pub(super) fn flowop(&mut self, element: &Element) -> Read<Flowop> {
        element.only(&["type", "options", "name"])?;
        let Some(kind) = element.get("type") else {
            return refuse(element.line, "<flowop> has no type");
        };
        let name = self.text(kind.value.trim(), kind.line)?.to_lowercase();
        let named = |refusal: Refusal| Refusal { flowop: Some(name.clone()), ..refusal };
        // Its own line, not that of its options: a fault is shown where the flowop begins.
        self.flowop_named(&name, element).map_err(|r| Refusal { line: element.line, ..named(r) })
    }

    fn flowop_named(&mut self, name: &str, element: &Element) -> Read<Flowop> {
        let line = element.line;
        match name {
            "connect" | "accept" | "disconnect" | "read" | "recv" | "write" | "send"
            | "sendfile" | "sendfilev" | "think" | "nop" => {}
            "wait" => return refuse(line, "asynchronous transfers are not supported"),
            _ => return refuse(line, "no such flowop"),
        }
        let words = element.get("options").map_or("", |a| a.value.as_str());
        let options = self.options(words, line)?;
        let op = self.op(name, &options, line)?;
        let mut flowop = flowop_of(line, op);
        flowop.conn = options.conn;
        flowop.count = options.count.unwrap_or(1);
        flowop.canfail = options.canfail;
        flowop.timeout_ns = options.timeout_ns;
        Ok(flowop)
    }

    fn options(&mut self, words: &str, line: u32) -> Read<Options> {
        let mut options = Options { files: 1, ..Options::default() };
        let mut words = joined(words);
        // What is not supported comes before a variable without a value.
        words.sort_by_key(|word| !word.to_lowercase().starts_with("protocol="));
        if words.len() > OPTIONS_MAX {
            return refuse(line, format!("more than {OPTIONS_MAX} options"));
        }
        for word in &words {
            match word.split_once('=') {
                Some((key, value)) => {
                    self.pair(&mut options, &key.to_lowercase(), value, line)?;
                }
                None => self.flag(&mut options, &word.to_lowercase(), line)?,
            }
        }
        Ok(options)
    }

    fn flag(&mut self, options: &mut Options, word: &str, line: u32) -> Read<()> {
        match word {
            "tcp_nodelay" => options.nodelay = true,
            "busy" => options.busy = true,
            "idle" => options.busy = false,
            "canfail" => options.canfail = true,
            // A call here waits at most for a slice of time, so it makes no difference.
            "non_blocking" => self.ignored("non_blocking", line),
            "async" => return refuse(line, "asynchronous transfers are not supported"),
            word if word.starts_with("sctp_") => return refuse(line, "SCTP is not supported"),
            word => return refuse(line, format!("no such option {word:?}")),
        }
        Ok(())
    }

    fn ignored(&mut self, option: &str, line: u32) {
        self.note(format!("line {line}: {option} is ignored"));
    }

    fn pair(&mut self, options: &mut Options, key: &str, value: &str, line: u32) -> Read<()> {
        match key {
            "remotehost" => options.host = Some(self.host(value, line)?),
            "localhost" => options.local = Some(self.text(value, line)?),
            "protocol" => options.protocol = Some(self.protocol(value, line)?),
            "wndsz" => options.window = Some(self.bytes(key, value, line)?),
            "cc" => options.congestion = Some(self.congestion(value, line)?),
            "size" => options.size = Some(self.size(value, line)?),
            "rsize" => options.rsize = Some(self.bytes(key, value, line)?),
            "count" | "repeat" => {
                let count = self.number(value, line)?;
                if count == 0 {
                    return refuse(line, format!("{key}=0"));
                }
                options.count = Some(count.saturating_mul(options.count.unwrap_or(1)));
            }
            "conn" => match u32::try_from(self.number(value, line)?) {
                Ok(conn) if conn > 0 => options.conn = conn,
                _ => return refuse(line, format!("conn={value}, expected a number from 1 on")),
            },
            "timeout" | "poll_timeout" => {
                options.timeout_ns = Some(self.nanoseconds(value, line)?).filter(|ns| *ns > 0);
            }
            "duration" => options.duration_ns = Some(self.nanoseconds(value, line)?),
            "nfiles" => match u32::try_from(self.number(value, line)?) {
                Ok(files @ 1..=FILES_MAX) => options.files = files,
                _ => return refuse(line, format!("nfiles={value}, expected 1 to {FILES_MAX}")),
            },
            "dir" => self.note(format!(
                "line {line}: dir is not read; the bytes of a file that this program makes are sent"
            )),
            "stack" | "bblog" => self.note(format!(
                "line {line}: {key}={value}, an option of \
                                                    FreeBSD, is ignored"
            )),
            "port" | "batch_size" => self.ignored(key, line),
            key if TLS.contains(&key) => {
                return refuse(line, format!("{key}={value}: TLS engines are not supported"));
            }
            "subtype" | "waittype" | "waitfor" => {
                return refuse(line, "asynchronous transfers are not supported");
            }
            "encaps" => return refuse(line, "encapsulation in UDP is not supported"),
            key if key.starts_with("sctp_") => return refuse(line, "SCTP is not supported"),
            key => return refuse(line, format!("no such option {key:?}")),
        }
        Ok(())
    }

    fn protocol(&self, value: &str, line: u32) -> Read<Protocol> {
        let name = self.text(value, line)?.to_lowercase();
        match name.as_str() {
            "tcp" => Ok(Protocol::Tcp),
            "udp" => Ok(Protocol::Udp),
            name if REFUSED.contains(&name) => {
                refuse(line, format!("protocol={name} is not supported, only tcp and udp"))
            }
            name => refuse(line, format!("no such protocol {name:?}, use tcp or udp")),
        }
    }

    fn congestion(&self, value: &str, line: u32) -> Read<String> {
        let name = self.text(value, line)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > 15 || !name.chars().all(fits) {
            return refuse(line, format!("cc={name:?} is not the name of an algorithm"));
        }
        Ok(name)
    }

    fn bytes(&self, key: &str, value: &str, line: u32) -> Read<u32> {
        let number = self.number(value, line)?;
        match is_size(number) {
            Some(bytes) => Ok(bytes),
            None => refuse(line, format!("{key}={value}, expected 1 to {TRANSFER_MAX} bytes")),
        }
    }

    fn size(&self, value: &str, line: u32) -> Read<Size> {
        let text = self.text(value, line)?;
        let Some(inner) = text.to_lowercase().strip_prefix("rand(").map(str::to_owned) else {
            return self.bytes("size", &text, line).map(Size::fixed);
        };
        let ends = inner.strip_suffix(')').and_then(|inner| inner.split_once(','));
        let Some((min, max)) = ends else {
            return refuse(line, format!("size={text}, expected rand(LEAST,MOST)"));
        };
        let (min, max) = (self.bytes("size", min, line)?, self.bytes("size", max, line)?);
        if min > max {
            return refuse(line, format!("size={text}: the least is more than the most"));
        }
        Ok(Size { min, max })
    }

    fn op(&mut self, name: &str, options: &Options, line: u32) -> Read<Op> {
        Ok(match name {
            "connect" => Op::Connect(endpoint(options, line)?),
            "accept" => Op::Accept(endpoint(options, line)?),
            "disconnect" => Op::Disconnect,
            "read" => Op::Read(self.transfer(Verb::Read, options, line)?),
            "recv" => Op::Read(self.transfer(Verb::Recv, options, line)?),
            "write" => Op::Write(self.transfer(Verb::Write, options, line)?),
            "send" => Op::Write(self.transfer(Verb::Send, options, line)?),
            "sendfile" => Op::Sendfile(file_transfer(Verb::Sendfile, options, line)?),
            "sendfilev" => Op::Sendfile(file_transfer(Verb::Sendfilev, options, line)?),
            "think" => {
                let Some(ns) = options.duration_ns else {
                    return refuse(line, "has no duration");
                };
                Op::Think { ns, busy: options.busy }
            }
            _ => Op::Nop,
        })
    }

    fn transfer(&mut self, verb: Verb, options: &Options, line: u32) -> Read<Transfer> {
        let Some(size) = options.size else { return refuse(line, "has no size") };
        if options.duration_ns.is_some() {
            // Neither does uperf.
            self.ignored("duration of a transfer", line);
        }
        let larger = |rsize: &u32| size.as_fixed().is_some_and(|bytes| *rsize > bytes);
        Ok(Transfer { verb, size, rsize: options.rsize.filter(larger) })
    }
}

/// Words; the spaces within parentheses separate none, as in `rand(1, 8k)`.
fn joined(words: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match out.last_mut() {
            Some(last) if last.contains('(') && !last.contains(')') => last.push_str(word),
            _ => out.push(word.to_owned()),
        }
    }
    out
}

fn endpoint(options: &Options, line: u32) -> Read<Endpoint> {
    let Some(host) = options.host.clone() else { return refuse(line, "has no remotehost") };
    let Some(protocol) = options.protocol else { return refuse(line, "has no protocol") };
    Ok(Endpoint {
        host,
        local: options.local.clone(),
        protocol,
        window: options.window,
        nodelay: options.nodelay,
        congestion: options.congestion.clone(),
    })
}

/// Bytes of all files of a call.
fn file_transfer(verb: Verb, options: &Options, line: u32) -> Read<Transfer> {
    let size = options.size.unwrap_or(Size::fixed(FILE_BYTES));
    let Some(one) = size.as_fixed() else { return refuse(line, "has a random size") };
    let files = if verb == Verb::Sendfilev { options.files } else { 1 };
    let Some(bytes) = is_size(u64::from(one) * u64::from(files)) else {
        return refuse(line, format!("sends more than {TRANSFER_MAX} bytes"));
    };
    Ok(Transfer { verb, size: Size::fixed(bytes), rsize: None })
}

/// Whether a flowop can use a connection of this protocol.
pub(super) fn fits(op: &Op, protocol: Protocol) -> Result<(), String> {
    match (op, protocol) {
        (Op::Read(t) | Op::Write(t), Protocol::Udp) if t.size.max > DATAGRAM_MAX => {
            Err(format!("a datagram has at most {DATAGRAM_MAX} bytes"))
        }
        (Op::Read(t) | Op::Write(t), Protocol::Udp) if t.rsize.is_some() => {
            Err("datagrams have the same size at both ends: omit rsize".to_owned())
        }
        (Op::Sendfile(_), Protocol::Udp) => Err("files are sent over TCP only".to_owned()),
        _ => Ok(()),
    }
}
