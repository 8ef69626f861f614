// The time axis in a zone with daylight saving time.
import test from 'node:test';
import assert from 'node:assert/strict';
import { DAY, marks } from '../../src/lib/time.ts';

process.env.TZ = 'Europe/Berlin';

test('marks of days are at midnight, also after a change of daylight saving time', () => {
  for (const [first, last] of [['2026-10-20', '2026-11-01'], ['2026-03-24', '2026-04-05']]) {
    const [from, to] = [first, last].map((day) => new Date(`${day}T00:00:00`).getTime() / 1000);
    const found = marks(from, to, 13);
    assert.deepEqual(found.map(({ at }) => new Date(at * 1000).getHours()), found.map(() => 0), first);
    assert.equal(found.length, 13, 'both ends included');
    assert.equal(new Set(found.map(({ label }) => label)).size, found.length);
    assert.notEqual((to - from) % DAY, 0, 'the zone has a change in between');
  }
});
