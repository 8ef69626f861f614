//! iSCSI in the one tree: settings and state of the service. The crate `service` applies changes.

mod san;

use ::base::limits::{ISCSI_NAME_MAX, ISCSI_SESSIONS_MAX};
use ::base::node::{Context, Default, Kind, Property, Shape, service};

pub use san::SAN;

static LINE: Kind = Kind::Text { max: 2 * ISCSI_NAME_MAX, shape: Shape::Line };
/// An address of version 6 in brackets, and a port.
static PORTAL: Kind = Kind::Text { max: 64, shape: Shape::Line };

/// `/configuration/services/iscsi`.
pub static NODE: Context =
    Context::new("iscsi", "iSCSI", "Serves logical units to iSCSI initiators.", "services")
        .statistics(&["iscsi.ops[op]", "iscsi.bytes[client]"])
        .actions(&[service::RESTART])
        .properties(::base::service_properties![
            Property::setting(
                "portals",
                "Portals",
                Kind::List { of: &PORTAL, max: 16 },
                Default::List(&[]),
                "Addresses, with :PORT if it differs from that of the service, that discovery \
                 returns to initiators: for servers behind NAT, or with several networks. Not \
                 set: the address that the initiator is connected to.",
            )
            .example("192.0.2.7:3260"),
            Property::state(
                "target",
                "Target",
                Kind::Text { max: ISCSI_NAME_MAX, shape: Shape::Line },
                "Name of the target, an iSCSI qualified name (IQN).",
            ),
            Property::state(
                "luns",
                "Logical units",
                Kind::List { of: &LINE, max: ::base::limits::LUNS_MAX },
                "Logical units: LUN, name, size, and failed flushes.",
            ),
            Property::state(
                "sessions",
                "Sessions",
                Kind::List { of: &LINE, max: ISCSI_SESSIONS_MAX },
                "Logged-in initiators with their addresses.",
            ),
        ]);
