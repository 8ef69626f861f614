// The pages of pools, by role and label. With the mock all of it; a real server shows what its machine has.
import assert from 'node:assert/strict';

const part = (page, name) => page.getByRole('region', { name, exact: true });

async function open(page, where, path, heading) {
  await page.goto(where.url + path);
  await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
}

export async function pools(t, { page, where }) {
  await t.test('pools are listed, or the reason why there can be none', async () => {
    await open(page, where, '/storage/pools', 'Pools');
    await page.getByRole('list', { name: 'Pools' }).getByRole('listitem').first().waitFor();
  });
  if (where.mock === null) return;
  await t.test('a lost disk is replaced from the page alone', async () => {
    await page.getByRole('list', { name: 'Pools' }).getByRole('link', { name: 'tank' }).click();
    await page.getByText('The disk serial number Z1Z00002 is missing: connect it, or replace it.').waitFor();
    await part(page, 'Disks of the pool').getByText('missing').waitFor();
    await page.getByRole('button', { name: 'Replace Z1Z00002' }).click();
    const dialog = page.getByRole('dialog');
    assert.equal(await dialog.getByRole('button', { name: 'Replace' }).isEnabled(), false);
    await dialog.getByRole('radio', { name: /Z1Z00003/ }).check();
    await dialog.getByRole('button', { name: 'Replace' }).click();
    await page.getByRole('progressbar', { name: 'Task' }).waitFor();
    await part(page, 'Disks of the pool').getByText('Z1Z00003').first().waitFor({ timeout: 30_000 });
    await page.getByRole('progressbar', { name: 'Task' }).waitFor({ state: 'detached', timeout: 30_000 });
  });
  await t.test('a mirror is created, with the capacity of each profile', async () => {
    await open(page, where, '/storage/pools', 'Pools');
    await page.getByRole('button', { name: 'Create pool' }).click();
    const dialog = page.getByRole('dialog', { name: 'Create pool' });
    await dialog.getByLabel('Name', { exact: true }).fill('new');
    await dialog.getByText('needs 2 disks').waitFor();
    await dialog.getByRole('checkbox').first().check();
    assert.equal(await dialog.getByRole('button', { name: 'Create' }).isEnabled(), false);
    await dialog.getByRole('radio', { name: /Stripe/ }).check();
    await dialog.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('list', { name: 'Pools' }).getByRole('link', { name: 'new', exact: true }).waitFor();
  });
  await t.test('a pool on the disks is imported', async () => {
    await part(page, 'To import').getByRole('button', { name: 'Import' }).click();
    await page.getByRole('list', { name: 'Pools' }).getByRole('link', { name: 'archive' }).waitFor();
  });
}
