//! Every service of the registry has its node; a tree for tests.

use base::node::Context;
use base::protocol::Service;

use crate::tree::SERVICES;

/// The part of the tree that services and shares read.
pub static ROOT: Context = Context::new("", "Test", "Services and shares.", "status")
    .children(&[&CONFIGURATION, &vfs::share::node::NODE]);

static CONFIGURATION: Context =
    Context::new("configuration", "Configuration", "Services.", "configuration")
        .children(&[&SERVICES]);

#[test]
fn every_service_has_its_node() {
    for service in Service::ALL {
        let node = SERVICES.children.iter().find(|node| node.name == service.id());
        assert_eq!(node.map(|node| node.title), Some(service.title()));
    }
    assert_eq!(SERVICES.children.len(), Service::ALL.len() + 1, "and the administration");
}
