//! Every route of the table with every role: without a sign-in the response is 401, without the
//! permission it is 403, otherwise the handler runs.

use std::collections::BTreeSet;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, SET_COOKIE};
use axum::http::{Method, Request, StatusCode};

use base::node::{Context, Path};
use serde_json::json;

use super::{Server, TOKEN, cookie, refusal, users};
use crate::access::{BUILT_IN, Level, Permission, SCOPES, built_in};
use crate::accounts::{Token, token_secret};
use crate::api::route::{Needs, Route};
use crate::api::routes::table;
use crate::state::files::digest_hex;
use crate::tree::audit::AuditFilter;

/// A path of the route that reaches its handler.
fn path(route: &Route) -> String {
    let parts = route.path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
    format!("/api/v1{}", parts.collect::<Vec<_>>().join("/"))
}

/// Every built-in role, and one for every single permission.
fn roles() -> Vec<(String, Vec<Permission>)> {
    let built_in =
        BUILT_IN.iter().map(|(name, _, _)| ((*name).to_owned(), built_in(name).unwrap()));
    let single = SCOPES.iter().flat_map(|(scope, _)| {
        [Level::Read, Level::Change].map(|level| {
            let name = format!("only-{}-{}", scope.replace('*', "all"), level.name());
            (name, vec![Permission { scope, level }])
        })
    });
    built_in.chain(single).collect()
}

/// The expected result, derived from permissions and not from the code under test.
fn reaches(permissions: &[Permission], needs: Needs) -> bool {
    let Needs::May(scope, level) = needs else { return true };
    may(permissions, scope, level)
}

fn may(permissions: &[Permission], scope: &str, level: Level) -> bool {
    permissions.iter().any(|have| {
        (have.scope == scope || have.scope == "*")
            && (have.level == Level::Change || level == Level::Read)
    })
}

async fn ask(server: &Server, route: &Route, token: Option<&str>) -> StatusCode {
    let mut request = Request::builder().method(route.method.clone()).uri(path(route));
    request = request.header(CONTENT_TYPE, "application/json");
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let response = server.send(request, "{}").await;
    let status = response.status();
    if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
        refusal(response).await;
    }
    status
}

/// A token for each role: its name, what it may, its secret.
fn holders(server: &Server) -> Vec<(String, Vec<Permission>, String)> {
    let mut configured = users();
    let mut holders = Vec::new();
    for (name, permissions) in roles() {
        let secret = token_secret();
        let digest = Some(digest_hex(&secret));
        let token = Token { role: name.clone(), ends: None, digest };
        configured.tokens.insert(name.clone(), token);
        configured.roles.insert(name.clone(), permissions.clone());
        holders.push((name, permissions, secret));
    }
    server.accounts.replace(configured);
    holders
}

/// Every context of a declaration with its path; items by a name that fits.
fn contexts(at: Path, context: &'static Context, found: &mut Vec<(Path, &'static Context)>) {
    found.push((at.clone(), context));
    for child in context.children {
        contexts(at.join(child.name), child, found);
    }
    if let Some(items) = context.items {
        let name = items.fixed.first().copied().unwrap_or("x");
        contexts(at.join(name), items.context, found);
    }
}

#[tokio::test]
async fn every_node_keeps_to_its_scope_for_every_role() {
    let server = Server::new();
    let holders = holders(&server);
    let mut nodes = Vec::new();
    contexts(Path::root(), server.tree.root(), &mut nodes);
    assert!(nodes.len() > 8);
    for (role, permissions, secret) in &holders {
        let send = async |method: Method, path: String, body: String| {
            let request = Request::builder().method(method).uri(path);
            let request = request
                .header(CONTENT_TYPE, "application/json")
                .header(AUTHORIZATION, format!("Bearer {secret}"));
            server.send(request, body).await.status()
        };
        for (path, context) in &nodes {
            let what = format!("{path} as {role}");
            let node = match path.is_root() {
                true => "/api/v1/nodes".to_owned(),
                false => format!("/api/v1/nodes{path}"),
            };
            let look = send(Method::GET, node, String::new()).await;
            let may_look = may(permissions, context.scope, Level::Read);
            assert_eq!(look == StatusCode::FORBIDDEN, !may_look, "{what}: {look}");
            let may_change = may(permissions, context.scope, Level::Change);
            for action in context.actions {
                let at = format!("/api/v1/nodes{path}/actions/{}", action.name);
                let done = send(Method::POST, at, "{}".to_owned()).await;
                assert_eq!(done == StatusCode::FORBIDDEN, !may_change, "{what}: {done}");
            }
            let set = json!({ "set": path.to_string(), "property": "nothing", "value": 1 });
            let changes = json!({ "dry_run": true, "changes": [set] }).to_string();
            let set = send(Method::POST, "/api/v1/changes".to_owned(), changes).await;
            assert_eq!(set == StatusCode::FORBIDDEN, !may_change, "set {what}: {set}");
        }
    }
}

