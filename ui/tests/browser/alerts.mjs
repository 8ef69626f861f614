// Alerts as sentences, and worksheets that are saved, against a server that has them.
import assert from 'node:assert/strict';
import { step } from './pages.mjs';

const ALERTS = '/configuration/alerts';
const WORKSHEETS = '/analytics/worksheets';

const nodeOf = (page, path) => page.evaluate(async (of) => {
  const answer = await fetch(`/api/v1/nodes${of}`);
  return answer.ok ? answer.json() : null;
}, path);

const valueOf = async (page, path, property) =>
  (await nodeOf(page, path)).properties.find(({ name }) => name === property).value;

export async function alerts(t, { page, where }) {
  await page.goto(where.url);
  await page.getByRole('navigation', { name: 'Places' }).waitFor();
  if ((await nodeOf(page, ALERTS)) === null) return t.skip('this server has no alerts');
  await t.test('an alert is made as a sentence', async () => {
    await page.goto(where.url + ALERTS);
    await page.getByRole('heading', { level: 1, name: 'Alerts', exact: true }).waitFor();
    await page.getByRole('button', { name: 'New alert' }).click();
    const dialog = page.getByRole('dialog', { name: 'New alert' });
    await dialog.getByLabel('Name').fill('writes');
    const word = (name) => dialog.getByRole('group', { name: 'The alert as a sentence' }).getByLabel(name, { exact: true });
    await word('Statistic').fill('nfs.ops[client]');
    await word('Limit').fill('soon');
    await dialog.getByRole('alert').filter({ hasText: 'whole number' }).waitFor();
    await word('Limit').fill('1000000');
    await word('For').fill('5 min');
    await word('Days').selectOption('weekdays');
    await dialog.getByRole('button', { name: 'Create the alert' }).click();
    await page.getByRole('heading', { level: 1, name: 'writes' }).waitFor();
    assert.equal(await valueOf(page, `${ALERTS}/writes`, 'for'), 300);
    assert.match(await valueOf(page, `${ALERTS}/writes`, 'sentence'), /of any one client is above 1.000.000 ops\/s for 5 min, on weekdays,/);
  });
  await t.test('its words are changed like any setting, and what is wrong is said in it', async () => {
    const sentence = page.getByRole('group', { name: 'The alert as a sentence' });
    await sentence.getByLabel('Statistic', { exact: true }).fill('nfs.opps');
    await sentence.getByRole('alert').filter({ hasText: 'opps' }).waitFor();
    await page.getByRole('button', { name: 'Abort' }).click();
    await sentence.getByLabel('Condition', { exact: true }).selectOption('below');
    await sentence.getByLabel('Statistic', { exact: true }).fill('nfs.ops');
    await page.getByRole('button', { name: 'Commit', exact: true }).click();
    await page.getByRole('status').filter({ hasText: 'Committed 2 changes' }).waitFor();
    assert.match(await valueOf(page, `${ALERTS}/writes`, 'sentence'), /NFS operations per second is below/);
  });
  await t.test('a wrong word blocks no commit after its page was left', async () => {
    const pending = page.getByRole('region', { name: /pending/ });
    const sentence = page.getByRole('group', { name: 'The alert as a sentence' });
    await sentence.getByLabel('For', { exact: true }).fill('9 min');
    await pending.waitFor();
    await sentence.getByLabel('For', { exact: true }).fill('9 sun');
    await sentence.getByRole('alert').filter({ hasText: 'duration' }).waitFor();
    await step(page, ALERTS);
    await page.getByRole('heading', { level: 1, name: 'Alerts', exact: true }).waitFor();
    await pending.waitFor({ state: 'detached' });
  });
  await t.test('the status page says that something is watched', async () => {
    await page.goto(where.url);
    const section = page.getByRole('region', { name: 'Alerts' });
    await section.getByText(/None has fired|alert writes/).first().waitFor();
  });
  await worksheets(t, { page, where });
}

async function worksheets(t, { page, where }) {
  await t.test('a worksheet is saved and opened again', async () => {
    await page.goto(`${where.url}/analytics?w=cpu.utilization[mode]!line&w=nfs.ops[client]&span=3600`);
    const tools = page.getByRole('toolbar', { name: 'Worksheet' });
    await tools.getByRole('button', { name: 'Save', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Save this worksheet' });
    await dialog.getByLabel('Name').fill('mine');
    await dialog.getByLabel('Title').fill('Who and what it costs');
    await dialog.getByRole('button', { name: 'Save the worksheet' }).click();
    await tools.getByRole('status').filter({ hasText: 'Saved as mine' }).waitFor();
    assert.deepEqual(await valueOf(page, `${WORKSHEETS}/mine`, 'panels'), ['cpu.utilization[mode]!line', 'nfs.ops[client]']);
    await page.goto(`${where.url}/analytics?w=`);
    await tools.getByRole('button', { name: 'Open', exact: true }).click();
    await page.getByRole('dialog', { name: 'Saved worksheets' }).getByRole('button', { name: 'Who and what it costs' }).click();
    await page.waitForURL((url) => decodeURIComponent(url.search) === '?w=cpu.utilization[mode]!line&w=nfs.ops[client]&span=3600');
  });
  await t.test('it is deleted on its page', async () => {
    await page.goto(`${where.url}${WORKSHEETS}/mine`);
    await page.getByRole('link', { name: 'Open the worksheet' }).waitFor();
    await page.getByRole('button', { name: 'Destroy' }).click();
    await page.getByRole('dialog', { name: 'Destroy the worksheet mine?' }).getByRole('button', { name: 'Destroy' }).click();
    await page.getByRole('heading', { level: 1, name: 'Worksheets', exact: true }).waitFor();
    assert.equal(await nodeOf(page, `${WORKSHEETS}/mine`), null);
  });
}
