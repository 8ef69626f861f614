//! Operations and statuses of the services that transfer files: FTP, SFTP, HTTP.

/// Commands of FTP by the numbers of `wire::ftp::Verb`; 0 stands for what is none.
pub(super) const FTP_OPS: [&str; 57] = [
    "unknown", "user", "pass", "acct", "cwd", "cdup", "quit", "rein", "port", "pasv", "type",
    "stru", "mode", "retr", "stor", "stou", "appe", "allo", "rest", "rnfr", "rnto", "abor", "dele",
    "rmd", "mkd", "pwd", "list", "nlst", "site", "syst", "stat", "help", "noop", "feat", "opts",
    "eprt", "epsv", "lang", "mdtm", "size", "mlst", "mlsd", "auth", "pbsz", "prot", "ccc", "mfmt",
    "hash", "rang", "host", "clnt", "avbl", "smnt", "adat", "mic", "conf", "enc",
];

/// Replies of FTP (RFC 959 §4.2.2) are their own names.
pub(super) const FTP_STATUS: [(u16, &str); 0] = [];

/// Requests of SFTP version 3 by place in this list; 0 stands for what is none.
pub(super) const SFTP_OPS: [&str; 33] = [
    "unknown",
    "init",
    "open",
    "close",
    "read",
    "write",
    "lstat",
    "fstat",
    "setstat",
    "fsetstat",
    "opendir",
    "readdir",
    "remove",
    "mkdir",
    "rmdir",
    "realpath",
    "stat",
    "rename",
    "readlink",
    "symlink",
    "posix-rename",
    "statvfs",
    "fstatvfs",
    "hardlink",
    "fsync",
    "lsetstat",
    "limits",
    "expand-path",
    "copy-data",
    "users-groups-by-id",
    "home-directory",
    "extended",
    "connect",
];

/// `SSH_FX_*` (draft-ietf-secsh-filexfer-02 §7).
pub(super) const SFTP_STATUS: [(u16, &str); 9] = [
    (0, "SSH_FX_OK"),
    (1, "SSH_FX_EOF"),
    (2, "SSH_FX_NO_SUCH_FILE"),
    (3, "SSH_FX_PERMISSION_DENIED"),
    (4, "SSH_FX_FAILURE"),
    (5, "SSH_FX_BAD_MESSAGE"),
    (6, "SSH_FX_NO_CONNECTION"),
    (7, "SSH_FX_CONNECTION_LOST"),
    (8, "SSH_FX_OP_UNSUPPORTED"),
];

/// Methods of HTTP (RFC 9110 §9, RFC 4918 §9) by place in this list; 0 stands for others.
pub(super) const HTTP_OPS: [&str; 20] = [
    "other",
    "get",
    "head",
    "post",
    "put",
    "delete",
    "connect",
    "options",
    "trace",
    "patch",
    "propfind",
    "proppatch",
    "mkcol",
    "copy",
    "move",
    "lock",
    "unlock",
    "report",
    "search",
    "acl",
];

/// Status codes of HTTP are their own names.
pub(super) const HTTP_STATUS: [(u16, &str); 0] = [];

/// What dsync does to files of a share, by the numbers of `serve::sftp::dsync::count::Op`.
pub(super) const DSYNC_OPS: [&str; 17] = [
    "list", "look", "open", "seek", "read", "write", "create", "setattr", "setxattr", "mkdir",
    "symlink", "mknod", "link", "rename", "remove", "flush", "clone",
];

/// Errors by their numbers on Linux (errno(3)), those that a file operation of ours can have.
pub(super) const DSYNC_STATUS: [(u16, &str); 21] = [
    (0, "OK"),
    (1, "EPERM"),
    (2, "ENOENT"),
    (5, "EIO"),
    (11, "EAGAIN"),
    (13, "EACCES"),
    (16, "EBUSY"),
    (17, "EEXIST"),
    (18, "EXDEV"),
    (20, "ENOTDIR"),
    (21, "EISDIR"),
    (22, "EINVAL"),
    (27, "EFBIG"),
    (28, "ENOSPC"),
    (30, "EROFS"),
    (31, "EMLINK"),
    (36, "ENAMETOOLONG"),
    (39, "ENOTEMPTY"),
    (95, "EOPNOTSUPP"),
    (116, "ESTALE"),
    (122, "EDQUOT"),
];
