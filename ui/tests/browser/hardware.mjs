// The pages of the hardware and its problems, by role and label. With the mock all of it; a real server
// shows what its machine has.
import assert from 'node:assert/strict';

const HARDWARE = '/maintenance/hardware';
const part = (page, name) => page.getByRole('region', { name, exact: true });

async function open(page, where, path, heading) {
  await page.goto(where.url + path);
  await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
}

export async function hardware(t, { page, where }) {
  await page.goto(where.url);
  await page.getByRole('navigation', { name: 'Places' }).waitFor();
  await t.test('one page has slots, disks, CPUs, memory and sensors', async () => {
    await open(page, where, HARDWARE, 'Hardware');
    for (const name of ['Slots', 'Disks', 'CPUs', 'Memory', 'Sensors']) await part(page, name).getByRole('listitem').first().waitFor();
  });
  if (where.mock === null) return;
  await t.test('a slot has its link and the ports of its adapter', async () => {
    await part(page, 'Slots').getByRole('link', { name: 'PCIE3', exact: true }).click();
    await page.getByText('The link runs at x4 of x8 at 5.0 GT/s.').waitFor();
    await part(page, 'Port mlx4_1-1').getByText('0002:c903:000b:0201').waitFor();
    await part(page, 'Port mlx4_1-2').getByText('down').waitFor();
    await page.getByText('2.9.1000').waitFor();
  });
  await t.test('a disk has its state, its report and its bay', async () => {
    await open(page, where, `${HARDWARE}/disks/EXAMPLE-ST4000NM0023-Z1Z00001`, 'EXAMPLE-ST4000NM0023-Z1Z00001');
    await page.getByText('The disk reports its own failure: failure prediction threshold exceeded.').waitFor();
    await page.getByText('enclosure 0:0:24:0, Slot 02').waitFor();
    await page.getByRole('link', { name: 'tank', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'tank', exact: true }).waitFor();
  });
  await t.test('problems are listed by urgency, and one ends when it is marked', async () => {
    await page.goto(where.url);
    await page.getByRole('link', { name: /problems? of this machine/ }).click();
    const list = page.getByRole('list', { name: 'Problems' });
    await list.getByRole('listitem').first().getByText('major').waitFor();
    const absent = list.getByRole('listitem').filter({ hasText: 'is absent' });
    await absent.getByRole('button', { name: 'Mark repaired' }).click();
    await absent.waitFor({ state: 'detached' });
    assert.equal(await list.getByRole('listitem').count(), 2);
  });
}
