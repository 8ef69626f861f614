//! A key exchange, from KEXINIT to NEWKEYS (RFC 4253, sections 7 and 8), with what strict key
//! exchange adds (OpenSSH, PROTOCOL, section 1.9).

use super::super::codec::Names;
use super::super::kex::{self, Chosen, ClientKex, EXT_INFO_CLIENT, STRICT, Secret, Transcript};
use super::super::key::{PublicKey, SIGNATURES, fingerprint};
use super::super::message::{KexInit, Message, put_ext_info};
use super::super::packet::{Cipher, Keys, Mac, Opener, Sealer};
use super::{Error, Side, Transport};

/// A key exchange in progress.
pub(super) struct Exchange {
    /// Our KEXINIT.
    pub(super) ours: Vec<u8>,
    /// Theirs.
    theirs: Vec<u8>,
    /// What was agreed on.
    chosen: Option<Chosen>,
    /// The client's secret, until the server has answered.
    initiated: Option<ClientKex>,
    /// The next packet of the exchange was guessed, wrongly.
    skip: bool,
    /// What opens packets after their NEWKEYS: there are keys, and ours was sent.
    opener: Option<Opener>,
}

impl Exchange {
    pub(super) fn has_theirs(&self) -> bool {
        !self.theirs.is_empty()
    }

    pub(super) fn has_sent_keys(&self) -> bool {
        self.opener.is_some()
    }
}

impl Transport {
    /// Sends our KEXINIT.
    pub(super) fn begin_exchange(&mut self) -> Result<(), Error> {
        let (policy, mut host_keys) = match &self.side {
            Side::Server(setup) => {
                let keys = setup.host_keys.iter().flat_map(|key| key.algorithms());
                (&setup.policy, keys.copied().collect::<Vec<_>>())
            }
            Side::Client(setup) => {
                (&setup.policy, vec!["ssh-ed25519", "rsa-sha2-512", "rsa-sha2-256"])
            }
        };
        host_keys.dedup();
        let mut methods: Vec<_> = policy.kex.iter().map(|method| method.name()).collect();
        let [client, server] = STRICT;
        methods.extend(match self.side {
            Side::Server(_) => vec![server],
            Side::Client(_) => vec![EXT_INFO_CLIENT, client],
        });
        let ciphers =
            policy.ciphers.iter().copied().map(Cipher::name).collect::<Vec<_>>().join(",");
        let macs = policy.macs.iter().copied().map(Mac::name).collect::<Vec<_>>().join(",");
        let mut cookie = [0; 16];
        self.random.fill(&mut cookie);
        let (ciphers, macs) = (Names(&ciphers), Names(&macs));
        let init = KexInit {
            cookie,
            kex: Names(&methods.join(",")),
            host_key: Names(&host_keys.join(",")),
            cipher: [ciphers; 2],
            mac: [macs; 2],
            compression: [Names("none"); 2],
            languages: [Names(""); 2],
            follows: false,
        };
        let mut ours = Vec::new();
        Message::KexInit(init).encode(&mut ours);
        self.output.packet(|out| out.extend_from_slice(&ours))?;
        self.exchange = Some(Exchange {
            ours,
            theirs: Vec::new(),
            chosen: None,
            initiated: None,
            skip: false,
            opener: None,
        });
        Ok(())
    }

    /// Their KEXINIT.
    pub(super) fn receive_init(&mut self, payload: &[u8]) -> Result<(), Error> {
        if self.awaits_exchange() {
            return Err(Error::Protocol("a second KEXINIT"));
        }
        if self.session.is_some() && self.exchange.is_none() && !self.renewable {
            return Err(Error::Protocol("another KEXINIT before authentication"));
        }
        if self.exchange.is_none() {
            self.begin_exchange()?;
        }
        let (server, first) = (self.is_server(), self.session.is_none());
        let Some(exchange) = &mut self.exchange else { return Err(Error::KeyExchange) };
        let Message::KexInit(theirs) = Message::decode(payload)? else {
            return Err(Error::Protocol("no KEXINIT"));
        };
        let ours = exchange.ours.clone();
        let Message::KexInit(ours) = Message::decode(&ours)? else {
            return Err(Error::KeyExchange);
        };
        let chosen =
            if server { kex::negotiate(&theirs, &ours)? } else { kex::negotiate(&ours, &theirs)? };
        if first {
            let [client_mark, server_mark] = STRICT;
            self.strict = theirs.kex.has(if server { client_mark } else { server_mark });
            self.ext_info = theirs.kex.has(EXT_INFO_CLIENT);
            // It must be the very first packet; otherwise a packet was inserted before it.
            if self.strict && self.opener.sequence != 1 {
                return Err(Error::Protocol("unexpected message before the first KEXINIT"));
            }
        }
        exchange.skip = theirs.follows && chosen.guess_is_wrong;
        exchange.theirs = payload.to_vec();
        if !server {
            let initiated = kex::initiate(chosen.method).map_err(|_| Error::KeyExchange)?;
            self.output.packet(|out| Message::KexEcdhInit(&initiated.share).encode(out))?;
            exchange.initiated = Some(initiated);
        }
        exchange.chosen = Some(chosen);
        Ok(())
    }

