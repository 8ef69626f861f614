//! The peers' configurations: each as fast as its manual permits, with the same requirements for
//! all: a user with a password, a private key of the same kind, no logs of transfers.

use std::fs;
use std::io;
use std::path::Path;

use lab::client::service::at::Scheme;

use super::{PASSWORD, USER};
use crate::programs::Program;

/// The values of a configuration.
pub struct Setting<'a> {
    /// A folder of this server only.
    pub own: &'a Path,
    /// What it serves.
    pub root: &'a Path,
    /// Its ports, one for each of its protocols.
    pub ports: &'a [u16],
    /// Certificate and private key, PEM.
    pub certificate: (&'a Path, &'a Path),
    /// SSH host key.
    pub host_key: &'a Path,
}

impl Setting<'_> {
    fn own(&self, name: &str) -> String {
        self.own.join(name).display().to_string()
    }

    fn root(&self) -> String {
        self.root.display().to_string()
    }

    fn port(&self, n: usize) -> u16 {
        self.ports.get(n).copied().unwrap_or(0)
    }

    fn certificate(&self) -> (String, String) {
        let (certificate, key) = self.certificate;
        (certificate.display().to_string(), key.display().to_string())
    }
}

/// Writes the configuration of a server to a file; returns the arguments with which it reads it,
/// and serves without going to the background.
///
/// # Errors
/// When it cannot be written.
pub fn arguments(
    name: &str,
    s: &Setting<'_>,
    program: &Program,
    protocols: &[Scheme],
) -> io::Result<Vec<String>> {
    let (path, log) = (s.own("conf"), s.own("error.log"));
    let (conf, log) = (path.as_str(), log.as_str());
    let (text, words): (String, Vec<&str>) = match name {
        "vsftpd" => (vsftpd(s), vec![conf]),
        "proftpd" => (proftpd(s, program), vec!["-n", "-q", "-c", conf]),
        "sshd" => (sshd(s), vec!["-D", "-e", "-f", conf]),
        "nginx" => (nginx(s), vec!["-e", log, "-c", conf]),
        "apache2" => (apache(s, program), vec!["-DFOREGROUND", "-f", conf]),
        _ => return Ok(rclone(s, protocols.first().copied())),
    };
    fs::write(conf, text)?;
    Ok(words.into_iter().map(str::to_owned).collect())
}

/// vsftpd: FTP and FTPS on one port.
fn vsftpd(s: &Setting<'_>) -> String {
    let (certificate, key) = s.certificate();
    format!(
        "listen=YES\nbackground=NO\nlisten_address=127.0.0.1\nlisten_port={port}\n\
         anonymous_enable=NO\nlocal_enable=YES\nwrite_enable=YES\nlocal_root={root}\n\
         secure_chroot_dir={empty}\npam_service_name=other\nxferlog_enable=NO\n\
         use_sendfile=YES\nseccomp_sandbox=NO\n\
         ssl_enable=YES\nforce_local_logins_ssl=NO\nforce_local_data_ssl=NO\nssl_tlsv1=YES\n\
         require_ssl_reuse=NO\nssl_ciphers=ECDHE+AESGCM\n\
         rsa_cert_file={certificate}\nrsa_private_key_file={key}\n",
        port = s.port(0),
        root = s.root(),
        empty = s.own("empty"),
    )
}

/// ProFTPD: FTP and FTPS on one port, mod_sftp on its own.
fn proftpd(s: &Setting<'_>, program: &Program) -> String {
    let (certificate, key) = s.certificate();
    format!(
        "ModulePath {modules}\nLoadModule mod_tls.c\nLoadModule mod_sftp.c\n\
         ServerType standalone\nServerName bench\nDefaultAddress 127.0.0.1\nSocketBindTight on\n\
         Port {ftp}\nPidFile {pid}\nScoreboardFile {score}\nDelayEngine off\nWtmpLog off\n\
         SystemLog {log}\nTransferLog none\nAuthOrder mod_auth_file.c\nAuthUserFile {users}\n\
         RequireValidShell off\nUseReverseDNS off\nUseSendfile on\nAllowOverwrite on\n\
         MaxInstances 100\nUser {USER}\nGroup {USER}\n\
         TLSEngine on\nTLSRequired off\nTLSProtocol TLSv1.2 TLSv1.3\n\
         TLSCipherSuite ECDHE+AESGCM\nTLSECCertificateFile {certificate}\n\
         TLSECCertificateKeyFile {key}\nTLSVerifyClient off\n\
         TLSOptions NoSessionReuseRequired\n\
         <VirtualHost 127.0.0.1>\nPort {sftp}\nTLSEngine off\nSFTPEngine on\n\
         SFTPHostKey {host_key}\nSFTPLog {sftp_log}\nAuthUserFile {users}\n\
         RequireValidShell off\nAllowOverwrite on\n</VirtualHost>\n",
        modules = program.folder("usr/lib/proftpd"),
        ftp = s.port(0),
        sftp = s.port(2),
        pid = s.own("pid"),
        score = s.own("score"),
        log = s.own("system.log"),
        sftp_log = s.own("sftp.log"),
        users = s.own("users"),
        host_key = s.host_key.display(),
    )
}

