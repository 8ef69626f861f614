//! FTP as far as the tests go: passive mode, with TLS when it is asked for.

use super::{Both, Store};
use rustls::{ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

struct Control {
    stream: Box<dyn Both>,
    tls: bool,
    data: Option<TcpListener>,
    rest: usize,
}

impl Control {
    fn reply(&mut self, text: &str) {
        // The client may be gone.
        let _ = self.stream.write_all(format!("{text}\r\n").as_bytes());
        let _ = self.stream.flush();
    }

    fn line(&mut self) -> Option<String> {
        let (mut line, mut byte) = (Vec::new(), [0]);
        while byte != *b"\n" {
            self.stream.read_exact(&mut byte).ok()?;
            line.push(byte[0]);
        }
        Some(String::from_utf8(line).unwrap().trim_end().to_owned())
    }

    fn passive(&mut self) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        self.data = Some(listener);
        port
    }

    fn transfer(&mut self, store: &Store, work: impl FnOnce(&mut dyn Both) -> bool) {
        let (socket, _) = self.data.take().unwrap().accept().unwrap();
        self.reply("150 it begins");
        let done = if self.tls {
            let connection = ServerConnection::new(Arc::clone(&store.tls)).unwrap();
            let mut data = StreamOwned::new(connection, socket);
            let shaken = data.conn.complete_io(&mut data.sock).is_ok();
            let resumed = data.conn.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
            store.strangers.fetch_add(u32::from(!resumed), Ordering::SeqCst);
            let done = shaken && work(&mut data);
            data.conn.send_close_notify();
            let _ = data.flush();
            done
        } else {
            let mut data = socket;
            work(&mut data)
        };
        self.reply(if done { "226 done" } else { "426 cut off" });
    }
}

pub(super) fn serve(socket: TcpStream, store: &Arc<Store>) {
    let again = socket.try_clone().unwrap();
    let stream: Box<dyn Both> = Box::new(socket);
    let mut control = Control { stream, tls: false, data: None, rest: 0 };
    control.reply("220-hello\r\n there\r\n220 ready");
    while let Some(line) = control.line() {
        let (verb, path) = line.split_once(' ').unwrap_or((&line, ""));
        match verb {
            "QUIT" => return,
            "AUTH" => {
                control.reply("234 go");
                control.stream = store.secured(again.try_clone().unwrap());
                control.tls = true;
            }
            "RETR" | "STOR" | "MLSD" | "NLST" => transfer(&mut control, store, verb, path),
            _ => command(&mut control, store, verb, path),
        }
    }
}

fn transfer(control: &mut Control, store: &Arc<Store>, verb: &str, path: &str) {
    let rest = std::mem::take(&mut control.rest);
    let old = store.old.load(Ordering::SeqCst);
    match verb {
        "MLSD" if old => control.reply("500 unknown"),
        "RETR" => match store.files().get(path).cloned() {
            Some(bytes) => control.transfer(store, |data| data.write_all(&bytes[rest..]).is_ok()),
            None => control.reply("550 no such file"),
        },
        "STOR" => control.transfer(store, |data| {
            let mut bytes = Vec::new();
            data.read_to_end(&mut bytes).is_ok() && store.put(path, bytes)
        }),
        _ => match store.names(path) {
            Some(names) => {
                let line = |name: &String| match verb {
                    "MLSD" => format!("type=file; {name}\r\n"),
                    _ => format!("{path}/{name}\r\n"),
                };
                let mut text: String = names.iter().map(line).collect();
                if verb == "MLSD" {
                    text = format!("type=cdir; .\r\ntype=pdir; ..\r\n{text}");
                }
                control.transfer(store, |data| data.write_all(text.as_bytes()).is_ok());
            }
            None => control.reply("550 no such folder"),
        },
    }
}

fn command(control: &mut Control, store: &Store, verb: &str, path: &str) {
    let done = |good: bool| if good { "250 done" } else { "550 no" }.to_owned();
    let answer = match (verb, path) {
        ("USER", "ann") => "331 and the password?".to_owned(),
        ("PASS", "a@b") => "230 welcome".to_owned(),
        ("PASS", _) => "530 no".to_owned(),
        ("PBSZ", "0") | ("PROT", "P") | ("TYPE", "I") | ("NOOP", _) => "200 well".to_owned(),
        ("EPSV", _) if store.old.load(Ordering::SeqCst) => "502 unknown".to_owned(),
        ("EPSV", _) => format!("229 extended (|||{}|)", control.passive()),
        ("PASV", _) => {
            let port = control.passive();
            // An address that leads nowhere: the client must not go there.
            format!("227 passive (192,0,2,1,{},{})", port >> 8, port & 255)
        }
        ("REST", offset) => {
            control.rest = offset.parse().unwrap();
            "350 from there".to_owned()
        }
        ("SIZE", path) => match store.files().get(path) {
            Some(bytes) => format!("213 {}", bytes.len()),
            None => "550 no such file".to_owned(),
        },
        ("MKD", path) => done(store.make_folder(path)),
        ("CWD", path) => done(store.names(path.trim_end_matches('/')).is_some()),
        ("RMD", path) => done(store.remove(path, true)),
        ("DELE", path) => done(store.remove(path, false)),
        _ => "500 unknown".to_owned(),
    };
    control.reply(&answer);
}
