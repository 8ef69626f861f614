//! A Plimsoll server on another machine, asked with an API token.

use crate::conduct::server::api::{RemoteApi, ServerApi};
use clap::Args;
use std::error::Error;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

#[derive(Debug, Default, Clone, Args)]
pub(super) struct ApiArgs {
    /// Plimsoll server on another machine, https://HOST[:PORT], for its statistics and to drop its
    /// cache before cold reads; the token needs status:read, analytics:read and shares:change
    #[arg(long, value_name = "URL", requires = "token_file", conflicts_with = "server_socket")]
    server: Option<String>,
    /// File with an API token of that server
    #[arg(long, value_name = "FILE", requires = "server")]
    token_file: Option<PathBuf>,
    /// Certificate of that server [default: certificate.pem next to the token file]
    #[arg(long, value_name = "FILE", requires = "server")]
    ca: Option<PathBuf>,
    /// Files are read once, and the server is asked once whether it accepts the token.
    #[arg(skip)]
    made: OnceLock<ServerApi>,
}

impl ApiArgs {
    /// Whether there is one.
    pub(super) fn is_given(&self) -> bool {
        self.server.is_some()
    }

    /// The API of the server, if one is given.
    ///
    /// # Errors
    /// A file cannot be read, or the server cannot be asked or refuses the token.
    pub(super) fn api(&self) -> Result<Option<ServerApi>, Box<dyn Error>> {
        let (Some(url), Some(token)) = (&self.server, &self.token_file) else { return Ok(None) };
        if let Some(api) = self.made.get() {
            return Ok(Some(api.clone()));
        }
        let api = ServerApi::Remote(Arc::new(RemoteApi::new(url, token, self.ca.as_deref())?));
        api.read("/api/v1/status").map_err(|why| format!("{url}: {why}"))?;
        Ok(Some(self.made.get_or_init(|| api).clone()))
    }
}
