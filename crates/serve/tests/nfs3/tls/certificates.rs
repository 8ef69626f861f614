//! Certificates for the tests, created for each run.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serve::transport::tls::{ALPN, Credentials, Tls};

/// The CA.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// What a client shows.
pub enum Shown<'a> {
    /// No certificate.
    Nothing,
    /// One that is good.
    Good,
    /// An expired one.
    Expired,
    /// One for servers only.
    ForServers,
    /// One of another authority.
    Of(&'a Authority),
}

/// Certificate and key, PEM.
type Pair = (String, String);

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    fn pem(&self) -> String {
        self.issuer.pem()
    }

    fn sign(&self, change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "host.example");
        change(&mut params);
        let made = params.signed_by(&key, &self.issuer).unwrap();
        (made.pem(), key.serialize_pem())
    }

    fn for_client(&self, change: impl FnOnce(&mut CertificateParams)) -> Pair {
        self.sign(|params| {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            change(params);
        })
    }

    /// What a server shows that believes this authority.
    pub fn credentials(&self) -> Credentials {
        let (certificate, key) = self.sign(|_| ());
        Credentials { certificate, key, client_ca: Some(self.pem()) }
    }

    pub fn server(&self) -> Arc<Tls> {
        Tls::new(&self.credentials()).unwrap()
    }

    /// A client that believes this authority, as RFC 9289 wants it.
    pub fn client(&self, shown: &Shown) -> ClientConfig {
        self.client_over(shown, &rustls::version::TLS13)
    }

    pub fn client_over(
        &self,
        shown: &Shown,
        version: &'static SupportedProtocolVersion,
    ) -> ClientConfig {
        let pair = match shown {
            Shown::Nothing => None,
            Shown::Good => Some(self.for_client(|_| ())),
            Shown::Expired => Some(self.for_client(|params| {
                params.not_before = date_time_ymd(2001, 1, 1);
                params.not_after = date_time_ymd(2002, 1, 1);
            })),
            Shown::ForServers => Some(self.sign(|params| {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            })),
            Shown::Of(other) => Some(other.for_client(|_| ())),
        };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match pair {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        config
    }
}
