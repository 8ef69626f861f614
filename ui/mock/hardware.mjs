// The hardware and the problems of the mock: a machine with two InfiniBand adapters, one of them on half
// of its lanes, and a disk that fails.
import { bool, choice, context, items, list, number, size, state, time } from './declare.mjs';
import { FABRIC_LISTS, FABRIC_NODES } from './fabric.mjs';

const port = context('port', 'Port', 'A port of an InfiniBand adapter.', {
  properties: [state('state', 'State'), state('physical_state', 'Physical state'), state('rate', 'Rate'), state('guid', 'Port GUID'), state('lid', 'LID'),
    state('manager_lid', 'Subnet manager'), state('link_layer', 'Link layer'), state('pkeys', 'Partitions', list), state('adapter', 'Adapter'), state('number', 'Number', number)],
});
const slot = context('slot', 'Slot', 'A slot with its card.', {
  properties: [state('state', 'State', choice('occupied', 'empty')), state('device', 'Device'), state('class', 'Class'), state('link', 'Link'), state('below_maximum', 'Below maximum', bool),
    state('width', 'Slot width', number, 'lanes'), state('address', 'Address'), state('ids', 'IDs'), state('driver', 'Driver'), state('adapters', 'Adapters', list),
    state('firmware', 'HCA firmware'), state('board', 'HCA board'), state('adapter_type', 'HCA type'), state('node_guid', 'Node GUID'), state('system_guid', 'System image GUID')],
  items: items('port', 'ports', port),
});
const disk = context('disk', 'Disk', 'A disk.', {
  properties: [state('state', 'State', choice('present', 'offline', 'absent')), state('health', 'Health', choice('healthy', 'pre-failure', 'failing', 'standby', 'unknown')), state('reason', 'Report'),
    state('model', 'Model'), state('serial', 'Serial number'), state('bay', 'Bay'), state('pool', 'Pool'), state('size', 'Size', size), state('type', 'Type', choice('rotating', 'solid-state')), state('transport', 'Transport'),
    state('firmware', 'Firmware'), state('devices', 'Devices', list), state('temperature', 'Temperature', number, '°C'), state('wear', 'Wear', number, '%'), state('hours', 'Power-on hours', number, 'h'),
    state('errors', 'Errors', list), state('failed_commands', 'Failed commands', number), state('checked', 'Checked', time), state('wwid', 'WWID')],
});
const cpu = context('cpu', 'CPU', 'A processor socket.', { properties: [state('state', 'State', choice('enabled', 'disabled', 'empty')), state('model', 'Model'), state('cores', 'Cores', number), state('threads', 'Threads', number), state('speed', 'Speed', number, 'MHz')] });
const module = context('module', 'Module', 'A memory module, or an empty socket.', {
  properties: [state('state', 'State', choice('present', 'empty')), state('size', 'Size', size), state('type', 'Type'), state('speed', 'Speed', number, 'MT/s'), state('part', 'Part number'), state('corrected_errors', 'Corrected errors', number), state('uncorrected_errors', 'Uncorrected errors', number)],
});
const sensor = context('sensor', 'Sensor', 'A sensor.', { properties: [state('state', 'State', choice('ok', 'alarm')), state('value', 'Value'), state('limit', 'Limit'), state('quantity', 'Quantity'), state('label', 'Label'), state('chip', 'Chip')] });
const problem = context('problem', 'Problem', 'A fault of this machine.', {
  properties: [state('severity', 'Severity', choice('minor', 'major', 'critical')), state('since', 'Since', time), state('source', 'Source'), state('what', 'Problem'), state('impact', 'Impact'), state('remedy', 'What to do')],
  actions: [{ name: 'mark_repaired', title: 'Mark repaired', help: 'Ends the problem if its cause no longer exists.', destructive: false, parameters: [] }],
});

