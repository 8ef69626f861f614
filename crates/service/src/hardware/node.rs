//! The hardware as nodes of the tree. Everything is state: nothing can be set.

use base::limits::NODE_NAME_MAX;
use base::node::{Context, Items, Kind, Property, Shape};

const SCOPE: &str = "maintenance";
/// Most items of a list.
const ITEMS_MAX: usize = 4_096;

static NAME: Kind = Kind::Text { max: NODE_NAME_MAX, shape: Shape::Line };
static LINE: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const TEXT: Kind = Kind::Text { max: 4_096, shape: Shape::Line };
const LINES: Kind = Kind::List { of: &LINE, max: ITEMS_MAX };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const DEGREES: Kind = Kind::Integer { min: -273, max: 10_000 };
const SIZE: Kind = Kind::Bytes { min: 0, max: i64::MAX as u64 };

/// `/maintenance/hardware`.
pub static HARDWARE: Context = Context::new(
    "hardware",
    "Hardware",
    "Chassis, CPUs, memory, slots, disks and sensors of this machine.",
    SCOPE,
)
.properties(&[
    Property::state("manufacturer", "Manufacturer", TEXT, "Manufacturer of the machine."),
    Property::state("product", "Product", TEXT, "Product name."),
    Property::state("serial", "Serial number", TEXT, "Serial number of the machine."),
    Property::state(
        "absent",
        "Not shown",
        LINES,
        "Parts that are not shown, each with its reason.",
    ),
])
.children(&[&CHASSIS, &CPUS, &MEMORY, &SLOTS, &DISKS, &SENSORS]);

static CHASSIS: Context = Context::new("chassis", "Chassis", "System, board and chassis.", SCOPE)
    .properties(&[
        Property::state("manufacturer", "Manufacturer", TEXT, "Manufacturer of the system."),
        Property::state("product", "Product", TEXT, "Product name of the system."),
        Property::state("version", "Version", TEXT, "Version of the system."),
        Property::state("serial", "Serial number", TEXT, "Serial number of the system."),
        Property::state("uuid", "UUID", TEXT, "UUID of the system."),
        Property::state("sku", "SKU", TEXT, "SKU number of the system."),
        Property::state("family", "Family", TEXT, "Product family."),
        Property::state("firmware", "Firmware", TEXT, "Version of the firmware."),
        Property::state(
            "board_manufacturer",
            "Board manufacturer",
            TEXT,
            "Manufacturer of the board.",
        ),
        Property::state("board_product", "Board", TEXT, "Product name of the board."),
        Property::state("board_version", "Board version", TEXT, "Version of the board."),
        Property::state("board_serial", "Board serial number", TEXT, "Serial number of the board."),
        Property::state(
            "chassis_manufacturer",
            "Chassis manufacturer",
            TEXT,
            "Manufacturer of the chassis.",
        ),
        Property::state("chassis_type", "Chassis type", TEXT, "Type of the chassis."),
        Property::state(
            "chassis_serial",
            "Chassis serial number",
            TEXT,
            "Serial number of the chassis.",
        ),
        Property::state("chassis_height", "Height", COUNT, "Height of the chassis.").unit("U"),
        Property::state("asset_tag", "Asset tag", TEXT, "Asset tag of the chassis."),
    ]);

static CPUS: Context = Context::new("cpus", "CPUs", "Processor sockets.", SCOPE)
    .items(&Items::live("CPU", "CPUs", &NAME, ITEMS_MAX, &CPU));

static CPU: Context = Context::new("cpu", "CPU", "A processor socket.", SCOPE).properties(&[
    Property::state(
        "state",
        "State",
        Kind::Choice(&[
            ("enabled", "it is in use"),
            ("disabled", "it is disabled"),
            ("empty", "the socket is empty"),
        ]),
        "State of the processor.",
    ),
    Property::state("model", "Model", TEXT, "Model."),
    Property::state("manufacturer", "Manufacturer", TEXT, "Manufacturer."),
    Property::state("cores", "Cores", COUNT, "Number of cores."),
    Property::state("cores_enabled", "Enabled cores", COUNT, "Number of enabled cores."),
    Property::state("threads", "Threads", COUNT, "Number of threads."),
    Property::state("speed", "Speed", COUNT, "Clock rate at startup.").unit("MHz"),
    Property::state("speed_max", "Maximum speed", COUNT, "Highest clock rate of the socket.")
        .unit("MHz"),
    Property::state("serial", "Serial number", TEXT, "Serial number."),
    Property::state("part", "Part number", TEXT, "Part number."),
]);

static MEMORY: Context = Context::new("memory", "Memory", "Memory modules by locator.", SCOPE)
    .items(&Items::live("module", "modules", &NAME, ITEMS_MAX, &MODULE));

