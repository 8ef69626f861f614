// The page of the InfiniBand fabric, by role and label. A real server shows why it reads none, unless its machine has one.
import assert from 'node:assert/strict';

const part = (page, name) => page.getByRole('region', { name, exact: true });

export async function fabric(t, { page, where }) {
  await page.goto(`${where.url}/maintenance/fabric`);
  await page.getByRole('heading', { level: 1, name: 'Fabric', exact: true }).waitFor();
  if (where.mock === null) {
    await t.test('the page shows a fabric, or why there is none', async () => {
      await part(page, 'Ports').or(page.getByText('No fabric is read.')).first().waitFor();
    });
    return;
  }
  await t.test('problems come first, each with its impact and a remedy', async () => {
    const problems = part(page, 'Problems of the fabric').getByRole('listitem');
    await problems.first().waitFor();
    assert.equal(await problems.count(), 2);
    await problems.filter({ hasText: 'runs at 1x QDR; both ends support 4x QDR' }).waitFor();
  });
  await t.test('a narrow link is first and marked', async () => {
    const first = part(page, 'Links').getByRole('listitem').first();
    assert.match(await first.innerText(), /host3:1 – sw1:3[^]*Below maximum: 1x of 4x · QDR of QDR/);
    assert.equal(await part(page, 'Links').getByText('Below maximum').count(), 1);
  });
  await t.test('a port with errors is first, with its rates; ports without a link are left out', async () => {
    const ports = part(page, 'Ports').getByRole('listitem');
    assert.match(await ports.first().innerText(), /host5:1[^]*in [^]*B\/s · out [^]*B\/s[^]*Errors: symbol: 214, link recovery: 1/);
    assert.equal(await ports.filter({ hasText: 'host1:2' }).count(), 0);
    await part(page, 'Nodes').getByText('switch · LID 1001 · 5 of 36 ports linked').waitFor();
  });
  await t.test('a port has a page with its counters', async () => {
    await part(page, 'Ports').getByRole('link', { name: 'host5:1', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'host5:1', exact: true }).waitFor();
    await page.getByText('symbol: 214').waitFor();
    await page.getByText('sw2:5', { exact: true }).first().waitFor();
  });
}
