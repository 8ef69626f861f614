//! How a service is: it serves, or why it does not.

use std::sync::Arc;

use base::limits::DRAIN_TIME_MAX;

/// How a service is; `Up` is what is there while it is online.
pub enum Condition<Up> {
    /// It serves.
    Online(Arc<Up>),
    /// Somebody wants it so: who, and when.
    Disabled(String),
    /// It is on its way up or down.
    Offline,
    /// It should serve and cannot: why.
    Maintenance(String),
}

impl<Up> Clone for Condition<Up> {
    fn clone(&self) -> Self {
        match self {
            Self::Online(up) => Self::Online(up.clone()),
            Self::Disabled(why) => Self::Disabled(why.clone()),
            Self::Offline => Self::Offline,
            Self::Maintenance(why) => Self::Maintenance(why.clone()),
        }
    }
}

impl<Up> Condition<Up> {
    /// The name of its state.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Online(_) => "online",
            Self::Disabled(_) => "disabled",
            Self::Offline => "offline",
            Self::Maintenance(_) => "maintenance",
        }
    }

    /// Why it is not online, one sentence.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Online(_) => None,
            Self::Offline => Some("it is on its way up or down"),
            Self::Disabled(why) | Self::Maintenance(why) => Some(why),
        }
    }
}

/// What is said when a service ends before everything was answered.
pub fn cut_off() -> String {
    let seconds = DRAIN_TIME_MAX.as_secs();
    format!("requests were not answered within {seconds} s; their connections were cut off")
}