static MODULE: Context =
    Context::new("module", "Module", "A memory module, or an empty socket.", SCOPE).properties(&[
        Property::state(
            "state",
            "State",
            Kind::Choice(&[("present", "a module is present"), ("empty", "the socket is empty")]),
            "State of the socket.",
        ),
        Property::state("size", "Size", SIZE, "Size."),
        Property::state("type", "Type", TEXT, "Type of memory."),
        Property::state("form", "Form", TEXT, "Form factor."),
        Property::state("speed", "Speed", COUNT, "Highest transfer rate.").unit("MT/s"),
        Property::state("speed_configured", "Configured speed", COUNT, "Transfer rate in use.")
            .unit("MT/s"),
        Property::state(
            "corrected_errors",
            "Corrected errors",
            COUNT,
            "Errors that were corrected (EDAC).",
        ),
        Property::state(
            "uncorrected_errors",
            "Uncorrected errors",
            COUNT,
            "Errors that were not corrected (EDAC).",
        ),
        Property::state("manufacturer", "Manufacturer", TEXT, "Manufacturer."),
        Property::state("part", "Part number", TEXT, "Part number."),
        Property::state("serial", "Serial number", TEXT, "Serial number."),
        Property::state("locator", "Locator", TEXT, "Designation of the socket."),
        Property::state("bank", "Bank", TEXT, "Designation of the bank."),
    ]);

static SLOTS: Context = Context::new(
    "slots",
    "Slots",
    "PCI slots, and cards that are in none. Names are those of the board where it has them, else \
     PCI addresses.",
    SCOPE,
)
.items(&Items::live("slot", "slots", &NAME, ITEMS_MAX, &SLOT));

static SLOT: Context = Context::new("slot", "Slot", "A slot with its card.", SCOPE)
    .properties(&[
        Property::state(
            "state",
            "State",
            Kind::Choice(&[("occupied", "a card is in it"), ("empty", "it is empty")]),
            "State of the slot.",
        ),
        Property::state(
            "device",
            "Device",
            TEXT,
            "Vendor and device; names need the file pci.ids.",
        ),
        Property::state("class", "Class", TEXT, "Class of the device."),
        Property::state(
            "link",
            "Link",
            TEXT,
            "Lanes and transfer rate in use, of those of the device.",
        ),
        Property::state(
            "below_maximum",
            "Below maximum",
            Kind::Bool,
            "Whether the device has more or faster lanes.",
        ),
        Property::state("width", "Slot width", COUNT, "Lanes of the slot.").unit("lanes"),
        Property::state("designation", "Designation", TEXT, "Name on the board."),
        Property::state("address", "Address", TEXT, "PCI address."),
        Property::state("ids", "IDs", TEXT, "PCI vendor and device ID."),
        Property::state(
            "subsystem",
            "Subsystem",
            TEXT,
            "PCI vendor and device ID of the subsystem.",
        ),
        Property::state("driver", "Driver", TEXT, "Driver in use."),
        Property::state("functions", "Functions", LINES, "Functions of the card."),
        Property::state("adapters", "Adapters", LINES, "InfiniBand adapters (HCAs) of the card."),
        Property::state("firmware", "HCA firmware", TEXT, "Firmware of the adapter."),
        Property::state("board", "HCA board", TEXT, "Board ID of the adapter (PSID)."),
        Property::state("adapter_type", "HCA type", TEXT, "Type of the adapter."),
        Property::state("revision", "HCA revision", TEXT, "Hardware revision of the adapter."),
        Property::state("node_guid", "Node GUID", TEXT, "GUID of the adapter."),
        Property::state("system_guid", "System image GUID", TEXT, "GUID of the system image."),
        Property::state("description", "Node description", TEXT, "Node description."),
    ])
    .items(&Items::live("port", "ports", &NAME, ITEMS_MAX, &PORT));

static PORT: Context = Context::new("port", "Port", "A port of an InfiniBand adapter.", SCOPE)
    .properties(&[
        Property::state("state", "State", TEXT, "Logical state: active, init, armed, down."),
        Property::state(
            "physical_state",
            "Physical state",
            TEXT,
            "Physical state: LinkUp, Polling, Disabled.",
        ),
        Property::state("rate", "Rate", TEXT, "Signalling rate, width and speed."),
        Property::state("guid", "Port GUID", TEXT, "GUID of the port."),
        Property::state("lid", "LID", TEXT, "LID given by the subnet manager."),
        Property::state("manager_lid", "Subnet manager", TEXT, "LID of the subnet manager."),
        Property::state("link_layer", "Link layer", TEXT, "InfiniBand or Ethernet."),
        Property::state("pkeys", "Partitions", LINES, "Partition keys (P_Keys)."),
        Property::state("gids", "GIDs", LINES, "Global identifiers."),
        Property::state("adapter", "Adapter", TEXT, "Adapter of the port."),
        Property::state("number", "Number", COUNT, "Number of the port."),
    ]);

