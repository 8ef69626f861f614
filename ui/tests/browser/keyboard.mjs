// Without a mouse, and without eyes: every control of every page has a name and shows that it has the
// focus, and says why it cannot be used; what is made and destroyed can be by keys alone.
import assert from 'node:assert/strict';
import { nodesOf, settled, step } from './pages.mjs';

const OTHERS = ['/', '/analytics?w=cpu.utilization[mode]', '/nfs', '/webdav', '/configuration?view=history', '/configuration?view=file', '/maintenance?view=audit'];

/** So many steps of the tab key are looked at on each page, from its beginning below the bar. */
const TABS = 8;

/** What is wrong with the controls that can be seen. */
const faults = (page) => page.evaluate(() => {
  const seen = (one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0;
  const called = (one) => (one.getAttribute('aria-label') ?? '').trim() || (one.textContent ?? '').trim() || one.title
    || one.getAttribute('aria-labelledby') || [...(one.labels ?? [])].map((label) => label.textContent.trim()).join('');
  const what = (one) => one.outerHTML.slice(0, 120);
  const controls = [...document.querySelectorAll('button, a[href], input, select, textarea, [role=button]')].filter(seen);
  return [
    ...controls.filter((one) => !called(one)).map((one) => `no name: ${what(one)}`),
    ...controls.filter((one) => one.disabled && one.title === '' && !one.closest('label')?.title).map((one) => `disabled, and does not say why: ${what(one)}`),
    ...[...document.querySelectorAll('img:not([alt])')].map((one) => `no text for ${what(one)}`),
    ...(document.querySelectorAll('main h1').length === 1 ? [] : ['not one heading of the first level']),
  ];
});

/** Where the focus is, if it cannot be seen. */
const unseen = (page) => page.evaluate(() => {
  const at = document.activeElement;
  if (at === null || at === document.body) return null;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  return outlineStyle === 'none' || outlineWidth === '0px' ? at.outerHTML.slice(0, 120) : null;
});

export async function keyboard(t, { page, where }) {
  await page.goto(where.url);
  await page.getByRole('navigation', { name: 'Places' }).waitFor();
  await t.test('the first tab leads past the bar', async () => {
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'To the page');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.tagName), 'MAIN');
  });
  await t.test('a question mark shows the keys, Escape closes them', async () => {
    await page.keyboard.press('?');
    const keys = page.getByRole('dialog', { name: 'Keys' });
    await keys.getByText('commit pending changes').waitFor();
    await page.keyboard.press('Escape');
    await keys.waitFor({ state: 'hidden' });
  });
  const made = await page.evaluate(async () => (await fetch('/api/v1/tree')).ok);
  await t.test('every control has a name, shows the focus and says why it is disabled', async () => {
    const nodes = made ? (await nodesOf(page)).map(({ address }) => address) : [];
    const found = [];
    for (const address of [...OTHERS, ...nodes]) {
      await step(page, address);
      await page.locator('main h1').first().waitFor();
      await settled(page);
      found.push(...(await faults(page)).map((fault) => `${address}: ${fault}`));
      await page.evaluate(() => {
        const main = document.querySelector('main');
        main.tabIndex = -1;
        main.focus();
      });
      for (let at = 0; at < TABS; at += 1) {
        await page.keyboard.press('Tab');
        const hidden = await unseen(page);
        if (hidden !== null) found.push(`${address}: the focus cannot be seen on ${hidden}`);
      }
    }
    assert.deepEqual([...new Set(found)], []);
  });
  if (made) await t.test('a role is made and destroyed by keys alone', () => byKeys(page, where));
}

async function byKeys(page, where) {
  await page.goto(`${where.url}/configuration/roles`);
  await page.getByRole('button', { name: 'New role' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'New role' }).waitFor();
  await page.keyboard.type('by-keys');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'by-keys' }).waitFor();
  await page.getByRole('button', { name: 'Destroy' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Destroy the role by-keys?' }).waitFor();
  // The harmless one has the focus.
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Cancel');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Roles', exact: true }).waitFor();
  assert.equal(await page.getByRole('rowheader', { name: 'by-keys' }).count(), 0);
}
