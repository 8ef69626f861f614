// The InfiniBand fabric of the mock: two switches and six hosts. One link runs on a single lane, one port counts
// symbol errors, one is not connected.
import { context, items, list, number, state, bool, choice, text } from './declare.mjs';

const node = context('node', 'Node', 'A channel adapter, switch or router.', {
  properties: [state('kind', 'Kind'), state('description', 'Description'), state('guid', 'GUID'), state('system_guid', 'System GUID'), state('ports', 'Ports', number), state('linked', 'Linked ports', number),
    state('lid', 'LID'), state('device', 'Device'), state('route', 'Route')],
});
const port = context('port', 'Port', 'A port of a node.', {
  properties: [state('node', 'Node'), state('number', 'Number', number), state('guid', 'GUID'), state('lid', 'LID'), state('state', 'State'), state('physical', 'Physical state'), state('width', 'Width'), state('speed', 'Speed'),
    state('peer', 'Peer'), state('counters', 'Counters'), state('bytes_in', 'Bytes in', number, 'B'), state('bytes_out', 'Bytes out', number, 'B'), state('rate_in', 'Rate in', number, 'B/s'), state('rate_out', 'Rate out', number, 'B/s'),
    state('errors', 'Errors', list), state('errors_grow', 'Errors grow', bool), state('wait', 'Wait', number)],
});
const link = context('link', 'Link', 'A link.', { properties: [state('from', 'From'), state('to', 'To'), state('width', 'Width'), state('speed', 'Speed'), state('below_maximum', 'Below maximum', bool)] });

export const FABRIC = context('fabric', 'Fabric', 'Nodes, ports and links of the InfiniBand fabric, read every 10 seconds.', {
  properties: [state('state', 'State', choice('observed', 'partial', 'unavailable')), state('reason', 'Reason', text), state('subnet_manager', 'Subnet manager'), state('pkeys', 'P_Keys', list), state('nodes_found', 'Nodes', number),
    state('ports_linked', 'Linked ports', number), state('links_found', 'Links', number), state('problems', 'Problems', list), state('walk', 'Walk', number, 'ms'), state('reading', 'Reading', number, 'ms'), state('ignored', 'Ignored replies', number)],
  children: [
    context('nodes', 'Nodes', 'Channel adapters, switches and routers.', { items: items('node', 'nodes', node) }),
    context('ports', 'Ports', 'Ports of all nodes, with their counters.', { items: items('port', 'ports', port) }),
    context('links', 'Links', 'Links, each by the port at one of its ends.', { items: items('link', 'links', link) }),
  ],
});

const HOSTS = [1, 2, 3, 4, 5, 6];
const guid = (n) => `0x00020000000000${n.toString(16).padStart(2, '0')}`;
const up = { state: 'active', physical: 'link up', width: '4x of 4x', speed: 'QDR of QDR', counters: '64 bits', errors: [], errors_grow: false, wait: 0 };
const down = { state: 'down', physical: 'polling', counters: 'no link', peer: '' };
const nodes = {}, ports = {}, links = {};
function connect(from, to, at = {}) {
  const flow = (name) => (1 + [...name].reduce((sum, c) => sum + c.charCodeAt(0), 0) % 97) * 31_250_000;
  const rates = { rate_in: flow(from), rate_out: flow(to), bytes_in: flow(from) * 90_000, bytes_out: flow(to) * 90_000 };
  const back = { rate_in: rates.rate_out, rate_out: rates.rate_in, bytes_in: rates.bytes_out, bytes_out: rates.bytes_in };
  const one = (name, peer, more) => (ports[name] = { ...up, node: name.split(':')[0], number: Number(name.split(':')[1]), peer, ...more, ...at });
  one(from, to, rates);
  one(to, from, back);
  links[from] = { from, to, width: at.width ?? up.width, speed: up.speed, below_maximum: at.width !== undefined };
}
for (const n of HOSTS) {
  nodes[`host${n}`] = { kind: 'channel adapter', description: `host${n}`, guid: guid(n), system_guid: guid(n), ports: 2, linked: 1, lid: String(n), device: 'vendor 0x000002, device 0x673c, revision 0xb0', route: n === 1 ? '' : `1, ${n}` };
  connect(`host${n}:1`, `sw${n < 4 ? 1 : 2}:${n}`, n === 3 ? { width: '1x of 4x' } : {});
  ports[`host${n}:2`] = { ...down, node: `host${n}`, number: 2 };
}
for (const n of [1, 2]) nodes[`sw${n}`] = { kind: 'switch', description: `sw${n}`, guid: guid(16 + n), system_guid: guid(16 + n), ports: 36, linked: 5, lid: String(1000 + n), device: 'vendor 0x000002, device 0xbd36, revision 0xa1', route: n === 1 ? '1' : '1, 33' };
connect('sw1:33', 'sw2:35');
connect('sw1:34', 'sw2:36');
Object.assign(ports['host5:1'], { errors: ['symbol: 214', 'link recovery: 1'], errors_grow: true });

export const FABRIC_NODES = {
  fabric: {
    state: 'observed', reason: '', subnet_manager: 'host1:1: LID 1', pkeys: ['0xffff (full) at host1:1', '0x8001 (full) at host1:1'], nodes_found: 8, ports_linked: 16, links_found: 8,
    problems: [
      'the link host3:1 to sw1:3 runs at 1x QDR; both ends support 4x QDR. The link carries less than its ports can. Reseat or replace the cable; check that it is rated for the speed.',
      'symbol errors grow at host5:1: 12 more in the last interval. Packets are lost and repeated; the link may go down. Clean and reseat the cable of the port; replace it if the errors continue.',
    ],
    walk: 42, reading: 18, ignored: 0,
  },
};
export const FABRIC_LISTS = { 'fabric/nodes': nodes, 'fabric/ports': ports, 'fabric/links': links };
