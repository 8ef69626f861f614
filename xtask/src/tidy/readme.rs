//! README names the commands that are used first.

use super::{Finding, Source};

/// Commands that README shows in a code block, one a line.
const COMMANDS: [&str; 2] = ["make demo", "make test"];

/// Reports each command that README does not show.
pub fn check(source: &Source) -> Vec<Finding> {
    if source.path != "README.md" {
        return Vec::new();
    }
    let missing = COMMANDS.iter().filter(|command| !shows(&source.text, command));
    let finding = |command: &&str| Finding {
        path: source.path.clone(),
        line: 0,
        rule: "readme",
        what: format!("`{command}` is not in a code block"),
    };
    missing.map(finding).collect()
}

/// Whether a line of a code block is `command`, with or without a comment.
fn shows(text: &str, command: &str) -> bool {
    let mut code = false;
    text.lines().any(|line| {
        if line.starts_with("```") {
            code = !code;
        }
        let rest = line.strip_prefix(command);
        code && rest.is_some_and(|rest| rest.is_empty() || rest.trim_start().starts_with('#'))
    })
}
