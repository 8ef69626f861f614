// The colours of styles.css against each other, in both themes: text at 4.5 : 1, what a control or a
// graph is recognised by at 3 : 1 (WCAG 2.2, 1.4.3 and 1.4.11, level AA).
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

const CSS = await readFile(new URL('../../src/styles.css', import.meta.url), 'utf8');
const [TEXT, SIGN] = [4.5, 3];
/** What a page, a dialog, a bar at the bottom and a graph lie on. */
const GROUNDS = ['bg', 'raised', 'sunken', 'plot'];

/** The tokens of the first block that follows `start`. */
function tokens(start) {
  const block = CSS.slice(CSS.indexOf(start)).match(/:root \{([^}]*)\}/)[1];
  return Object.fromEntries([...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value]));
}

/** Relative luminance of `#rrggbb`, 0 to 1. */
function luminance(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

const light = tokens(':root');
const themes = { light, dark: { ...light, ...tokens('@media (prefers-color-scheme: dark)') } };

/** Every pair of the lists, with the least that it must have. */
const pairs = (above, below, least) => above.flatMap((one) => below.map((ground) => [one, ground, least]));
const SERIES = Object.keys(light).filter((name) => /^c\d$/.test(name));
const PAIRS = [
  ...pairs(['text', 'muted', 'accent', 'good', 'warn', 'bad'], GROUNDS, TEXT),
  ...pairs(['hint'], ['raised'], TEXT),
  // Words on buttons that are filled.
  ...pairs(['bg'], ['accent', 'bad', 'text'], TEXT),
  ...pairs(['control', 'accent'], GROUNDS, SIGN),
  ...pairs(['stroke', 'heat-mark', 'cross', ...SERIES], ['plot'], SIGN),
];

test('black on white is 21 : 1', () => {
  assert.equal(Math.round(contrast('#000000', '#ffffff')), 21);
  assert.equal(contrast('#777777', '#777777'), 1);
});

for (const [name, theme] of Object.entries(themes)) {
  test(`everything can be read in the ${name} theme`, () => {
    assert.equal(SERIES.length, 8);
    const low = PAIRS.map(([one, ground, least]) => [one, ground, least, contrast(theme[one], theme[ground])])
      .filter(([, , least, found]) => !(found >= least))
      .map(([one, ground, least, found]) => `${one} on ${ground}: ${found.toFixed(2)}, at least ${least}`);
    assert.deepEqual(low, []);
  });
}

test('an example in an empty field is lighter than what is typed', () => {
  for (const theme of Object.values(themes)) assert.ok(contrast(theme.hint, theme.raised) < contrast(theme.muted, theme.raised));
});
