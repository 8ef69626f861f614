// Which rows of a long list are drawn, and where keys lead in it.
import test from 'node:test';
import assert from 'node:assert/strict';
import { longest, part, step } from '../../src/lib/rows.ts';
import { continued } from '../../src/lib/names.ts';

const even = () => 32;

test('a short list is drawn as a whole', () => {
  assert.deepEqual(part(30, even, 5000, 6000), { from: 0, to: 30, before: 0, after: 0 });
  assert.deepEqual(part(0, even, 0, 900), { from: 0, to: 0, before: 0, after: 0 });
});

test('of a long list what is in view is drawn, the rest is room of the same height', () => {
  for (const top of [-400, 0, 31, 5000, 31_000]) {
    const { from, to, before, after } = part(1000, even, top, top + 900);
    assert.ok(to - from < 60, `${to - from} rows at ${top}`);
    assert.equal(before, from * 32);
    assert.equal(before + (to - from) * 32 + after, 32_000);
    assert.ok(before <= Math.max(0, top) && before + (to - from) * 32 >= Math.min(32_000, top + 900));
  }
});

test('rows of unlike heights', () => {
  const height = (at) => (at % 10 === 0 ? 100 : 20);
  const { from, to, before, after } = part(1000, height, 14_000, 14_900);
  const sum = (a, b) => Array.from({ length: b - a }, (_, at) => height(a + at)).reduce((one, other) => one + other, 0);
  assert.equal(before, sum(0, from));
  assert.equal(after, sum(to, 1000));
  assert.ok(before <= 14_000 && before + sum(from, to) >= 14_900);
});

test('a list that is above or below the view is only room', () => {
  assert.deepEqual(part(100, even, 9000, 9900), { from: 100, to: 100, before: 3200, after: 0 });
  assert.deepEqual(part(100, even, -9000, -8100), { from: 0, to: 0, before: 0, after: 3200 });
});

test('keys lead from row to row, and no further than the ends', () => {
  assert.equal(step('ArrowDown', 3, 10, 5), 4);
  assert.equal(step('PageDown', 3, 10, 5), 8);
  assert.equal(step('PageDown', 8, 10, 5), 9);
  assert.equal(step('Home', 8, 10, 5), 0);
  assert.equal(step('End', 8, 10, 5), 9);
  assert.equal(step('ArrowUp', 0, 10, 5), null);
  assert.equal(step('x', 0, 10, 5), null);
});

test('the longest text of a column', () => {
  assert.equal(longest(['a', 'abc', 'ab']), 'abc');
  assert.equal(longest([]), '');
});

test('names go on from what was typed: those that begin with it come first, and not all of them', () => {
  assert.deepEqual(continued(['banana', 'ana', 'cherry'], ' An'), ['ana', 'banana']);
  assert.equal(continued(Array.from({ length: 2000 }, (_, at) => `group-${at}`), '').length, 50);
});
