//! Export rules from the command line or a file, and who is meant by the names in them.

use base::failure::read_text;
use base::limits::EXPORTS_FILE_MAX;
use service::shares::System;
use vfs::share::rules::Rules;

use crate::cli::ServeArgs;
use crate::out::Failure;

/// Reads the rules of the share: those of the command line hold as long as the server runs, a file
/// may be read again.
///
/// # Errors
/// The file cannot be read, or a rule is wrong; says which.
pub fn read(args: &ServeArgs) -> Result<Rules, Failure> {
    let Some(path) = &args.exports else {
        let read = Rules::parse_each(&args.export, &System);
        return read.map_err(|e| Failure::usage("read --export", &e.to_string(), HINT));
    };
    let tried = format!("read the export rules in {}", path.display());
    let text = read_text(&tried, path, EXPORTS_FILE_MAX, HINT)?;
    Rules::parse(&text, &System).map_err(|e| Failure::new(&tried, &e.to_string(), HINT))
}

const HINT: &str = "use CLIENT(OPTIONS); see docs/howto/export-rules.md";
