//! The shell on a terminal: prompt, completion, history.

use std::borrow::Cow;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use control::cli::shell::Answer;
use control::cli::{Shell, complete};
use reedline::{
    ColumnarMenu, Completer, CompletionResult, Emacs, KeyCode, KeyModifiers, MenuBuilder, Prompt,
    PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, Span,
    Suggestion, default_emacs_keybindings,
};
use service::reach::machine_name;

use super::history::{self, FilteredHistory};
use crate::out::{self, Failure, OrFailure};

/// Name of the menu that Tab opens.
const MENU: &str = "completion";

/// One shell for the line that is typed, its completion, and the rule for its history.
type Shared = Arc<Mutex<Shell>>;

fn locked(shell: &Shared) -> std::sync::MutexGuard<'_, Shell> {
    shell.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads and does lines until the user leaves.
///
/// # Errors
/// The terminal cannot be used.
pub fn run(shell: Shell, at: &str) -> Result<ExitCode, Failure> {
    let shell: Shared = Arc::new(Mutex::new(shell));
    let mut editor = editor(&shell);
    let host = host(at);
    loop {
        let prompt = {
            let shell = locked(&shell);
            let mark = if shell.waiting() > 0 { "*" } else { "" };
            Line(format!("{host}:{}{mark}", shell.here()))
        };
        let signal = editor.read_line(&prompt);
        let line = match signal.or_failure("read from the terminal")? {
            Signal::Success(line) => line,
            Signal::CtrlD => "exit".to_owned(),
            _ => continue,
        };
        let answer = locked(&shell).run(&line);
        match answer {
            Ok(Answer::Text(text)) => out::print(&text)?,
            Ok(Answer::Leave) => return Ok(ExitCode::SUCCESS),
            Err(error) => {
                let hint = match error.hint() {
                    "" => String::new(),
                    hint => format!("  {hint}\n"),
                };
                out::print(&format!("error: {error}\n{hint}"))?;
            }
        }
    }
}

fn editor(shell: &Shared) -> Reedline {
    let mut keys = default_emacs_keybindings();
    let tab = vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext];
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(tab));
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    let menu = Box::new(ColumnarMenu::default().with_name(MENU));
    let judge = shell.clone();
    let secret = Box::new(move |line: &str| locked(&judge).has_secret(line));
    Reedline::create()
        .with_history(Box::new(FilteredHistory::open(history::file(), secret)))
        .with_completer(Box::new(Ideas(shell.clone())))
        .with_menu(ReedlineMenu::EngineCompleter(menu))
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_ansi_colors(std::env::var_os("NO_COLOR").is_none())
}

/// The server's name: a remote one's as it was given, this machine's otherwise.
fn host(at: &str) -> String {
    match at.rsplit_once(':') {
        Some((host, _)) if !at.starts_with('/') => host.to_owned(),
        _ => {
            let name = machine_name();
            name.split('.').next().unwrap_or_default().to_owned()
        }
    }
}

struct Ideas(Shared);

impl Completer for Ideas {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let candidates = complete::complete(&locked(&self.0), line.get(..pos).unwrap_or(line));
        let suggestion = |candidate: complete::Candidate| Suggestion {
            value: candidate.text,
            description: Some(candidate.help).filter(|help| !help.is_empty()),
            span: Span::new(candidate.start.min(pos), pos),
            append_whitespace: candidate.whole,
            ..Suggestion::default()
        };
        CompletionResult::fresh(candidates.into_iter().map(suggestion).collect::<Vec<_>>())
    }
}

struct Line(String);

impl Prompt for Line {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed(": ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(search: {}) ", search.term))
    }
}
