//! Sizes and headers: lines, functions, files, the opening paragraph, documented limits.

use super::{Finding, Source, scan};

/// Columns of a line.
const WIDTH_MAX: usize = 100;
/// Lines of a function.
const FUNCTION_MAX: usize = 70;
/// Lines of a source file.
const FILE_MAX: usize = 800;
/// Lines of a test file.
const TEST_FILE_MAX: usize = 1200;
/// Lines of ARCHITECTURE.md: a newcomer reads it whole.
const ARCHITECTURE_MAX: usize = 200;
/// Where all limits live.
const LIMITS: [&str; 2] = ["crates/base/src/limits.rs", "crates/base/src/limits/administration.rs"];

/// Checks one file.
pub fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let add = |line, rule, what| Finding { path: source.path.clone(), line, rule, what };
    if source.is_rust() || source.is_ui() {
        let lines = source.text.lines().count();
        let most = if source.is_test() { TEST_FILE_MAX } else { FILE_MAX };
        if lines >= most {
            findings.push(add(0, "file-size", format!("{lines} lines; below {most} is the rule")));
        }
        if !has_header(source) {
            findings.push(add(1, "header", "opens without saying what it is for".to_owned()));
        }
    }
    if source.is_rust() {
        for (i, line) in source.text.lines().enumerate() {
            let width = line.chars().count();
            if width > WIDTH_MAX && !line.contains("http") && !captured(source, i) {
                findings.push(add(
                    i + 1,
                    "width",
                    format!("{width} columns; {WIDTH_MAX} is the rule"),
                ));
            }
        }
        for f in scan::functions(&source.code) {
            if f.length >= FUNCTION_MAX {
                let what =
                    format!("{} has {} lines; below {FUNCTION_MAX} is the rule", f.name, f.length);
                findings.push(add(f.line, "function-size", what));
            }
        }
    }
    if LIMITS.contains(&source.path.as_str()) {
        findings.extend(undocumented_limits(source));
    }
    if source.path == "ARCHITECTURE.md" && source.text.lines().count() > ARCHITECTURE_MAX {
        findings.push(add(0, "file-size", format!("more than {ARCHITECTURE_MAX} lines")));
    }
    findings
}

/// Whether a line is text that a test holds as it was captured: inside a literal from end to end.
fn captured(source: &Source, line: usize) -> bool {
    let nth = |text: &str| text.lines().nth(line).unwrap_or_default().trim().to_owned();
    let (text, code) = (nth(&source.text), nth(&source.code));
    source.is_test() && code.is_empty() && !text.starts_with("//") && !text.starts_with('"')
}

fn has_header(source: &Source) -> bool {
    // A shebang may come first.
    let first = source.text.lines().find(|l| !l.trim().is_empty() && !l.starts_with("#!/"));
    let first = first.unwrap_or_default();
    if source.is_rust() {
        return first.starts_with("//!");
    }
    ["<!--", "/**", "/*", "//"].iter().any(|open| first.starts_with(open))
}

fn undocumented_limits(source: &Source) -> Vec<Finding> {
    let lines: Vec<&str> = source.text.lines().collect();
    let bare = lines.iter().enumerate().filter(|(i, line)| {
        line.starts_with("pub const ") && !(*i > 0 && lines[i - 1].starts_with("///"))
    });
    bare.map(|(i, line)| Finding {
        path: source.path.clone(),
        line: i + 1,
        rule: "limit-reason",
        what: format!("a limit without its reason: {line}"),
    })
    .collect()
}
