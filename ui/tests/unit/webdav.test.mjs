// Locks of WebDAV: narrowing.
import test from 'node:test';
import assert from 'node:assert/strict';
import { narrow } from '../../src/lib/webdav.ts';

const lock = (more) => ({
  id: '0f3c2a11-7be4', user: 'anna', client: '192.0.2.21', label: '192.0.2.21 (laptop)', file: '/home/anna/plan.odt', share: 'home',
  scope: 'exclusive', depth: '0', owner: 'Anna Berg', since: 1_700_000_000, timeout_s: 600, left_s: 543, ...more,
});

test('every word must be somewhere in it', () => {
  const all = [lock({}), lock({ id: 'b', user: 'bert', client: null, label: 'unknown', file: '/projects/a', owner: '' })];
  const files = (text) => narrow(all, text).map(({ file }) => file);
  assert.deepEqual(files(''), ['/home/anna/plan.odt', '/projects/a']);
  assert.deepEqual(files('ANNA odt'), ['/home/anna/plan.odt']);
  assert.deepEqual(files('laptop berg'), ['/home/anna/plan.odt']);
  assert.deepEqual(files('bert'), ['/projects/a']);
  assert.deepEqual(files('anna projects'), []);
});
