// What the page of the network shows of each node, and where the administration is after a change.
import test from 'node:test';
import assert from 'node:assert/strict';
import { addressesOf, isNetwork, NETWORK, ofDatalink, ofDevice, ofDeviceMore, ofInterface, urlAt } from '../../src/lib/network.ts';

const node = (values) => ({ properties: Object.entries(values).map(([name, value]) => ({ name, value })) });

test('pages of the network are its node and those below it', () => {
  assert.equal(isNetwork(NETWORK), true);
  assert.equal(isNetwork(`${NETWORK}/datalinks/eth0`), true);
  assert.equal(isNetwork('/configuration/networks'), false);
});

test('a device, a datalink and an interface are a line each', () => {
  assert.equal(ofDevice(node({ kind: 'Ethernet', speed: '1000 Mbit/s full', mtu: 1500, mac: '02:00:5e:00:00:10', used_by: 'trunk0' })), 'Ethernet · 1000 Mbit/s full · MTU 1500 · used by trunk0');
  assert.deepEqual(ofDeviceMore(node({ mac: '00:00:00:00:00:00', addresses: ['127.0.0.1/8'] })), ['127.0.0.1/8']);
  assert.equal(ofDatalink(node({ class: 'vlan', id: 10, link: 'eth0', found_mtu: 1500 })), 'VLAN 10 on eth0 · MTU 1500');
  assert.equal(ofDatalink(node({ class: 'aggregation', mode: 'active-backup', links: ['eth0', 'eth1'], primary: 'eth1' })), 'Active-backup of eth0, eth1 · primary eth1');
  assert.equal(ofDatalink(node({ class: 'aggregation', mode: 'lacp', links: ['eth0'], policy: 'l34' })), 'LACP of eth0 · l34');
  assert.equal(ofDatalink(node({ class: 'partition', pkey: '0x8001', link: 'ib0' })), 'Partition 0x8001 on ib0');
  assert.equal(ofInterface(node({ links: ['eth0'], v6auto: true })), 'On eth0 · router advertisements');
  assert.equal(ofInterface(node({ links: ['eth0', 'eth1'], standbys: ['eth1'] })), 'Group of eth0, eth1 (standby)');
});

test('addresses are those that it has, without those of the link, or those that it is to have', () => {
  const wanted = { v4addrs: ['192.0.2.10/24'], v6addrs: [] };
  assert.deepEqual(addressesOf(node({ ...wanted, found: ['192.0.2.10/24', 'fe80::1/64', '2001:db8::7/64'] })), ['192.0.2.10/24', '2001:db8::7/64']);
  assert.deepEqual(addressesOf(node({ ...wanted, found: [] })), ['192.0.2.10/24']);
});

test('the administration moves to another address, with the same port', () => {
  const here = { protocol: 'https:', hostname: '192.0.2.10', port: '10215' };
  assert.equal(urlAt(here, '192.0.2.11'), `https://192.0.2.11:10215${NETWORK}`);
  assert.equal(urlAt({ ...here, port: '' }, '192.0.2.11'), `https://192.0.2.11${NETWORK}`);
  assert.equal(urlAt(here, '2001:db8::1'), `https://[2001:db8::1]:10215${NETWORK}`);
  assert.equal(urlAt({ ...here, hostname: '[2001:db8::1]' }, '2001:DB8::1'), null);
  assert.equal(urlAt(here, '192.0.2.10'), null);
  assert.equal(urlAt(here, null), null);
});
