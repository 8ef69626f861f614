//! Short ways to write declarations down: each starts with what everything has and adds the rest.
//!
//! ```
//! use base::node::{Context, Default, Kind, Property};
//! static NODE: Context = Context::new("nfs", "NFS", "Serves shares over NFS.", "services")
//!     .properties(&[Property::setting(
//!         "lease",
//!         "Lease",
//!         Kind::Seconds { min: 1, max: 3600 },
//!         Default::Integer(90),
//!         "How long a client may be silent.",
//!     )
//!     .unit("s")
//!     .example("60")]);
//! assert!(NODE.property("lease").is_some());
//! ```

use super::{Action, Condition, Context, Default, Effect, Items, Kind, Origin, Property, Role};

impl Context {
    /// A node without anything in it.
    pub const fn new(
        name: &'static str,
        title: &'static str,
        help: &'static str,
        scope: &'static str,
    ) -> Self {
        Self {
            name,
            title,
            help,
            scope,
            properties: &[],
            actions: &[],
            children: &[],
            items: None,
            statistics: &[],
        }
    }

    /// With properties.
    pub const fn properties(mut self, properties: &'static [Property]) -> Self {
        self.properties = properties;
        self
    }

    /// With actions.
    pub const fn actions(mut self, actions: &'static [Action]) -> Self {
        self.actions = actions;
        self
    }

    /// With contexts below it.
    pub const fn children(mut self, children: &'static [&'static Context]) -> Self {
        self.children = children;
        self
    }

    /// With items.
    pub const fn items(mut self, items: &'static Items) -> Self {
        self.items = Some(items);
        self
    }

    /// With the statistics about it.
    pub const fn statistics(mut self, statistics: &'static [&'static str]) -> Self {
        self.statistics = statistics;
        self
    }
}

impl Items {
    /// Items that users make.
    pub const fn configured(
        noun: &'static str,
        plural: &'static str,
        key: &'static Kind,
        max: usize,
        context: &'static Context,
    ) -> Self {
        Self { noun, plural, key, max, context, origin: Origin::Configured, fixed: &[] }
    }

    /// Items that the running server makes.
    pub const fn live(
        noun: &'static str,
        plural: &'static str,
        key: &'static Kind,
        max: usize,
        context: &'static Context,
    ) -> Self {
        Self { noun, plural, key, max, context, origin: Origin::Running, fixed: &[] }
    }

    /// Some of them are always there.
    pub const fn fixed(mut self, fixed: &'static [&'static str]) -> Self {
        self.fixed = fixed;
        self
    }
}

impl Property {
    /// What can be set and unset.
    pub const fn setting(
        name: &'static str,
        title: &'static str,
        kind: Kind,
        default: Default,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            title,
            kind,
            default,
            help,
            unit: "",
            role: Role::Setting,
            example: "",
            required: false,
            effect: Effect::Now,
            guarded: false,
            items_of: "",
            only_if: None,
            absent: "",
        }
    }

    /// A value that the running server reports.
    pub const fn state(
        name: &'static str,
        title: &'static str,
        kind: Kind,
        help: &'static str,
    ) -> Self {
        Self::setting(name, title, kind, Default::None, help).with_role(Role::State)
    }

    /// What can be set and never seen.
    pub const fn secret(
        name: &'static str,
        title: &'static str,
        kind: Kind,
        help: &'static str,
    ) -> Self {
        Self::setting(name, title, kind, Default::None, help).with_role(Role::Secret)
    }

    /// What is set when its item is made, and stays.
    pub const fn at_create(self) -> Self {
        self.with_role(Role::AtCreate)
    }

    const fn with_role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Without it an item cannot be made.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Only users with the permission `*` may set it: it lets its owner act as other users.
    pub const fn guarded(mut self) -> Self {
        self.guarded = true;
        self
    }

    /// Of use only if another property of the node has one of these values.
    pub const fn only_if(
        mut self,
        property: &'static str,
        values: &'static [&'static str],
    ) -> Self {
        self.only_if = Some(Condition { property, values });
        self
    }

    /// With what people read where a time is 0: `never`.
    pub const fn absent(mut self, words: &'static str) -> Self {
        self.absent = words;
        self
    }

    /// With a unit.
    pub const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// With a good value.
    pub const fn example(mut self, example: &'static str) -> Self {
        self.example = example;
        self
    }

    /// Its values are names of the items of a node, which are offered as choices.
    pub const fn items_of(mut self, path: &'static str) -> Self {
        self.items_of = path;
        self
    }

    /// A change takes effect when the service restarts.
    pub const fn at_service_restart(mut self) -> Self {
        self.effect = Effect::Service;
        self
    }

    /// A change takes effect when the server starts again.
    pub const fn at_restart(mut self) -> Self {
        self.effect = Effect::Restart;
        self
    }
}

impl Action {
    /// What does no harm.
    pub const fn new(
        name: &'static str,
        title: &'static str,
        help: &'static str,
        result: &'static str,
    ) -> Self {
        Self { name, title, help, parameters: &[], destructive: false, reads: false, result }
    }

    /// With parameters.
    pub const fn parameters(mut self, parameters: &'static [Property]) -> Self {
        self.parameters = parameters;
        self
    }

    /// It only shows something.
    pub const fn reading(mut self) -> Self {
        self.reads = true;
        self
    }

    /// People are asked before.
    pub const fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }
}