static DISKS: Context = Context::new(
    "disks",
    "Disks",
    "Disks of this machine, absent ones too. Health is queried by smartctl at most once an hour; \
     a disk in standby is not woken.",
    SCOPE,
)
.properties(&[Property::state("reason", "Health", TEXT, "Why the health of disks is not known.")])
.items(&Items::live("disk", "disks", &NAME, ITEMS_MAX, &DISK));

static DISK: Context = Context::new("disk", "Disk", "A disk.", SCOPE).properties(&[
    Property::state(
        "state",
        "State",
        Kind::Choice(&[
            ("present", "the machine has it"),
            ("offline", "the kernel does not use it after errors"),
            ("absent", "it was there and is not"),
        ]),
        "State of the disk.",
    ),
    Property::state(
        "health",
        "Health",
        Kind::Choice(&[
            ("healthy", "no fault is known"),
            ("pre-failure", "it works and will fail"),
            ("failing", "it reports its own failure"),
            ("standby", "it sleeps and was not queried"),
            ("unknown", "see the reason"),
        ]),
        "Health as the disk reports it (SMART).",
    ),
    Property::state("reason", "Report", TEXT, "Health in a sentence."),
    Property::state("model", "Model", TEXT, "Model."),
    Property::state("serial", "Serial number", TEXT, "Serial number."),
    Property::state("bay", "Bay", TEXT, "Bay of the enclosure, or port of the controller."),
    Property::state("pool", "Pool", TEXT, "Pool that the disk is in."),
    Property::state("size", "Size", SIZE, "Size."),
    Property::state(
        "type",
        "Type",
        Kind::Choice(&[
            ("rotating", "a disk that rotates"),
            ("solid-state", "solid-state storage"),
        ]),
        "Type of the disk.",
    ),
    Property::state(
        "transport",
        "Transport",
        TEXT,
        "Attachment: sas, sata, nvme, usb, virtio, fc.",
    ),
    Property::state("firmware", "Firmware", TEXT, "Firmware."),
    Property::state("devices", "Devices", LINES, "Kernel device names, one for each path."),
    Property::state("temperature", "Temperature", DEGREES, "Temperature at the last check.")
        .unit("°C"),
    Property::state("wear", "Wear", COUNT, "Endurance used; it may exceed 100.").unit("%"),
    Property::state("hours", "Power-on hours", COUNT, "Time in operation.").unit("h"),
    Property::state("errors", "Errors", LINES, "Errors that the disk has counted."),
    Property::state(
        "failed_commands",
        "Failed commands",
        COUNT,
        "Commands that failed since the disk was marked as repaired.",
    ),
    Property::state("checked", "Checked", Kind::Time, "Time of the last check of its health."),
    Property::state("wwid", "WWID", TEXT, "World-wide identifier."),
    Property::state("by_id", "By ID", LINES, "Names in /dev/disk/by-id."),
    Property::state("controller", "Controller", TEXT, "PCI address of its controller."),
    Property::state(
        "locate",
        "Locate light",
        Kind::Bool,
        "Whether the locate light of the bay is on.",
    ),
    Property::state(
        "fault",
        "Fault light",
        Kind::Bool,
        "Whether the fault light of the bay is on.",
    ),
]);

static SENSORS: Context =
    Context::new("sensors", "Sensors", "Temperatures, fans, voltages and power.", SCOPE)
        .items(&Items::live("sensor", "sensors", &NAME, ITEMS_MAX, &SENSOR));

static SENSOR: Context = Context::new("sensor", "Sensor", "A sensor.", SCOPE).properties(&[
    Property::state(
        "state",
        "State",
        Kind::Choice(&[("ok", "within its limits"), ("alarm", "beyond its limits")]),
        "State.",
    ),
    Property::state("value", "Value", TEXT, "Value with its unit."),
    Property::state("limit", "Limit", TEXT, "Critical value; the lowest one of a fan."),
    Property::state(
        "quantity",
        "Quantity",
        Kind::Choice(&[
            ("temperature", "temperature"),
            ("fan", "speed of a fan"),
            ("voltage", "voltage"),
            ("power", "power"),
        ]),
        "Measured quantity.",
    ),
    Property::state("label", "Label", TEXT, "Label of the sensor."),
    Property::state("chip", "Chip", TEXT, "Chip that has it."),
]);
