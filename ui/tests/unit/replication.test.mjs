// What the page of a replication action offers and says.
import test from 'node:test';
import assert from 'node:assert/strict';
import { isAction, notNow, share, why } from '../../src/lib/replication.ts';

const node = (values) => ({ properties: Object.entries(values).map(([name, value]) => ({ name, value })) });

test('what the state does not offer says why', () => {
  const says = (state, action) => notNow(node({ state }), action);
  assert.equal(says('idle', 'start'), null);
  assert.equal(says('waiting', 'start'), null);
  assert.match(says('running', 'start'), /in progress/);
  assert.equal(says('running', 'stop'), null);
  assert.match(says('stopping', 'stop'), /being stopped/);
  assert.match(says('idle', 'stop'), /^No run/);
});

test('a part is told once it is known how much there is', () => {
  assert.equal(share(node({ size: 0, size_done: 0 })), null);
  assert.equal(share(node({ size: 400, size_done: 100 })), 0.25);
  assert.equal(share(node({ size: 4, size_done: 9 })), 1);
  assert.equal(share(node({})), null);
});

test('a result says what was wrong with it', () => {
  assert.equal(why({ failures: 0 }), '');
  assert.equal(why({ reason: 'nas cannot be reached', failures: 2, skipped: 1 }), 'nas cannot be reached, 2 failed, 1 scheduled runs skipped');
});

test('actions are below their list', () => {
  assert.equal(isAction('/configuration/replication/nightly'), true);
  assert.equal(isAction('/configuration/replication'), false);
});
