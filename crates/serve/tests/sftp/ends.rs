//! The ends of a channel of SFTP within this process: what the client sends, and what it gets.

use serve::sftp::channel::{Gone, Input, Output};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

pub struct In(pub UnboundedReceiver<Vec<u8>>);
pub struct Out(pub UnboundedSender<Vec<u8>>);

impl Input for In {
    async fn receive(&mut self, into: &mut Vec<u8>) -> Result<usize, Gone> {
        let Some(piece) = self.0.recv().await else { return Ok(0) };
        into.extend_from_slice(&piece);
        Ok(piece.len())
    }
}

impl Output for Out {
    async fn send(&mut self, parts: &[&[u8]]) -> Result<(), Gone> {
        self.0.send(parts.concat()).map_err(|_| Gone)
    }

    fn room(&self) -> usize {
        usize::MAX
    }
}
