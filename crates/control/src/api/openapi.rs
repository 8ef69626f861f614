//! The API as an OpenAPI 3.1 document, made from the table of routes.

mod examples;

use std::collections::BTreeMap;

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::identity::COOKIE_NAME;
use super::route::{Needs, Route};

/// The document.
pub fn document(routes: &[Route]) -> Value {
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for route in routes {
        let method = route.method.as_str().to_ascii_lowercase();
        paths.entry(published(route)).or_default().insert(method, operation(route));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Plimsoll",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The browser and the command line use this API for all operations. \
             docs/protocols/api.md describes the fields of each response.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/api/v1" }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "session": { "type": "apiKey", "in": "cookie", "name": COOKIE_NAME },
                "token": { "type": "http", "scheme": "bearer" },
            },
            "schemas": { "Error": error(), "Changes": changes() },
        },
    })
}

/// The path as others write it, without the star of a rest. An action is a path of its own, because
/// OpenAPI knows no rest.
fn published(route: &Route) -> String {
    match (route.path, &route.method) {
        ("/nodes/{*path}", &Method::POST) => "/nodes/{path}/actions/{action}".to_owned(),
        (path, _) => path.replace("{*", "{"),
    }
}

fn operation(route: &Route) -> Value {
    let name = |path: &str| -> Vec<String> {
        let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        parts.map(str::to_owned).collect()
    };
    let path = published(route);
    let parameter = |place: &'static str, name: &str| {
        let (required, schema, example) = examples::parameter(&path, name);
        let mut parameter =
            json!({ "name": name, "in": place, "required": required, "schema": schema });
        if let Some(example) = example {
            parameter["example"] = example;
        }
        parameter
    };
    let in_path = name(&path).into_iter().map(|name| parameter("path", &name));
    let in_query = route.query.iter().map(|name| parameter("query", name));
    let (needs, security) = match route.needs {
        Needs::Nothing => ("nothing".to_owned(), json!([])),
        Needs::SignedIn => ("a sign-in".to_owned(), both()),
        Needs::Nodes => ("the permission of each node's scope".to_owned(), both()),
        Needs::May(scope, level) => (format!("{scope}:{}", level.name()), both()),
    };
    let mut operation = json!({
        "summary": route.summary,
        "description": format!("Needs {needs}."),
        "operationId": operation_id(&route.method, &path),
        "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
        "security": security,
        "responses": {
            "2XX": done(route),
            "default": {
                "description": "Why not.",
                "content": { "application/json": { "schema": {
                    "$ref": "#/components/schemas/Error"
                } } },
            },
        },
    });
    if let Some((kind, schema, example)) = examples::body(route) {
        operation["requestBody"] = json!({
            "required": true, "content": { kind: { "schema": schema, "example": example } },
        });
    }
    operation
}

fn done(route: &Route) -> Value {
    match examples::answer(route) {
        None => json!({ "description": "Done." }),
        Some(kind) => json!({ "description": "Done.", "content": { kind: {} } }),
    }
}

fn both() -> Value {
    json!([{ "session": [] }, { "token": [] }])
}

fn operation_id(method: &Method, path: &str) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(method.as_str().to_ascii_lowercase(), |id, word| id + "_" + word)
}

fn error() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["tried", "failed", "hint"],
            "properties": {
                "tried": text, "failed": text, "hint": text, "path": text, "property": text,
            },
        } },
    })
}

fn changes() -> Value {
    let text = json!({ "type": "string" });
    let one = |required: [&str; 2], fields: Value| {
        let kind = "object";
        json!({ "type": kind, "required": required, "properties": fields })
    };
    json!({
        "type": "object",
        "required": ["changes"],
        "properties": {
            "revision": { "type": "integer" },
            "dry_run": { "type": "boolean" },
            "comment": text,
            "changes": { "type": "array", "items": { "oneOf": [
                { "type": "object", "required": ["set", "property", "value"],
                  "properties": { "set": text, "property": text, "value": {} } },
                one(["unset", "property"], json!({ "unset": text, "property": text })),
                one(["create", "name"],
                    json!({ "create": text, "name": text, "properties": { "type": "object" } })),
                { "type": "object", "required": ["destroy"],
                  "properties": { "destroy": text, "confirm": { "type": "boolean" } } },
                one(["rename", "to"], json!({ "rename": text, "to": text })),
            ] } },
        },
    })
}