export const HARDWARE = context('hardware', 'Hardware', 'Chassis, CPUs, memory, slots, disks and sensors of this machine.', {
  properties: [state('absent', 'Not shown', list)],
  children: [
    context('chassis', 'Chassis', 'System, board and chassis.', { properties: [state('manufacturer', 'Manufacturer'), state('product', 'Product'), state('serial', 'Serial number'), state('firmware', 'Firmware')] }),
    context('cpus', 'CPUs', 'Processor sockets.', { items: items('CPU', 'CPUs', cpu) }),
    context('memory', 'Memory', 'Memory modules by locator.', { items: items('module', 'modules', module) }),
    context('slots', 'Slots', 'PCI slots, and cards that are in none.', { items: items('slot', 'slots', slot) }),
    context('disks', 'Disks', 'Disks of this machine, absent ones too.', { properties: [state('reason', 'Health')], items: items('disk', 'disks', disk) }),
    context('sensors', 'Sensors', 'Temperatures, fans, voltages and power.', { items: items('sensor', 'sensors', sensor) }),
  ],
});
export const PROBLEMS = context('problems', 'Problems', 'Faults of this machine: hardware, network, fabric.', { properties: [state('count', 'Problems', number)], items: items('problem', 'problems', problem) });

const up = (guid, lid, at) => ({ state: 'active', physical_state: 'LinkUp', rate: '40 Gb/sec (4X QDR)', guid: `0002:c903:000b:${guid}`, lid: String(lid), manager_lid: '1', link_layer: 'InfiniBand', pkeys: ['0xffff', '0x8001'], ...at });
const card = (number, link, more) => ({
  state: 'occupied', device: 'Mellanox Technologies MT26428 [ConnectX VPI PCIe 2.0 5GT/s - IB QDR / 10GigE]', class: 'InfiniBand controller', link, below_maximum: link.includes(' of '), width: 8,
  address: `0000:0${number}:00`, ids: '15b3:673c', driver: 'mlx4_core', firmware: '2.9.1000', board: 'MT_0D90110009', adapter_type: 'MT26428', node_guid: `0002:c903:000b:0${number}00`, system_guid: `0002:c903:000b:0${number}03`, ...more,
});
const drive = (device, serial, bay, more = {}) => ({
  state: 'present', health: 'healthy', reason: 'the disk is healthy', model: 'EXAMPLE ST4000NM0023', serial, bay: `enclosure 0:0:24:0, Slot ${bay}`, size: 4_000_787_030_016, type: 'rotating', transport: 'sas',
  firmware: '0004', devices: [device], temperature: 34, hours: 31_022, failed_commands: 0, checked: Math.floor(Date.now() / 1000) - 1800, wwid: `naa.5000c500a000${serial.slice(-4)}`, ...more,
});
const modules = (count) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`P${at < 8 ? 1 : 2}-DIMM${(at % 8) + 1}A`,
  at % 8 > 5 ? { state: 'empty' } : { state: 'present', size: 4 * 2 ** 30, type: 'DDR3', speed: 1333, part: '72A-4G', corrected_errors: at === 9 ? 3 : 0, uncorrected_errors: 0 }]));

