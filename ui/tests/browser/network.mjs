// The page of the network, by role and label. Changes are made with the mock only: a real server has
// the network of this machine (move.mjs has one in a namespace).
import assert from 'node:assert/strict';

const NETWORK = '/configuration/network';
/** An open page shows a partition that the subnet manager gives, or has taken back, within this time. */
const OFFER_MS = 5000;
/** The clock of a page stops so much later: never before its own time. */
const PAUSE_MS = 60_000;
const bar = (page) => page.getByRole('region', { name: 'Unconfirmed change' });
const part = (page, name) => page.getByRole('region', { name, exact: true });

async function open(page, where, path = NETWORK, heading = 'Network') {
  await page.goto(where.url + path);
  await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
}

export async function network(t, { page, where }) {
  await page.goto(where.url);
  await page.getByRole('navigation', { name: 'Places' }).waitFor();
  if (!(await page.evaluate(async (path) => (await fetch(`/api/v1/nodes${path}`)).ok, NETWORK))) return t.skip('this server has no network');
  await t.test('one page has devices, datalinks, interfaces, routes and names', async () => {
    await open(page, where);
    await part(page, 'Devices').getByRole('listitem').filter({ hasText: /lo.*loopback/s }).waitFor();
    for (const name of ['Datalinks', 'Interfaces', 'Routes']) await part(page, name).getByRole('listitem').first().waitFor();
    await part(page, 'Names').getByText('Host name').waitFor();
    await part(page, 'Devices').getByRole('link', { name: 'lo', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'lo', exact: true }).waitFor();
  });
  if (where.mock !== null) await changes(t, { page, where });
}

async function change(page, where, mtu) {
  await open(page, where, `${NETWORK}/datalinks/trunk0`, 'trunk0');
  await page.getByLabel('MTU', { exact: true }).fill(String(mtu));
  await page.getByRole('button', { name: 'Commit', exact: true }).click();
  await bar(page).waitFor();
}

async function changes(t, { page, where }) {
  await t.test('a device of another manager has how to release it', async () => {
    await open(page, where);
    await part(page, 'Devices').getByText('Managed by NetworkManager').waitFor();
    await part(page, 'Devices').getByText('nmcli device set eth2 managed no').waitFor();
    await part(page, 'Datalinks').getByText('0x8001 (full) on ib0: port mlx4_0-1').waitFor();
  });
  await t.test('an open page follows the partitions that the subnet manager gives and takes back', async () => {
    // A context with a clock of its own: how busy the machine is does not count.
    const context = await page.context().browser().newContext({ storageState: await page.context().storageState() });
    const own = await context.newPage();
    await own.clock.install();
    await open(own, where);
    const offered = own.getByRole('list', { name: 'Offered partitions' }).getByRole('listitem');
    await offered.filter({ hasText: '0x8001' }).waitFor();
    await own.clock.pauseAt(Date.now() + PAUSE_MS);
    where.mock.offers(['0x8001 (full) on ib0: port mlx4_0-1', '0x8002 (limited) on ib0: port mlx4_0-1']);
    await own.clock.runFor(OFFER_MS);
    await offered.filter({ hasText: '0x8002 (limited)' }).waitFor();
    where.mock.offers([]);
    await own.clock.runFor(OFFER_MS);
    await offered.first().waitFor({ state: 'detached' });
    await context.close();
  });
  await t.test('a change has its time, and is kept by Confirm', async () => {
    await change(page, where, 1500);
    assert.match(await bar(page).getByRole('timer').textContent(), /^(1 min|\d+ s)$/);
    await bar(page).getByText('1 step').click();
    await bar(page).getByText('change mtu of datalinks/trunk0').waitFor();
    await bar(page).getByRole('button', { name: 'Confirm' }).click();
    await page.getByRole('status').filter({ hasText: 'The change is confirmed' }).waitFor();
    await bar(page).waitFor({ state: 'detached' });
  });
  await t.test('a further change continues it, and Revert restores the state before both', async () => {
    await change(page, where, 4000);
    await page.getByLabel('MTU', { exact: true }).fill('5000');
    await page.getByRole('button', { name: 'Commit', exact: true }).click();
    await bar(page).getByText('2 steps').waitFor();
    await open(page, where);
    await bar(page).getByRole('button', { name: 'Revert' }).click();
    await bar(page).waitFor({ state: 'detached' });
    await part(page, 'Datalinks').getByRole('listitem').filter({ hasText: 'LACP' }).getByText('MTU 1500').waitFor();
  });
  await t.test('an unconfirmed one is gone when its time is over', async () => {
    where.mock.elsewhere([{ set: NETWORK, property: 'confirm_within', value: 5 }]);
    await change(page, where, 4000);
    await bar(page).waitFor({ state: 'detached' });
    await page.waitForFunction(() => [...document.querySelectorAll('input')].some((one) => one.value === '1500'));
  });
  await t.test('a datalink is made on the page, and its change waits', async () => {
    await open(page, where);
    await page.getByRole('button', { name: 'New datalink' }).click();
    const form = page.getByRole('dialog', { name: 'New datalink' });
    await form.getByLabel('Name', { exact: true }).fill('trunk0.20');
    await form.getByLabel('Class', { exact: true }).selectOption('vlan');
    await form.getByLabel('Link', { exact: true }).fill('trunk0');
    await form.getByLabel('VLAN id', { exact: true }).fill('20');
    await form.getByRole('button', { name: 'Create the datalink' }).click();
    await page.getByRole('heading', { level: 1, name: 'trunk0.20', exact: true }).waitFor();
    await bar(page).getByRole('button', { name: 'Confirm' }).click();
    await bar(page).waitFor({ state: 'detached' });
  });
  await t.test('a commit that moves the administration shows where, also without an answer', async () => {
    await open(page, where);
    await page.getByLabel('Administration address', { exact: true }).fill('192.0.2.11');
    await page.getByRole('region', { name: /pending/ }).waitFor();
    let over = () => {};
    await page.route('**/api/v1/changes', (route) => {
      const { dry_run: dry } = route.request().postDataJSON();
      if (dry) return route.continue();
      // The address is gone: nothing comes back.
      return new Promise((done) => { over = done; });
    });
    await page.getByRole('button', { name: 'Commit', exact: true }).click();
    const link = bar(page).getByRole('link');
    await link.waitFor();
    assert.equal(await link.getAttribute('href'), `${where.url.replace('127.0.0.1', '192.0.2.11')}${NETWORK}`);
    over();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.reload();
  });
  await t.test('without a helper each form has the reason', async () => {
    const reason = 'the server is not root and no helper runs';
    where.mock.network(reason);
    await open(page, where);
    await page.getByRole('status').filter({ hasText: 'Read-only.' }).getByText(/no helper runs/).waitFor();
    for (const [path, heading] of [['/datalinks', 'Datalinks'], ['/datalinks/eth0', 'eth0'], ['/interfaces/admin', 'admin'], ['/dns', 'DNS'], ['/identity', 'Identity'], ['/routes', 'Routes']]) {
      await open(page, where, NETWORK + path, heading);
      await page.getByText(/no helper runs/).first().waitFor();
      const fields = page.locator('main input:not([type=search]), main select');
      assert.ok((await fields.evaluateAll((all) => all.every((one) => one.disabled))), path);
    }
    where.mock.network(null);
    where.mock.reset();
  });
}
