//! The callback path to a client: over the address that a 4.0 client named (RFC 7530 §10.2.1), or
//! the back channel of a session (RFC 8881 §2.10.3.1) with its slots. A client without a working
//! callback path gets no delegations, and the status flags of every SEQUENCE (4.1) report it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wire::nfs4::seq4_status;

use super::channel::{Callback, Channel, Path, PathStatus};
use super::clients::Client;
use super::sessions::Session;
use super::{State, lock};

impl State {
    /// SEQUENCE's `sr_status_flags`.
    pub fn status_flags(&self, session: &Session) -> u32 {
        let of_client = session.client.way_back.flags.load(Ordering::Relaxed);
        of_client | session.flags.load(Ordering::Relaxed)
    }

    /// Changes a session's back channel, and the flags of SEQUENCE about it.
    pub fn with_channel<T>(&self, session: &Session, act: impl FnOnce(&mut Channel) -> T) -> T {
        let (done, flags) = {
            let mut channel = lock(&session.channel);
            (act(&mut channel), channel.flags())
        };
        if session.flags.swap(flags, Ordering::Relaxed) != flags {
            self.update_path_flag(&session.client);
        }
        done
    }

    /// Whether any session of the client has a back channel that works, if it wants one at all.
    fn update_path_flag(&self, client: &Client) {
        let (mut asked, mut up) = (false, false);
        for session in self.sessions_of(client) {
            let channel = lock(&session.channel);
            asked |= channel.asked;
            up |= channel.is_up();
        }
        client.way_back.set(seq4_status::CB_PATH_DOWN, asked && !up);
    }

    /// The sessions of a client.
    pub fn sessions_of(&self, client: &Client) -> Vec<Arc<Session>> {
        let ids = lock(&client.sessions).clone();
        ids.iter().filter_map(|id| self.session(id).ok()).collect()
    }

    /// Whether the client can be called, as far as is known.
    pub fn can_call(&self, client: &Client) -> bool {
        match client.name.0 {
            true => self.sessions_of(client).iter().any(|session| lock(&session.channel).is_up()),
            false => lock(&client.way_back.path).status == PathStatus::Up,
        }
    }

    /// SETCLIENTID gives the callback address; it is valid from the confirmation on.
    pub fn propose_callback(&self, id: u64, confirm: [u8; 8], callback: Callback) {
        if let Some(client) = self.names.lock().get(id) {
            lock(&client.way_back.path).proposed = Some((confirm, callback));
        }
    }

    /// SETCLIENTID_CONFIRM: the client, if there is a new way to it.
    pub fn confirm_callback(&self, id: u64, confirm: [u8; 8]) -> Option<Arc<Client>> {
        let client = self.live.get(&id)?;
        let mut path = lock(&client.way_back.path);
        let (_, callback) = path.proposed.take_if(|(by, _)| *by == confirm)?;
        *path = Path { callback: Some(callback), ..Path::default() };
        drop(path);
        Some(client)
    }

    /// RENEW: whether a client of 4.0 holds delegations and cannot be called (RFC 7530 §16.29.5).
    pub fn path_is_down(&self, client: &Client) -> bool {
        client.way_back.delegations() > 0 && client.way_back.path().status == PathStatus::Down
    }

    /// Whether it is time to try the way to a client of 4.0 again.
    pub fn should_probe(&self, client: &Client, now_ns: u64) -> bool {
        let path = client.way_back.path();
        let rested = now_ns.saturating_sub(path.tried_ns) >= self.patience_ns();
        path.status == PathStatus::Down && rested
    }

    /// Looks whether a client of 4.0 has left a call unanswered for too long.
    pub(super) fn look_at_path(&self, client: &Client, now_ns: u64) {
        let mut path = client.way_back.path();
        if path.since_ns.is_some_and(|since| now_ns.saturating_sub(since) > self.patience_ns()) {
            path.status = PathStatus::Down;
            path.since_ns = None;
            path.line = None;
        }
    }

    /// Looks at all back channels: which calls are late, which connections are gone.
    pub(super) fn look_at_channels(&self, now_ns: u64, patience_ns: u64) {
        for session in self.sessions.all() {
            self.with_channel(&session, |channel| channel.look(now_ns, patience_ns));
        }
    }
}
