//! The commands that the shell itself knows.

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described by its line of VERBS")]
pub enum Verb {
    Help,
    Show,
    Get,
    Set,
    Unset,
    Commit,
    Abort,
    Pending,
    List,
    Select,
    Create,
    Destroy,
    Rename,
    Cd,
    Up,
    Top,
    Done,
    Exit,
    Json,
    History,
    Compare,
    Restore,
    Export,
    Import,
    Audit,
}

/// The syntax of a command.
#[derive(Debug)]
pub struct Line {
    /// Which.
    pub verb: Verb,
    /// Its name.
    pub name: &'static str,
    /// Its aliases.
    pub also: &'static [&'static str],
    /// Its arguments.
    pub arguments: &'static str,
    /// Fewest and most of them.
    pub count: (usize, usize),
    /// What it does.
    pub help: &'static str,
}

/// No limit to the number of arguments but the length of a line.
const MANY: usize = usize::MAX;

const fn line(
    verb: Verb,
    name: &'static str,
    arguments: &'static str,
    count: (usize, usize),
    help: &'static str,
) -> Line {
    Line { verb, name, also: &[], arguments, count, help }
}

const fn also(line: Line, also: &'static [&'static str]) -> Line {
    Line { also, ..line }
}

/// All commands, in the order of `help`.
pub const VERBS: [Line; 25] = [
    line(Verb::Help, "help", "[WORD]", (0, 1), "list commands, or describe WORD"),
    line(Verb::Show, "show", "[PATH]", (0, 1), "show this context, or PATH, and its contents"),
    line(Verb::Get, "get", "[PROPERTY]…", (0, MANY), "show values of properties"),
    line(
        Verb::Set,
        "set",
        "PROPERTY=VALUE…",
        (1, MANY),
        "change properties; += and -= add to and remove from a list, =@FILE reads a file",
    ),
    line(Verb::Unset, "unset", "PROPERTY…", (1, MANY), "reset to the default or inherited value"),
    line(
        Verb::Commit,
        "commit",
        "[--force] [COMMENT]",
        (0, MANY),
        "apply all pending changes, or none",
    ),
    line(Verb::Abort, "abort", "", (0, 0), "discard pending changes"),
    line(Verb::Pending, "pending", "", (0, 0), "show pending changes"),
    also(
        line(Verb::List, "list", "[PATH]", (0, 1), "list contexts and items below, or below PATH"),
        &["ls"],
    ),
    line(Verb::Select, "select", "NAME", (1, 1), "go to an item"),
    line(
        Verb::Create,
        "create",
        "NAME [PROPERTY=VALUE]…",
        (1, MANY),
        "create an item and go to it",
    ),
    line(Verb::Destroy, "destroy", "[NAME] [--yes]", (0, 2), "destroy an item, or the current one"),
    line(Verb::Rename, "rename", "[NAME] NEW", (1, 2), "rename an item, or the current one"),
    line(Verb::Cd, "cd", "PATH", (0, 1), "go to a context; / is the top"),
    also(line(Verb::Up, "up", "", (0, 0), "go one up"), &[".."]),
    line(Verb::Top, "top", "", (0, 0), "go to the top"),
    line(Verb::Done, "done", "", (0, 0), "go one up"),
    also(line(Verb::Exit, "exit", "", (0, 0), "leave"), &["quit"]),
    line(Verb::Json, "json", "[on|off]", (0, 1), "print JSON, one value per line"),
    line(Verb::History, "history", "[REVISION]", (0, 1), "list revisions, or show one"),
    line(Verb::Compare, "compare", "A [B]", (1, 2), "show changes from revision A to B, or to now"),
    line(Verb::Restore, "restore", "REVISION", (1, 1), "restore an earlier configuration"),
    line(Verb::Export, "export", "[FILE]", (0, 1), "write the configuration to a file"),
    line(Verb::Import, "import", "FILE [--dry-run]", (1, 2), "read a configuration from a file"),
    line(Verb::Audit, "audit", "[PATH]", (0, 1), "show the audit log"),
];

impl Verb {
    /// The command called `name`.
    pub fn of(name: &str) -> Option<Self> {
        let called = |line: &&Line| line.name == name || line.also.contains(&name);
        VERBS.iter().find(called).map(|line| line.verb)
    }

    /// Whether it means the same everywhere. The others give way to actions of their name.
    pub fn is_core(self) -> bool {
        !matches!(
            self,
            Self::Json
                | Self::History
                | Self::Compare
                | Self::Restore
                | Self::Export
                | Self::Import
                | Self::Audit
                | Self::Pending
                | Self::Top
        )
    }

    fn line(self) -> Option<&'static Line> {
        VERBS.iter().find(|line| line.verb == self)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.line().map_or("", |line| line.name)
    }

    /// Fewest and most arguments.
    pub fn arguments(self) -> (usize, usize) {
        self.line().map_or((0, MANY), |line| line.count)
    }

    /// Its syntax.
    pub fn usage(self) -> String {
        self.line().map_or_else(String::new, Line::usage)
    }
}

impl Line {
    /// Its syntax.
    pub fn usage(&self) -> String {
        format!("{} {}", self.name, self.arguments).trim_end().to_owned()
    }
}