    /// The other side's share.
    pub(super) fn receive_share(&mut self, payload: &[u8]) -> Result<(), Error> {
        let Some(exchange) = &mut self.exchange else { return Err(Error::KeyExchange) };
        if std::mem::take(&mut exchange.skip) {
            return Ok(());
        }
        if exchange.chosen.is_none() || exchange.opener.is_some() {
            return Err(Error::Protocol("a share out of turn"));
        }
        match (Message::decode(payload)?, self.is_server()) {
            (Message::KexEcdhInit(share), true) => self.answer(share),
            (Message::KexEcdhReply { host_key, share, signature }, false) => {
                self.conclude(host_key, share, signature)
            }
            _ => Err(Error::Protocol("unexpected message during the key exchange")),
        }
    }

    /// As the server: our share, our key and its signature.
    fn answer(&mut self, client_share: &[u8]) -> Result<(), Error> {
        let (Side::Server(setup), Some(exchange)) = (&self.side, &self.exchange) else {
            return Err(Error::KeyExchange);
        };
        let chosen = exchange.chosen.clone().ok_or(Error::KeyExchange)?;
        let key = setup.host_keys.iter().find(|k| k.algorithms().contains(&&*chosen.host_key));
        let key = key.ok_or(Error::KeyExchange)?;
        let (share, secret) =
            kex::respond(chosen.method, client_share).map_err(|_| Error::KeyExchange)?;
        let [ours, theirs] = &self.versions;
        let hash = Transcript {
            client_version: theirs,
            server_version: ours,
            client_init: &exchange.theirs,
            server_init: &exchange.ours,
            host_key: key.blob(),
            client_share,
            server_share: &share,
        }
        .hash(&secret);
        let signature = key.sign(&chosen.host_key, &hash).map_err(|_| Error::KeyExchange)?;
        let reply =
            Message::KexEcdhReply { host_key: key.blob(), share: &share, signature: &signature };
        self.output.packet(|out| reply.encode(out))?;
        self.host_key = key.blob().to_vec();
        self.switch(chosen, &secret, hash)
    }

    /// As the client: the server's share, its key and its signature.
    fn conclude(&mut self, host_key: &[u8], share: &[u8], signature: &[u8]) -> Result<(), Error> {
        let (Side::Client(setup), Some(exchange)) = (&self.side, &mut self.exchange) else {
            return Err(Error::KeyExchange);
        };
        let chosen = exchange.chosen.clone().ok_or(Error::KeyExchange)?;
        let initiated = exchange.initiated.take().ok_or(Error::KeyExchange)?;
        let client_share = initiated.share.clone();
        let secret = initiated.finish(share).map_err(|_| Error::KeyExchange)?;
        let [ours, theirs] = &self.versions;
        let hash = Transcript {
            client_version: ours,
            server_version: theirs,
            client_init: &exchange.ours,
            server_init: &exchange.theirs,
            host_key,
            client_share: &client_share,
            server_share: share,
        }
        .hash(&secret);
        let refused = || Error::HostKey(fingerprint(host_key));
        let key = PublicKey::decode(host_key).map_err(|_| refused())?;
        key.verify(&chosen.host_key, &hash, signature).map_err(|_| refused())?;
        // The one that is known, and the same as before in a later exchange.
        let changed = self.session.is_some() && self.host_key != host_key;
        if changed || setup.host_key.as_ref().is_some_and(|known| known != host_key) {
            return Err(refused());
        }
        self.host_key = host_key.to_vec();
        self.switch(chosen, &secret, hash)
    }

    /// Sends NEWKEYS and seals with the new keys from then on.
    fn switch(&mut self, chosen: Chosen, secret: &Secret, hash: [u8; 32]) -> Result<(), Error> {
        let first = self.session.is_none();
        let session = *self.session.get_or_insert(hash);
        let [c2s, s2c] = kex::keys(&chosen, secret, &hash, &session);
        let ([cipher_c2s, cipher_s2c], [mac_c2s, mac_s2c]) = (chosen.ciphers, chosen.macs);
        let (c2s, s2c): ((Cipher, Option<Mac>, Keys), _) =
            ((cipher_c2s, mac_c2s, c2s), (cipher_s2c, mac_s2c, s2c));
        let (incoming, outgoing) = if self.is_server() { (c2s, s2c) } else { (s2c, c2s) };
        self.output.packet(|out| Message::NewKeys.encode(out))?;
        let strict = self.strict;
        self.output.rekey(|sequence| {
            let (cipher, mac, keys) = outgoing;
            Sealer::new(cipher, mac, &keys, if strict { 0 } else { sequence })
        })?;
        let (cipher, mac, keys) = incoming;
        let opener = Opener::new(cipher, mac, &keys, 0)?;
        self.chosen = Some(chosen);
        if let Some(exchange) = &mut self.exchange {
            exchange.opener = Some(opener);
        }
        if first && self.is_server() && self.ext_info {
            let list = SIGNATURES.join(",");
            self.output.packet(|out| put_ext_info(out, &[("server-sig-algs", list.as_bytes())]))?;
        }
        for message in std::mem::take(&mut self.held) {
            self.output.packet(|out| out.extend_from_slice(&message))?;
        }
        self.held_bytes = 0;
        Ok(())
    }

    /// Their NEWKEYS: packets are opened with the new keys from then on.
    pub(super) fn receive_new_keys(&mut self, payload: &[u8]) -> Result<(), Error> {
        Message::decode(payload)?;
        let opener = self.exchange.as_mut().and_then(|exchange| exchange.opener.take());
        let Some(mut opener) = opener else { return Err(Error::Protocol("NEWKEYS out of turn")) };
        opener.sequence = if self.strict { 0 } else { self.opener.sequence };
        self.opener = opener;
        self.exchange = None;
        self.initial = false;
        self.keyed_ns = None;
        Ok(())
    }
}
