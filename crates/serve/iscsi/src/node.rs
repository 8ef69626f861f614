//! iSCSI in the one tree: settings and state of the service. The crate `service` applies changes.

mod san;

use ::base::limits::{ISCSI_NAME_MAX, ISCSI_SESSIONS_MAX};
use ::base::node::{Context, Kind, Property, Shape, service};

pub use san::SAN;

static LINE: Kind = Kind::Text { max: 2 * ISCSI_NAME_MAX, shape: Shape::Line };

/// `/configuration/services/iscsi`.
pub static NODE: Context =
    Context::new("iscsi", "iSCSI", "Serves logical units to iSCSI initiators.", "services")
        .statistics(&["iscsi.ops[op]", "iscsi.bytes[client]"])
        .actions(&[service::RESTART])
        .properties(::base::service_properties![
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
