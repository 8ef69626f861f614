// What the pages of the hardware show of each node.
import assert from 'node:assert/strict';
import test from 'node:test';
import { byUrgency, errorsOf, ofDisk, ofModule, ofSlot, pageOf, stateOf } from '../../src/lib/hardware.ts';

const node = (values) => ({ name: 'x', path: '/x', properties: Object.entries(values).map(([name, value]) => ({ name, value, role: 'state', source: 'state', from: null })), below: {}, items: [], actions: [] });

test('which page a path has', () => {
  const pages = { '/maintenance/hardware': 'all', '/maintenance/hardware/slots/PCIE3': 'slot', '/maintenance/hardware/disks/X-1': 'disk', '/maintenance/problems': 'problems' };
  for (const [path, page] of Object.entries(pages)) assert.equal(pageOf(path), page);
  for (const path of ['/maintenance', '/maintenance/hardware/slots', '/maintenance/hardware/slots/PCIE3/mlx4_0-1', '/maintenance/hardware/cpus/CPU1', '/maintenance/problems/x']) assert.equal(pageOf(path), null);
});

test('the state of a disk', () => {
  assert.deepEqual(stateOf(node({ state: 'present', health: 'failing' })), { word: 'failing', mark: 'bad' });
  assert.deepEqual(stateOf(node({ state: 'absent', health: 'healthy' })), { word: 'absent', mark: 'bad' });
  assert.deepEqual(stateOf(node({ state: 'present', health: 'unknown' })), { word: 'health unknown', mark: '' });
  assert.deepEqual(stateOf(node({ state: 'present', health: 'standby' })), { word: 'standby', mark: '' });
});

test('lines of nodes', () => {
  assert.equal(ofDisk(node({ bay: 'Slot 01', size: 2 ** 40, type: 'rotating', transport: 'sas', devices: ['sda', 'sdb'] })), 'Slot 01 · 1 TiB · Hard disk · SAS · sda, sdb');
  assert.equal(ofDisk(node({ type: 'solid-state', transport: 'nvme', devices: ['nvme0n1'], pool: 'tank' })), 'SSD · NVME · nvme0n1 · pool tank');
  assert.equal(ofModule(node({ state: 'present', size: 2 ** 32, type: 'DDR4', speed: 2666 })), '4 GiB · DDR4 · 2666 MT/s');
  assert.equal(ofModule(node({ state: 'empty' })), 'Empty');
  assert.equal(ofSlot(node({ state: 'empty' })), 'Empty');
  assert.equal(errorsOf(node({ corrected_errors: 3, uncorrected_errors: 1 })), '1 uncorrected errors · 3 corrected errors');
  assert.equal(errorsOf(node({ corrected_errors: 0, uncorrected_errors: 0 })), '');
});

test('the most urgent problem is first', () => {
  const [minor, major, older] = [node({ severity: 'minor', since: 1 }), node({ severity: 'major', since: 9 }), node({ severity: 'major', since: 3 })];
  assert.deepEqual([minor, major, older].sort(byUrgency), [older, major, minor]);
});