const NODES = {
  hardware: { absent: ['InfiniBand adapters of other machines: not offered by this machine'].slice(1) },
  'hardware/chassis': { manufacturer: 'Example', product: 'Storage-1', serial: 'S-0001', firmware: '1.2.3' },
  'hardware/disks': {},
  ...FABRIC_NODES,
};
const LISTS = {
  'hardware/cpus': { CPU1: { state: 'enabled', model: 'Example(R) E5530 @ 2.40GHz', cores: 4, threads: 8, speed: 2400 }, CPU2: { state: 'enabled', model: 'Example(R) E5530 @ 2.40GHz', cores: 4, threads: 8, speed: 2400 } },
  'hardware/memory': modules(16),
  'hardware/slots': {
    PCIE1: { state: 'empty', width: 8 }, PCIE2: card(3, 'x8 at 5.0 GT/s', { adapters: ['mlx4_0'] }), PCIE3: card(4, 'x4 of x8 at 5.0 GT/s', { adapters: ['mlx4_1'] }),
    '0000:00:1f': { state: 'occupied', device: 'Intel Corporation SATA AHCI Controller', class: 'SATA controller', address: '0000:00:1f', ids: '8086:3a22', driver: 'ahci' },
  },
  'hardware/slots/PCIE2': { 'mlx4_0-1': up('0101', 5, { adapter: 'mlx4_0', number: 1 }), 'mlx4_0-2': up('0102', 6, { adapter: 'mlx4_0', number: 2 }) },
  'hardware/slots/PCIE3': {
    'mlx4_1-1': up('0201', 7, { adapter: 'mlx4_1', number: 1 }),
    'mlx4_1-2': { ...up('0202', 0, { adapter: 'mlx4_1', number: 2 }), state: 'down', physical_state: 'Polling', rate: '10 Gb/sec (4X)', lid: null, manager_lid: null, pkeys: ['0xffff'] },
  },
  'hardware/disks': {
    'EXAMPLE-ST4000NM0023-Z1Z00000': drive('sda', 'Z1Z00000', '01'),
    'EXAMPLE-ST4000NM0023-Z1Z00001': drive('sdb', 'Z1Z00001', '02', { pool: 'tank', health: 'failing', reason: 'the disk reports its own failure: failure prediction threshold exceeded', errors: ['7 sectors in the grown defect list', '2 errors that it could not correct'], failed_commands: 3 }),
    'EXAMPLE-ST4000NM0023-Z1Z00002': drive('sdc', 'Z1Z00002', '03', { health: 'standby', reason: 'the disk is in standby and was not queried', temperature: null, hours: null }),
    'EXAMPLE-ST4000NM0023-Z1Z00003': drive('sdd', 'Z1Z00003', '04', { state: 'absent', devices: null }),
  },
  'hardware/sensors': {
    'coretemp.0-Package-id-0': { state: 'ok', value: '43.0 °C', limit: '92.0 °C', quantity: 'temperature', label: 'Package id 0', chip: 'coretemp.0' },
    'w83795g-fan1': { state: 'ok', value: '4200 rpm', limit: '500 rpm', quantity: 'fan', label: 'fan1', chip: 'w83795g' },
    'w83795g-fan2': { state: 'alarm', value: '0 rpm', limit: '500 rpm', quantity: 'fan', label: 'fan2', chip: 'w83795g' },
  },
  ...FABRIC_LISTS,
};
const DISK = 'EXAMPLE ST4000NM0023 (serial number Z1Z0000';
const UNKNOWN = 'Data on the disk may be unavailable; whether a copy is left is not known.';
const found = (severity, minutes, what, impact, remedy) => ({ severity, since: Math.floor(Date.now() / 1000) - minutes * 60, source: 'hardware', what, impact, remedy });

/** What is wrong, until it is marked as repaired. */
export class Hardware {
  problems = {
    'disk-absent-EXAMPLE-ST4000NM0023-Z1Z00003': found('major', 42, `The disk ${DISK}3, enclosure 0:0:24:0, Slot 04) is absent.`, UNKNOWN, 'Put it back or replace it. If it was removed on purpose, mark this as repaired.'),
    'disk-health-EXAMPLE-ST4000NM0023-Z1Z00001': found('major', 2900, `The disk ${DISK}1, enclosure 0:0:24:0, Slot 02, sdb): the disk reports its own failure: failure prediction threshold exceeded.`, UNKNOWN, 'Replace the disk, then mark this as repaired.'),
    'slot-width-PCIE3': found('minor', 9000, 'The card Mellanox Technologies MT26428 in slot PCIE3 runs at x4 of x8 at 5.0 GT/s.', 'Its throughput is limited.', "Seat the card again; check the slot's settings in the firmware."),
  };

  /** Items below a node of /maintenance, or null where it is none of these. */
  listAt(path) {
    const inside = path.slice('/maintenance/'.length);
    return inside === 'problems' ? this.problems : (LISTS[inside] ?? {});
  }

  live(path, name) {
    const inside = path.slice('/maintenance/'.length);
    if (inside === 'problems') return name === 'count' ? Object.keys(this.problems).length : null;
    const parts = inside.split('/');
    const item = this.listAt(`/maintenance/${parts.slice(0, -1).join('/')}`)[parts.at(-1)];
    return (item ?? NODES[inside] ?? {})[name] ?? null;
  }

  /** What an action answers. */
  act(path) {
    delete this.problems[path.split('/').at(-1)];
    return 'The problem is marked as repaired.';
  }
}

export const isHardware = (path) => /^\/maintenance\/(fabric|hardware|problems)(\/|$)/.test(path);
