//! A channel of an SSH connection as the SFTP server sees it: bytes in, bytes out.

use std::rc::Rc;

use super::super::channel::{Gone, Input, Output};
use engine::transport::acks::Acks;

use super::session::{SessionEnded, Shared, Signals};

/// What comes on a channel.
pub struct SshInput {
    session: Shared,
    id: u32,
    signals: Rc<Signals>,
}

/// The output of a channel.
pub struct SshOutput {
    session: Shared,
    id: u32,
    signals: Rc<Signals>,
}

pub(super) fn halves(session: &Shared, id: u32, signals: &Rc<Signals>) -> (SshInput, SshOutput) {
    let input = SshInput { session: Rc::clone(session), id, signals: Rc::clone(signals) };
    (input, SshOutput { session: Rc::clone(session), id, signals: Rc::clone(signals) })
}

impl Input for SshInput {
    async fn receive(&mut self, into: &mut Vec<u8>) -> Result<usize, Gone> {
        loop {
            let pulled = {
                let mut session = self.session.borrow_mut();
                let pulled = session.pull(self.id, into).map_err(|SessionEnded| Gone)?;
                if session.transport.backlog() > 0 {
                    session.wake.notify_one();
                }
                pulled
            };
            match pulled {
                Some(n) => return Ok(n),
                None => self.signals.readable.notified().await,
            }
        }
    }

    fn arrived(&mut self, behind: usize) -> u64 {
        self.session.borrow_mut().arrived(self.id, behind)
    }
}

impl Output for SshOutput {
    async fn send(&mut self, parts: &[&[u8]]) -> Result<(), Gone> {
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                let n = {
                    let mut session = self.session.borrow_mut();
                    let pushed = session.push(self.id, rest);
                    if pushed != Some(0) {
                        session.wake.notify_one();
                    }
                    pushed.ok_or(Gone)?
                };
                rest = rest.get(n..).unwrap_or_default();
                if n == 0 {
                    self.signals.writable.notified().await;
                }
            }
        }
        Ok(())
    }

    fn when_sent(&mut self, done: impl FnOnce(Option<&Rc<Acks>>) + 'static) {
        self.session.borrow_mut().when_sent(Box::new(done));
    }

    fn room(&self) -> usize {
        self.session.borrow().room(self.id)
    }
}
