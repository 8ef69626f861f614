//! Settings of a service's node, as values of the program.

use std::ops::RangeInclusive;
use std::time::Duration;

use base::node::{Path, Value};
use base::protocol::Service;
use base::text::decimal;
use base::units::octal;
use control::tree::{Document, Override, Problem};
use serve::files::settings::{LoginRoot, Uploads};

/// Where a service is in the tree.
pub fn path(service: Service) -> Path {
    Path::of(&["configuration", "services", service.id()])
}

/// A node of a configuration, which was checked against its declaration.
pub struct Values<'a> {
    document: &'a Document,
    at: Path,
    given: &'a [Override],
}

impl<'a> Values<'a> {
    /// Those of a service.
    pub fn of(document: &'a Document, service: Service) -> Self {
        Self { document, at: path(service), given: &[] }
    }

    /// The same where the command line decides some of them.
    pub fn given(self, given: &'a [Override]) -> Self {
        Self { given, ..self }
    }

    fn value(&self, property: &str) -> Option<Value> {
        let given = self.given.iter().find(|one| one.property == property);
        given.map(|one| one.value.clone()).or_else(|| self.document.value(&self.at, property))
    }

    /// Whether a switch is on.
    pub fn is_on(&self, property: &str) -> bool {
        self.value(property).and_then(|value| value.as_bool()).unwrap_or(false)
    }

    /// A text, if there is one.
    pub fn text(&self, property: &str) -> Option<String> {
        let value = self.value(property)?;
        value.as_text().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// The texts of a list.
    pub fn texts(&self, property: &str) -> Vec<String> {
        self.document.texts(&self.at, property)
    }

    /// Whether a choice is this one.
    pub fn is(&self, property: &str, choice: &str) -> bool {
        self.text(property).as_deref() == Some(choice)
    }

    /// A number. One that is not there, or does not fit, is 0: declarations give the bounds.
    pub fn number<T: TryFrom<i64> + Default>(&self, property: &str) -> T {
        let number = self.value(property).and_then(|value| value.as_integer());
        number.and_then(|n| T::try_from(n).ok()).unwrap_or_default()
    }

    /// A time.
    pub fn time(&self, property: &str) -> Duration {
        Duration::from_secs(self.number(property))
    }

    /// Ports from 1024 on, as FIRST-LAST.
    pub fn ports(&self, property: &str) -> Option<RangeInclusive<u16>> {
        ports(&self.text(property)?)
    }

    /// What is wrong with such a property.
    pub fn check_ports(&self, property: &str) -> Option<Problem> {
        let is_right = |text: &str| ports(text).is_some();
        let hint = "write FIRST-LAST, as 30000-30999";
        self.check(property, is_right, "a port range within 1024 to 65535", hint)
    }

    /// Permission bits in octal.
    pub fn umask(&self) -> Option<u32> {
        octal(&self.text("umask")?, 0o777)
    }

    /// What others see of uploads.
    pub fn uploads(&self) -> Uploads {
        if self.is("uploads", "in-place") { Uploads::InPlace } else { Uploads::Atomic }
    }

    /// What users see as `/`.
    pub fn login_root(&self) -> LoginRoot {
        if self.is("login_root", "home") { LoginRoot::Home } else { LoginRoot::Shares }
    }

    /// That the mask of new files is one.
    pub fn check_umask(&self) -> Option<Problem> {
        let is_right = |text: &str| octal(text, 0o777).is_some();
        let hint = "use 022, or 077 for access by owners only";
        self.check("umask", is_right, "an octal umask, 0 to 777", hint)
    }

    /// What is wrong with a text, unless there is none.
    pub fn check(
        &self,
        property: &str,
        is_right: fn(&str) -> bool,
        what: &str,
        hint: &str,
    ) -> Option<Problem> {
        let text = self.text(property).filter(|text| !is_right(text))?;
        let sentence = format!("{text:?} is not {what}");
        Some(Problem::new(&self.at, &sentence, hint).property(property))
    }
}

/// `FIRST-LAST`.
pub fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    const FREE: u16 = 1024;
    let (first, last) = text.split_once('-')?;
    let (first, last): (u16, u16) = (decimal(first.trim())?, decimal(last.trim())?);
    (FREE <= first && first <= last).then_some(first..=last)
}
