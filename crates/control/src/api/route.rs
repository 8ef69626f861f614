//! One method of one path of the API, and the required permission.

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};

use super::Control;
use crate::access::Level;

/// The permission that a path requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// None, not even a sign-in: for signing in and out only.
    Nothing,
    /// A sign-in.
    SignedIn,
    /// This permission.
    May(&'static str, Level),
    /// A sign-in; the tree checks the permission for each node.
    Nodes,
}

/// One method of one path.
pub struct Route {
    /// `GET`, …
    pub method: Method,
    /// Below `/api/v1`; `{name}` stands for a part of the caller's.
    pub path: &'static str,
    /// The required permission.
    pub needs: Needs,
    /// What it does, a sentence without its full stop.
    pub summary: &'static str,
    /// Names of its parameters after the question mark.
    pub query: &'static [&'static str],
    pub(super) handler: MethodRouter<Arc<Control>>,
}

impl Route {
    /// A route; there is none without its needs.
    pub fn new<H, T>(
        method: Method,
        path: &'static str,
        needs: Needs,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, Arc<Control>>,
        T: 'static,
    {
        // Only methods that a filter knows are in the table; a test makes the whole table.
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::TRACE);
        Self { method, path, needs, summary, query: &[], handler: on(filter, handler) }
    }

    /// With parameters after the question mark.
    pub(super) fn query(mut self, names: &'static [&'static str]) -> Self {
        self.query = names;
        self
    }

    /// With another limit of the request's body than other routes have.
    pub(super) fn body_max(mut self, bytes: usize) -> Self {
        self.handler = self.handler.layer(DefaultBodyLimit::max(bytes));
        self
    }
}
