//! HTTP over TLS to an ACME server: one connection for each request, answers bounded.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use base::limits::{ACME_ANSWER_MAX, ACME_REQUEST_TIMEOUT};
use hyper::http::header::HOST;
use hyper::http::{HeaderValue, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Where distributions store the trusted CAs; the first existing file is used.
const TRUSTED: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("{0} is not an https URL")]
    Url(Uri),
    #[error("{0} timed out")]
    TooSlow(String),
    #[error("{host} cannot be reached: {why}")]
    Unreachable { host: String, why: String },
    #[error("invalid reply from {host}: {why}")]
    Broken { host: String, why: String },
}

/// The client.
pub struct Http {
    tls: TlsConnector,
}

impl Http {
    /// Trusts these CAs (PEM), or those that the machine trusts.
    ///
    /// # Errors
    /// There are none, or TLS is not available.
    pub fn new(authorities: Option<&str>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        match authorities {
            Some(pem) => {
                for one in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                    let one =
                        one.map_err(|e| format!("the CA certificates cannot be read: {e}"))?;
                    roots.add(one).map_err(|e| format!("a CA certificate is not valid: {e}"))?;
                }
            }
            None => {
                // Some of a machine's may be of a kind that is not known: the others will do.
                let file = TRUSTED.iter().find(|path| Path::new(path).exists());
                let all = file.and_then(|path| CertificateDer::pem_file_iter(path).ok());
                roots.add_parsable_certificates(all.into_iter().flatten().flatten());
            }
        }
        if roots.is_empty() {
            let sentence = "this machine has no list of trusted CAs: install ca-certificates, or \
                set authorities";
            return Err(sentence.to_owned());
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| format!("TLS is not available: {e}"))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: TlsConnector::from(Arc::new(config)) })
    }
}

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let tls = self.tls.clone();
        Box::pin(async move {
            let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
            let answer = tokio::time::timeout(ACME_REQUEST_TIMEOUT, send_once(tls, request)).await;
            let answer = answer.unwrap_or(Err(Failed::TooSlow(host)));
            answer.map(BytesResponse::from).map_err(|e| Error::Other(Box::new(e)))
        })
    }
}

async fn send_once(
    tls: TlsConnector,
    mut request: Request<BodyWrapper<Bytes>>,
) -> Result<Response<Body>, Failed> {
    let uri = request.uri().clone();
    let wrong = || Failed::Url(uri.clone());
    let https = uri.scheme_str() == Some("https");
    let authority = uri.authority().filter(|_| https).ok_or_else(wrong)?;
    // A v6 address has brackets there, and nowhere else.
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let port = authority.port_u16().unwrap_or(443);
    let unreachable = |why: &dyn std::fmt::Display| Failed::Unreachable {
        host: authority.to_string(),
        why: why.to_string(),
    };
    let broken = |why: &dyn std::fmt::Display| Failed::Broken {
        host: authority.to_string(),
        why: why.to_string(),
    };
    let name = ServerName::try_from(host.clone()).map_err(|_| wrong())?;
    let tcp = TcpStream::connect((host, port)).await.map_err(|e| unreachable(&e))?;
    let stream = tls.connect(name, tcp).await.map_err(|e| unreachable(&e))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|e| broken(&e))?;
    let value = HeaderValue::from_str(authority.as_str()).map_err(|_| wrong())?;
    request.headers_mut().insert(HOST, value);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().map_err(|_| wrong())?;
    // Errors of the connection are returned with the response.
    let driven = tokio::spawn(connection);
    let answer = async {
        let answer = sender.send_request(request).await.map_err(|e| broken(&e))?;
        let (head, body) = answer.into_parts();
        let body = to_bytes(Body::new(body), ACME_ANSWER_MAX).await.map_err(|e| broken(&e))?;
        Ok(Response::from_parts(head, Body::from(body)))
    }
    .await;
    driven.abort();
    answer
}