/// OpenSSH: the server for SFTP that is part of sshd, not a separate process.
fn sshd(s: &Setting<'_>) -> String {
    format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nPidFile {pid}\n\
         StrictModes no\nUsePAM no\nUseDNS no\nPasswordAuthentication yes\nPrintMotd no\n\
         MaxStartups 100\nSubsystem sftp internal-sftp\nForceCommand internal-sftp\n",
        port = s.port(0),
        host_key = s.host_key.display(),
        pid = s.own("pid"),
    )
}

/// nginx with its WebDAV module: HTTP on the first port, HTTPS on the second.
fn nginx(s: &Setting<'_>) -> String {
    let (certificate, key) = s.certificate();
    // Bodies on the file system of their files: they are moved there, not copied.
    let site = format!(
        "root {root}; client_max_body_size 0; auth_basic bench; auth_basic_user_file {users};\n\
         location / {{ dav_methods PUT DELETE MKCOL COPY MOVE; }}",
        root = s.root(),
        users = s.own("users"),
    );
    format!(
        "daemon off; user {USER} {USER}; worker_processes auto; pid {pid}; error_log {log} warn;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; sendfile on; tcp_nopush on; sendfile_max_chunk 2m;\n\
         keepalive_timeout 60; keepalive_requests 1000000; open_file_cache max=20000;\n\
         client_body_buffer_size 1m; client_body_temp_path {bodies};\n\
         proxy_temp_path {own}/p; fastcgi_temp_path {own}/f; uwsgi_temp_path {own}/u;\n\
         scgi_temp_path {own}/s;\n\
         ssl_certificate {certificate}; ssl_certificate_key {key};\n\
         ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:s:4m; ssl_buffer_size 16k;\n\
         server {{ listen 127.0.0.1:{http} reuseport; {site} }}\n\
         server {{ listen 127.0.0.1:{https} ssl reuseport; {site} }}\n}}\n",
        pid = s.own("pid"),
        log = s.own("error.log"),
        own = s.own.display(),
        bodies = s.own("bodies"),
        http = s.port(0),
        https = s.port(1),
    )
}

/// Apache with mod_dav: HTTP on the first port, HTTPS on the second.
fn apache(s: &Setting<'_>, program: &Program) -> String {
    let (certificate, key) = s.certificate();
    let modules = program.folder("usr/lib/apache2/modules");
    let modules: String = [
        "mpm_event",
        "authn_core",
        "authn_file",
        "authz_core",
        "authz_user",
        "auth_basic",
        "dav",
        "dav_fs",
        "dav_lock",
        "ssl",
        "socache_shmcb",
    ]
    .iter()
    .map(|name| format!("LoadModule {name}_module {modules}/mod_{name}.so\n"))
    .collect();
    format!(
        "{modules}ServerRoot {own}\nServerName localhost\nPidFile {pid}\nErrorLog {log}\n\
         LogLevel warn\nUser {USER}\nGroup {USER}\nDefaultRuntimeDir {own}\n\
         Listen 127.0.0.1:{http}\nListen 127.0.0.1:{https}\n\
         KeepAlive On\nMaxKeepAliveRequests 0\nKeepAliveTimeout 60\nThreadsPerChild 32\n\
         StartServers 1\nEnableSendfile On\nEnableMMAP On\nDavLockDB {own}/locks/db\n\
         DocumentRoot {root}\n<Directory {root}>\nDav On\nAllowOverride None\n\
         AuthType Basic\nAuthName bench\nAuthUserFile {users}\nRequire valid-user\n\
         </Directory>\n<VirtualHost 127.0.0.1:{https}>\nSSLEngine on\n\
         SSLCertificateFile {certificate}\nSSLCertificateKeyFile {key}\n\
         SSLProtocol TLSv1.2 TLSv1.3\nDocumentRoot {root}\n</VirtualHost>\n",
        own = s.own.display(),
        pid = s.own("pid"),
        log = s.own("error.log"),
        users = s.own("users"),
        root = s.root(),
        http = s.port(0),
        https = s.port(1),
    )
}

/// The arguments of rclone: one protocol each process.
fn rclone(s: &Setting<'_>, protocol: Option<Scheme>) -> Vec<String> {
    let (address, (certificate, key)) = (format!("127.0.0.1:{}", s.port(0)), s.certificate());
    let (users, cache, root) = (s.own("users"), s.own("cache"), s.root());
    let host_key = s.host_key.display().to_string();
    let kind = if protocol == Some(Scheme::Sftp) { "sftp" } else { "webdav" };
    let mut words = vec!["serve", kind, "--addr", &address, "--config", "/dev/null"];
    words.extend(["--cache-dir", &cache]);
    match protocol {
        Some(Scheme::Sftp) => {
            words.extend(["--user", USER, "--pass", PASSWORD, "--key", &host_key]);
        }
        Some(Scheme::Https) => {
            words.extend(["--htpasswd", &users, "--cert", &certificate, "--key", &key]);
        }
        _ => words.extend(["--htpasswd", &users]),
    }
    words.push(&root);
    words.into_iter().map(str::to_owned).collect()
}
