// What the pages of pools show, and what a profile gives on disks.
import assert from 'node:assert/strict';
import test from 'node:test';
import { capacity, errorsOf, importable, notNow, ofDisk, pageOf, stateOf, taskOf, titleOf, usable } from '../../src/lib/pools.ts';

const node = (values, name = 'x') => ({ name, path: `/${name}`, properties: Object.entries(values).map(([of, value]) => ({ name: of, value, role: 'state', source: 'state', from: null })), below: {}, items: [], actions: [] });

test('which page a path has', () => {
  for (const path of ['/storage', '/storage/pools']) assert.equal(pageOf(path), 'all');
  assert.equal(pageOf('/storage/pools/tank'), 'pool');
  for (const path of ['/storage/disks', '/storage/pools/tank/disks', '/storage/pools/']) assert.equal(pageOf(path), null);
});

test('the capacity of a profile is that of the allocator', () => {
  assert.equal(capacity(2, [100, 100]), 100);
  assert.equal(capacity(2, [100, 300]), 100);
  assert.equal(capacity(2, [100, 100, 100]), 150);
  assert.equal(capacity(3, [100, 100, 100, 100]), 133);
  assert.equal(capacity(1, [100, 50]), 150);
  assert.equal(capacity(2, [100]), 0);
  assert.equal(capacity(2, []), 0);
});

test('a task is a line', () => {
  assert.equal(taskOf(node({})), '');
  assert.equal(taskOf(node({ task: 'scrub', phase: 'scrub', progress: 7, time_left: 30 })), 'scrub · 7 % · 30 s left');
  assert.equal(taskOf(node({ task: 'replace', phase: 'convert', progress: 85, time_left: 300 })), 'replace: convert · 85 % · 5 min left');
});

test('disks by serial number, and their errors', () => {
  assert.equal(titleOf(node({ serial: 'S1', device: 'sda' })), 'S1');
  assert.equal(titleOf(node({ device: 'loop0' }, '2')), 'loop0');
  assert.equal(titleOf(node({}, '2')), '2');
  assert.match(ofDisk(node({ bay: 'Slot 3', model: 'M', device: 'sda' })), /^Slot 3 · M · sda$/);
  assert.equal(errorsOf(node({ write_errors: 0, corruption_errors: 3 })), '3 checksum errors');
  assert.equal(usable([node({ usable: true }), node({ usable: false })]).length, 1);
});

test('pools to import have their UUID', () => {
  const line = 'old (UUID 0a-1b): 1 of 2 disks';
  assert.deepEqual(importable(node({ importable: [line] })), [{ line, uuid: '0a-1b' }]);
  assert.deepEqual(importable(undefined), []);
});

test('actions follow the state', () => {
  assert.equal(stateOf(node({ state: 'degraded' })).mark, 'warn');
  assert.equal(notNow(node({ state: 'healthy' }), 'scrub'), null);
  assert.notEqual(notNow(node({ state: 'healthy' }), 'mount'), null);
  assert.equal(notNow(node({ state: 'failed' }), 'mount'), null);
  assert.notEqual(notNow(node({ state: 'failed' }), 'replace'), null);
  assert.notEqual(notNow(node({ state: 'healthy', task: 'scrub' }), 'export_pool'), null);
  assert.equal(notNow(node({ state: 'healthy', task: 'scrub' }), 'stop'), null);
});
