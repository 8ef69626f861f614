// The network of the mock: its declaration, what the machine has, and a change that is reverted unless
// it is confirmed in time.

const text = (shape, max_length = 255) => ({ type: 'text', shape, max_length });
const list = (of, max_length = 64) => ({ type: 'list', max_length, of });
const number = (min, max) => ({ type: 'integer', min, max });
const choice = (...values) => ({ type: 'choice', choices: values.map((value) => ({ value, meaning: value })) });
const property = (name, title, kind, more = {}) => ({ name, title, kind, unit: '', default: null, role: 'setting', help: `${title}.`, example: '', required: false, effect: 'now', ...more });
const state = (name, title, kind = text('line', 4096)) => property(name, title, kind, { role: 'state' });
const context = (name, title, help, more = {}) => ({ name, title, help, scope: 'network', properties: [], actions: [], children: [], items: null, statistics: [], ...more });
const items = (noun, of, more = {}) => ({ noun, plural: `${noun}s`, key: text('name', 15), max: 256, origin: 'configured', context: of, fixed: [], ...more });
const STATE = state('state', 'State', choice('up', 'down', 'absent', 'disabled'));
const LINKS = { required: true, items_of: '/configuration/network/datalinks', example: 'eth0, eth1' };

export const PREFIX = '/configuration/network';

const device = context('device', 'Device', 'A network device.', {
  properties: [state('kind', 'Kind'), STATE, state('mac', 'MAC address'), state('speed', 'Speed'), state('mtu', 'MTU', number(0, 65_535)),
    state('addresses', 'Addresses', list(text('line'))), state('used_by', 'Used by'), state('manager', 'Manager'), state('release', 'Release')],
});
const datalink = context('datalink', 'Datalink', 'A device, VLAN, aggregation or partition.', {
  properties: [
    property('class', 'Class', choice('device', 'vlan', 'aggregation', 'partition'), { required: true, example: 'vlan' }),
    property('link', 'Link', text('name', 15), { required: true, only_if: { property: 'class', values: ['vlan', 'partition'] }, example: 'eth0' }),
    property('id', 'VLAN id', number(1, 4094), { required: true, only_if: { property: 'class', values: ['vlan'] }, example: '10' }),
    property('links', 'Links', list(text('name', 15)), { ...LINKS, only_if: { property: 'class', values: ['aggregation'] } }),
    property('mode', 'Mode', choice('active-backup', 'lacp'), { default: 'active-backup', only_if: { property: 'class', values: ['aggregation'] } }),
    property('mtu', 'MTU', number(0, 65_535), { unit: 'B', example: '9000' }),
    STATE, state('found', 'Found'), state('found_mtu', 'Found MTU', number(0, 65_535)),
  ],
});
const interfaceOf = context('interface', 'Interface', 'IP addresses on a datalink, or on a group of datalinks of which one is used at a time.', {
  properties: [
    property('enable', 'Enabled', { type: 'bool' }, { default: true }),
    property('links', 'Links', list(text('name', 15)), LINKS),
    property('standbys', 'Standbys', list(text('name', 15)), { default: [], items_of: LINKS.items_of }),
    property('v4addrs', 'IPv4 addresses', list(text('network')), { default: [], example: '192.0.2.10/24' }),
    property('v6addrs', 'IPv6 addresses', list(text('network')), { default: [], example: '2001:db8::10/64' }),
    property('v6auto', 'IPv6 by router advertisements', { type: 'bool' }, { default: false }),
    STATE, state('found', 'Found', list(text('line'))),
  ],
});
const route = context('route', 'Route', 'A static route.', {
  properties: [property('destination', 'Destination', text('network'), { required: true, example: '0.0.0.0/0' }),
    property('gateway', 'Gateway', text('address'), { required: true, example: '192.0.2.1' }), property('metric', 'Metric', number(0, 2 ** 32 - 1), { example: '100' }), STATE],
});

export const NETWORK = context('network', 'Network', 'Devices, datalinks, interfaces, routes, name servers and host name of this machine. A change is reverted unless it is confirmed in time over a connection made after it.', {
  properties: [
    property('confirm_within', 'Confirm within', { type: 'seconds', min: 5, max: 3600 }, { default: 60, help: 'Time to confirm a change; afterwards the previous state is restored.' }),
    property('administration', 'Administration address', text('address'), { help: 'Address by which the administration is reached after a change that removes the current one.', example: '192.0.2.10' }),
    state('state', 'State', choice('changeable', 'unconfirmed', 'read-only')), state('reason', 'Reason'), state('time_left', 'Time left', { type: 'seconds', min: 0, max: 3600 }),
    state('steps', 'Steps', list(text('line'), 1000)), state('problem', 'Problem'),
  ],
  actions: [
    { name: 'confirm', title: 'Confirm', help: 'Keeps the last change.', destructive: false, parameters: [] },
    { name: 'revert', title: 'Revert', help: 'Restores the state before the last change now.', destructive: false, parameters: [] },
  ],
  children: [
    context('devices', 'Devices', 'Network devices, and links of other programs.', { items: items('device', device, { origin: 'live' }) }),
    context('datalinks', 'Datalinks', 'Devices that are used, and VLANs, aggregations and partitions made of them.', { properties: [state('offers', 'Offered partitions', list(text('line'), 512))], items: items('datalink', datalink) }),
    context('interfaces', 'Interfaces', 'IP addresses on datalinks.', { items: items('interface', interfaceOf) }),
    context('routes', 'Routes', 'Static routes.', { properties: [state('found', 'Found', list(text('line'), 1000))], items: items('route', route) }),
    context('dns', 'DNS', 'Name servers; not set: those of the machine.', {
      properties: [property('servers', 'Servers', list(text('address')), { example: '192.0.2.53' }), property('domains', 'Search domains', list(text('domain')), { example: 'example.net' }),
        state('found_servers', 'Found servers', list(text('line'))), state('found_domains', 'Found domains', list(text('line')))],
    }),
    context('identity', 'Identity', 'Host name of this machine.', { properties: [property('host_name', 'Host name', text('domain', 64), { example: 'storage1' }), state('found', 'Found')] }),
  ],
});

