//! What an administrator sees of the state, and may end.

use wire::nfs4::ArgOp;

use super::run::CompoundContext;
use super::state::{ClientCounts, ClientInfo};
use super::stateful::Stateful;

impl Stateful {
    /// All confirmed clients.
    pub fn clients(&self) -> Vec<ClientInfo> {
        self.state.clients(self.now())
    }

    /// One of them.
    pub fn client(&self, clientid: u64) -> Option<ClientInfo> {
        self.state.client_info(clientid, self.now())
    }

    /// How many clients and sessions there are.
    pub fn client_counts(&self) -> ClientCounts {
        self.state.client_counts(self.now())
    }

    /// Ends a client with all that it holds. False if there is none.
    pub fn expire(&self, clientid: u64) -> bool {
        self.state.expire(clientid)
    }

    /// Ends what clients hold through the share with this tag, which is not served any more. Gives
    /// how many opens and delegations there were.
    pub fn release_share(&self, tag: u32) -> (usize, usize) {
        self.state.release_share(tag)
    }

    /// Addresses of the clients that have something through the share with this tag.
    pub fn holders(&self, tag: u32) -> Vec<std::net::IpAddr> {
        self.state.holders(tag)
    }

    /// Remembers from where a client speaks. Only operations that are rare look: those by which it
    /// comes, and those by which it shows itself on a new connection.
    pub(super) fn note_peer(&self, run: &CompoundContext<'_>, op: &ArgOp<'_>) {
        let id = match op {
            ArgOp::SetclientidConfirm(args) => args.clientid,
            ArgOp::Renew(args) => args.clientid,
            ArgOp::CreateSession(args) => args.clientid,
            ArgOp::BindConnToSession(args) => match self.state.session(&args.sessid) {
                Ok(session) => session.client.id,
                Err(_) => return,
            },
            _ => return,
        };
        self.state.meet(id, run.minor(), run.peer.address.0);
    }
}