#[tokio::test]
async fn every_route_keeps_to_its_declared_permission_for_every_role() {
    let server = Server::new();
    let holders = holders(&server);
    for route in table() {
        let what = format!("{} {}", route.method, route.path);
        let unknown = ask(&server, &route, None).await;
        assert_eq!(unknown == StatusCode::UNAUTHORIZED, route.needs != Needs::Nothing, "{what}");
        for (role, permissions, secret) in &holders {
            if route.needs == Needs::Nodes {
                continue;
            }
            let status = ask(&server, &route, Some(secret)).await;
            let may = reaches(permissions, route.needs);
            if route.needs != Needs::Nodes {
                assert_eq!(status == StatusCode::FORBIDDEN, !may, "{what} as {role}: {status}");
            }
            assert_ne!(status, StatusCode::UNAUTHORIZED, "{what} as {role}");
            assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{what}: not in the router");
        }
    }
}

/// Whether what a route declares to need is enough for what it does.
fn is_guarded(route: &Route) -> bool {
    // A result that is shown does not fit into an address.
    let changes = route.method != Method::GET && route.path != "/lab/figures";
    match route.needs {
        // The way in and out is the only open one.
        Needs::Nothing => route.path == "/session" && changes,
        Needs::SignedIn => !changes,
        // `every_node_keeps_to_its_scope_for_every_role` has these.
        Needs::Nodes => route.path.starts_with("/nodes") || route.path == "/changes",
        Needs::May(scope, level) => {
            SCOPES.iter().any(|(name, _)| *name == scope) && (level == Level::Change) == changes
        }
    }
}

#[tokio::test]
async fn what_changes_something_needs_a_permission_to_change() {
    for route in table() {
        assert!(is_guarded(&route), "{} {}: {:?}", route.method, route.path, route.needs);
        assert!(!route.summary.is_empty() && !route.summary.ends_with('.'), "{}", route.path);
    }
    // Routes that could be added by mistake: each is detected.
    let planted = [
        (Method::GET, Needs::Nothing),
        (Method::POST, Needs::Nothing),
        (Method::DELETE, Needs::SignedIn),
        (Method::PUT, Needs::Nodes),
        (Method::POST, Needs::May("analytics", Level::Read)),
        (Method::GET, Needs::May("analytics", Level::Change)),
        (Method::GET, Needs::May("planted", Level::Read)),
    ];
    for (method, needs) in planted {
        let route = Route::new(method, "/planted", needs, "Planted", async || "");
        assert!(!is_guarded(&route), "{} {needs:?}", route.method);
    }
}

#[tokio::test]
async fn no_route_takes_a_change_from_another_sites_page() {
    let server = Server::new();
    let mut session = cookie(&server.sign_in("right").await);
    for route in table().iter().filter(|route| route.method != Method::GET) {
        let what = format!("{} {}", route.method, route.path);
        let ask = async |site: &str, session: &str| {
            let request = Request::builder().method(route.method.clone()).uri(path(route));
            let request = request
                .header(CONTENT_TYPE, "application/json")
                .header(COOKIE, session)
                .header("sec-fetch-site", site);
            server.send(request, "{}").await
        };
        for site in ["cross-site", "same-site"] {
            let (status, failed) = refusal(ask(site, &session).await).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{what} from {site}");
            assert!(failed.contains("another site's page"), "{what}: {failed}");
        }
        let own = ask("same-origin", &session).await.status();
        assert_ne!(own, StatusCode::FORBIDDEN, "{what}: our own pages may");
        // Some of them end it.
        session = cookie(&server.sign_in("right").await);
    }
}

#[tokio::test]
async fn every_cookie_has_its_flags() {
    let server = Server::new();
    let signed_in = server.sign_in("right").await;
    let once = server.send(Request::get(server.control.login_once("admin")), "").await;
    let out = Request::delete("/api/v1/session").header(COOKIE, cookie(&signed_in));
    for response in [signed_in, once, server.send(out, "").await] {
        let set: Vec<_> = response.headers().get_all(SET_COOKIE).iter().collect();
        assert_eq!(set.len(), 1, "{set:?}");
        let set = set[0].to_str().unwrap();
        for flag in ["HttpOnly", "Secure", "SameSite=Strict", "Path=/"] {
            assert!(set.split("; ").any(|part| part == flag), "{flag} in {set}");
        }
        assert!(!set.contains("Domain="), "{set}");
    }
}

#[test]
fn no_route_is_there_twice() {
    let names: Vec<String> =
        table().iter().map(|route| format!("{} {}", route.method, route.path)).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
}

#[tokio::test]
async fn nothing_that_can_be_asked_for_changes_the_audit_log_but_at_its_end() {
    let server = Server::new();
    server.sign_in("wrong").await;
    let wanted = AuditFilter { limit: usize::MAX, ..AuditFilter::default() };
    let before = server.tree.audit().read(&wanted).unwrap();
    assert!(!before.is_empty());
    // Whatever an administrator can send: each route, and each method on the log's own.
    let mut asked: Vec<(Method, String)> =
        table().iter().map(|route| (route.method.clone(), path(route))).collect();
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        asked.push((method, "/api/v1/audit".to_owned()));
    }
    for (method, path) in asked {
        let what = format!("{method} {path}");
        let is_log = path == "/api/v1/audit" && method != Method::GET;
        let request = Request::builder().method(method).uri(path);
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, format!("Bearer {TOKEN}"));
        let status = server.send(request, "{}").await.status();
        assert_eq!(is_log, status == StatusCode::METHOD_NOT_ALLOWED, "{what}: {status}");
        let after = server.tree.audit().read(&wanted).unwrap();
        assert!(after.ends_with(&before), "{what}: what was written down is another");
    }
}
