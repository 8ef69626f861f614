//! A block, then nothing until all of it is acknowledged: what the source's directory synchroniser
//! did. It exists to draw that curve.

use super::plan::{At, Plan};
use super::sockets::{self, Pair, Probe};
use super::transport::{Carried, SweepError, Transport, tried};
use super::turns::{self, BlockTransfer};
use crate::bridge::scene::Scene;
use base::limits::LAB_STREAM_BUFFER;
use base::tcp_info::TcpInfo;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct StopAndWait;

/// The end that sends.
struct Sender {
    socket: TcpStream,
    block: u64,
}

impl Transport for StopAndWait {
    fn carry(&self, plan: &Plan, at: &At, link: &Scene) -> Result<Carried, SweepError> {
        let mut probe = Probe::new(plan, at, link)?;
        let pairs = sockets::open(plan, at, link, at.instances)?;
        let sum = std::thread::scope(|scope| {
            let senders = pairs.into_iter().map(|Pair { sender, receiver }| {
                scope.spawn(move || answer(receiver, at.window));
                Sender { socket: sender, block: at.window }
            });
            turns::run(plan, at, probe.rtt_s(), senders.collect())
        })?;
        // What else the machine does now is what it did for the blocks.
        probe.measure()?;
        Ok(Carried { bytes_s: sum.bytes_s, rtt_s: probe.rtt_s(), tcp: sum.tcp })
    }
}

impl Sender {
    fn send(&mut self) -> io::Result<()> {
        static CONTENT: [u8; LAB_STREAM_BUFFER] = [0x5a; LAB_STREAM_BUFFER];
        let mut left = self.block;
        while left > 0 {
            let now = left.min(CONTENT.len() as u64);
            self.socket.write_all(&CONTENT[..now as usize])?;
            left -= now;
        }
        self.socket.read_exact(&mut [0])
    }
}

impl BlockTransfer for Sender {
    fn block(&mut self) -> Result<(), SweepError> {
        self.send().map_err(tried("send a block and wait for its acknowledgement"))
    }

    fn info(&self) -> Option<TcpInfo> {
        TcpInfo::of(&self.socket)
    }

    fn end(&mut self) {
        let _gone = self.socket.shutdown(Shutdown::Both);
    }
}

/// The other end: one byte for each block, until nothing more comes.
fn answer(mut socket: TcpStream, block: u64) {
    let mut room = vec![0; LAB_STREAM_BUFFER];
    let mut got = 0;
    while let Ok(bytes @ 1..) = socket.read(&mut room) {
        got += bytes as u64;
        while got >= block {
            got -= block;
            // The sender notices a connection that is gone.
            let _gone = socket.write_all(&[1]);
        }
    }
}
