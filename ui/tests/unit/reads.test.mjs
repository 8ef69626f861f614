// Reads of a page that are repeated, and responses that overtake each other.
import test from 'node:test';
import assert from 'node:assert/strict';
import { inOrder, repeat } from '../../src/lib/reads.ts';

/** Lets what waits for a resolved promise run. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('a read is repeated a pause after its end, until the end', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const reads = [];
  const end = repeat((first) => { reads.push(first); return Promise.resolve(); }, () => 4000);
  await turn();
  t.mock.timers.tick(3999);
  assert.deepEqual(reads, [true]);
  t.mock.timers.tick(1);
  assert.deepEqual(reads, [true, false]);
  await turn();
  end();
  t.mock.timers.tick(60_000);
  assert.equal(reads.length, 2);
});

test('a read that is in progress at the end is the last one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let reads = 0;
  let respond;
  const end = repeat(() => { reads += 1; return new Promise((resolve) => { respond = resolve; }); }, () => 4000);
  end();
  respond();
  await turn();
  t.mock.timers.tick(60_000);
  assert.equal(reads, 1);
});

test('a response that was overtaken is not shown', () => {
  const begin = inOrder();
  const [first, second, third] = [begin(), begin(), begin()];
  assert.deepEqual([second(), first(), third(), second()], [true, false, true, false]);
});
