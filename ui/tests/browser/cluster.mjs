// The pages of the cluster, by role and label. A real server without a head says that it is in no cluster.
import assert from 'node:assert/strict';

const part = (page, name) => page.getByRole('region', { name, exact: true });

export async function cluster(t, { page, where }) {
  await page.goto(`${where.url}/cluster`);
  await page.getByRole('heading', { level: 1, name: 'Cluster', exact: true }).waitFor();
  if (where.mock === null) {
    await t.test('the page shows the cluster, or that there is none', async () => {
      await part(page, 'Resources').or(page.getByText('This server is in no cluster:')).first().waitFor();
    });
    return;
  }
  await t.test('each resource has its owner, its state and its last takeover', async () => {
    const resources = part(page, 'Resources').getByRole('listitem');
    await resources.first().waitFor();
    assert.equal(await resources.count(), 3);
    assert.match(await resources.nth(0).innerText(), /accounts[^]*served[^]*owner right · preferred owner left · 10\.0\.0\.100\/24[^]*left → right · lease over · 502 ms/);
    assert.match(await resources.nth(2).innerText(), /scratch[^]*no owner[^]*The lock is held by left\./);
    assert.match(await part(page, 'Heads').getByRole('listitem').nth(1).innerText(), /right[^]*member[^]*this machine · owns accounts, projects/);
  });
  await t.test('a resource has a page with the phases of its last takeover, and is moved from it', async () => {
    await part(page, 'Resources').getByRole('link', { name: 'accounts', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'accounts', exact: true }).waitFor();
    const phases = page.getByRole('table', { name: 'Phases' }).getByRole('row');
    await phases.first().waitFor();
    assert.deepEqual(await phases.allInnerTexts().then((rows) => rows.map((row) => row.replace(/\s+/g, ' ').trim())), ['Hand-over 0 ms', 'Claim 31 ms', 'Fence and lock 57 ms', 'Start 412 ms', 'Address 2 ms']);
    await page.getByRole('button', { name: 'Take over' }).waitFor();
    await page.getByRole('button', { name: 'Fail back' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Fail back' }).click();
    await part(page, 'Last takeover').getByText('right → left · requested · 714 ms').waitFor();
  });
}