/** What is configured at first. */
export const FIRST = () => Object.fromEntries(Object.entries({
  'datalinks/eth0': { class: 'device' }, 'datalinks/eth1': { class: 'device' },
  'datalinks/trunk0': { class: 'aggregation', links: ['eth0', 'eth1'], mode: 'lacp', mtu: 9000 },
  'datalinks/trunk0.10': { class: 'vlan', link: 'trunk0', id: 10 },
  'interfaces/admin': { links: ['trunk0'], v4addrs: ['192.0.2.10/24'], v6addrs: ['2001:db8::10/64'] },
  'interfaces/storage': { links: ['trunk0.10'], v4addrs: ['198.51.100.10/24'] },
  'routes/default': { destination: '0.0.0.0/0', gateway: '192.0.2.1' },
  dns: { servers: ['192.0.2.53'], domains: ['example.net'] },
}).map(([path, table]) => [`${PREFIX}/${path}`, table]));

const ethernet = (mac, more) => ({ kind: 'Ethernet', state: 'up', mac: `02:00:5e:00:00:${mac}`, speed: '25000 Mbit/s full', mtu: 9000, addresses: [], ...more });
export const DEVICES = {
  eth0: ethernet('10', { used_by: 'trunk0' }), eth1: ethernet('11', { used_by: 'trunk0' }),
  eth2: ethernet('12', { speed: '1000 Mbit/s full', mtu: 1500, addresses: ['203.0.113.7/24'], manager: 'NetworkManager', release: 'nmcli device set eth2 managed no' }),
  ib0: { kind: 'InfiniBand', state: 'down', mac: '80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:1b:2c:61', speed: '56000 Mbit/s', mtu: 2044, addresses: [] },
  lo: { kind: 'loopback', state: 'up', mac: '00:00:00:00:00:00', mtu: 65_536, addresses: ['127.0.0.1/8', '::1/128'] },
};

/** A change that waits, and what the machine would show. */
export class Network {
  reason = null;
  offers = ['0x8001 (full) on ib0: port mlx4_0-1, GUID 0x0002c903000b0101'];
  #waiting = null;

  /** Follows a commit: `revert` restores the document before it, or before the one that it continues. */
  begin(within, own, before) {
    const steps = [...(this.#waiting?.steps ?? []), ...own];
    const revert = this.#waiting?.revert ?? before;
    this.end();
    const timer = setTimeout(() => { this.#waiting = null; revert(); }, within * 1000);
    timer.unref();
    this.#waiting = { until: Date.now() + within * 1000, steps, revert, timer };
  }

  get waits() {
    return this.#waiting !== null;
  }

  end() {
    clearTimeout(this.#waiting?.timer);
    this.#waiting = null;
  }

  /** Does an action; what it says. */
  act(action) {
    const waiting = this.#waiting;
    this.end();
    if (action === 'revert') waiting.revert();
    return action === 'confirm' ? 'The change is confirmed.' : 'The state before the change is restored.';
  }

  live(path, name, document) {
    const [kind, item] = path.slice(PREFIX.length + 1).split('/');
    const table = document[path] ?? {};
    if (kind === '') return this.#own(name);
    if (kind === 'devices') return DEVICES[item]?.[name] ?? null;
    if (kind === 'datalinks' && item === undefined) return this.offers;
    if (kind === 'datalinks') return { state: 'up', found: { device: 'device', vlan: `VLAN ${table.id} on ${table.link}` }[table.class] ?? 'aggregation (LACP)', found_mtu: table.mtu ?? 9000 }[name] ?? null;
    if (kind === 'interfaces') return { state: table.enable === false ? 'disabled' : 'up', found: [...(table.v4addrs ?? []), ...(table.v6addrs ?? [])] }[name] ?? null;
    if (kind === 'routes') return item === undefined ? ['0.0.0.0/0 via 192.0.2.1 on trunk0 with metric 0', '192.0.2.0/24 on trunk0 with metric 0', '198.51.100.0/24 on trunk0.10 with metric 0'] : 'up';
    if (kind === 'dns') return { found_servers: table.servers ?? ['192.0.2.53'], found_domains: table.domains ?? [] }[name] ?? null;
    return table.host_name ?? 'vault';
  }

  #own(name) {
    const waiting = this.#waiting;
    const told = { state: this.reason !== null ? 'read-only' : waiting ? 'unconfirmed' : 'changeable', reason: this.reason };
    if (waiting) Object.assign(told, { time_left: Math.max(0, Math.ceil((waiting.until - Date.now()) / 1000)), steps: waiting.steps });
    return told[name] ?? null;
  }
}
