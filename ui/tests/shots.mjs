// Screenshots of every page, desktop and phone, light and dark, to be opened and looked at. Against
// the mock, or against BASE_URL with whatever load is on it; the busiest clients and the busiest file
// are the ones that are drilled into.
//   npm run shots [DIRECTORY]        default /tmp/ui-shots
//   SHOTS=status,analytics           only these pages
//   SIZE=desktop SCHEME=light        only this size, only this scheme
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { launch, target } from './browser/chromium.mjs';
import { nodesOf, settled } from './browser/pages.mjs';

const OUT = process.argv[2] ?? '/tmp/ui-shots';
const SIZES = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
/** What a page has is there within this time (ms). */
const PATIENCE = 8000;
const only = (name, all) => (process.env[name] ? process.env[name].split(',') : all);

async function signIn(page, { url, user, password }) {
  await page.goto(`${url}/login`);
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Places' }).waitFor();
}

/** The keys of the elements that did most in the last minute, ready for a URL. */
async function busiest(page, stat) {
  const keys = await page.evaluate(async (id) => {
    const answer = await fetch(`/api/v1/analytics/data?stat=${encodeURIComponent(id)}&from=-60&to=-1`);
    return answer.ok ? ((await answer.json()).rows ?? []).map((row) => row.key) : [];
  }, stat);
  return keys.map(encodeURIComponent);
}

/** Waits for data, not for time: every list beside a graph has a row. */
async function drawn(page) {
  for (const panel of await page.getByRole('article').all()) await panel.locator('.row').first().waitFor({ timeout: 10_000 });
  await page.waitForTimeout(1200);
}

const open = async (page, where, sheet) => {
  await page.goto(`${where.url}/analytics${sheet}`);
  await drawn(page);
};

/** A page made from the tree, once its heading and all that it reads are there. */
async function node(page, { url }, path, heading) {
  await page.goto(url + path);
  await page.getByRole('heading', { level: 1, name: heading }).waitFor();
  await settled(page);
}

const PAGES = {
  login: async (page, { url }) => {
    await page.context().clearCookies();
    await page.goto(`${url}/login`);
    await page.getByLabel('User').waitFor();
  },
  status: async (page, { url }) => {
    await page.goto(url);
    await page.locator('[data-live="rate"]').first().waitFor({ timeout: 5000 }).catch(() => undefined);
    // The latencies per client come with their own stream, two seconds later.
    await page.waitForFunction(() => !document.querySelector('section[aria-labelledby="clients"] tbody')?.textContent?.includes('–'));
  },
  analytics: async (page, where) => {
    const clients = await busiest(page, 'nfs3.ops[client]');
    await open(page, where, `?w=nfs3.ops[client]!hl=${clients.slice(0, 5).join()}&w=nfs3.ops[latency]&w=cpu.utilization[mode]&span=180`);
    await page.getByRole('img').first().hover({ position: { x: 180, y: 60 } });
  },
  chain: async (page, where) => {
    const [client] = await busiest(page, 'nfs3.ops[op=read][client]');
    const [file] = await busiest(page, `nfs3.ops[op=read][client=${client}][file]`);
    const chain = `nfs3.ops[op=read][client=${client}]`;
    await open(page, where, `?w=${chain}[file]!hl=${file ?? ''}&w=${chain}[latency]&w=nfs3.ops[user]&w=nfs3.bytes[op]!line`);
  },
  machine: async (page, where) => {
    await open(page, where, '?w=cpu.utilization[mode]&w=nic.kilobytes[device]&w=io.bytes[op]&w=mem.bytes[use]');
  },
  long: (page, where) => open(page, where, '?w=nfs3.ops[client]&w=nfs3.ops[latency]&w=nfs3.ops[op]&span=3600'),
  empty: (page, where) => page.goto(`${where.url}/analytics?w=`),
  add: async (page, where) => {
    await page.goto(`${where.url}/analytics`);
    await page.getByRole('button', { name: 'Add statistic' }).click();
  },
  drill: async (page, where) => {
    await open(page, where, '?w=nfs3.ops[client]&w=nfs3.ops[latency]');
    await page.getByRole('article').first().locator('.row').first().click({ button: 'right' });
    await page.getByRole('menu').waitFor();
  },
  nfs: async (page, { url }) => {
    await page.goto(`${url}/nfs`);
    await page.getByRole('table', { name: 'NFS clients' }).waitFor();
  },
  webdav: async (page, { url }) => {
    await page.goto(`${url}/webdav`);
    await page.getByRole('heading', { level: 1, name: 'WebDAV locks' }).waitFor();
    await page.getByRole('table').or(page.getByText('No locks.')).waitFor();
  },
  'webdav-release': async (page, { url }) => {
    await page.goto(`${url}/webdav`);
    await page.getByRole('button', { name: /^Release/ }).first().click();
    await page.getByRole('dialog').waitFor();
  },
  'nfs-one': async (page, { url }) => {
    await page.goto(`${url}/nfs`);
    await page.getByRole('table', { name: 'NFS clients' }).getByRole('link').nth(1).click();
    await page.getByRole('region', { name: 'Locks' }).waitFor();
  },
  'nfs-expire': async (page, { url }) => {
    await page.goto(`${url}/nfs`);
    await page.getByRole('table', { name: 'NFS clients' }).getByRole('link').first().click();
    await page.getByRole('button', { name: 'Expire', exact: true }).click();
    await page.getByRole('dialog').waitFor();
  },
  pending: async (page, where) => {
    await node(page, where, '/configuration/services/nfs', 'NFS');
    await page.getByLabel('Delegations', { exact: true }).uncheck();
    await page.getByLabel('Lease', { exact: true }).fill('5 h');
    await page.getByRole('region', { name: /pending/ }).waitFor();
  },
  'service-disable': async (page, where) => {
    await node(page, where, '/configuration/services/nfs', 'NFS');
    await page.getByRole('button', { name: 'Disable', exact: true }).click();
    await page.getByRole('dialog', { name: 'Disable NFS?' }).waitFor();
  },
  history: async (page, where) => {
    await node(page, where, '/configuration?view=history', 'History');
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.getByRole('region', { name: 'Differences' }).waitFor();
  },
  restore: async (page, where) => {
    await node(page, where, '/configuration?view=history', 'History');
    await page.getByRole('button', { name: 'Restore' }).last().click();
    await page.getByRole('dialog').getByRole('table').waitFor();
  },
  file: (page, where) => node(page, where, '/configuration?view=file', 'Export and import'),
  luns: (page, where) => node(page, where, '/shares/default/luns', 'LUNs'),
  san: (page, where) => node(page, where, '/configuration/san', 'SAN'),
  shares: async (page, where) => {
    await node(page, where, '/shares', 'Shares');
    await page.getByRole('table').first().waitFor();
  },
  'share-destroy': async (page, where) => {
    await node(page, where, '/shares', 'Shares');
    await page.getByRole('table').first().getByRole('rowheader').first().getByRole('link').click();
    await page.getByRole('region', { name: 'Settings' }).waitFor();
    await page.getByRole('button', { name: 'Destroy' }).click();
    await page.getByRole('dialog').waitFor();
  },
  log: async (page, where) => {
    await node(page, where, '/maintenance/logs', /Logs?/);
    await page.getByRole('log').locator('time').first().waitFor({ timeout: 3000 }).catch(() => undefined);
  },
  audit: async (page, where) => {
    await node(page, where, '/maintenance?view=audit', 'Audit');
    await page.getByRole('table').waitFor();
  },
  lab: async (page, where) => {
    await node(page, where, '/lab', 'Lab');
    await page.getByRole('list', { name: 'Jobs' }).getByRole('button', { name: 'Run' }).first().waitFor();
  },
  'lab-run-form': async (page, where) => {
    await PAGES.lab(page, where);
    await page.getByRole('list', { name: 'Jobs' }).getByRole('button', { name: 'Run' }).first().click();
    await page.getByRole('dialog').waitFor();
  },
  'lab-run': (page, where) => run(page, where, 'done'),
  'lab-run-now': (page, where) => run(page, where, 'running'),
  'lab-compare': async (page, where) => {
    await PAGES.lab(page, where);
    const boxes = page.getByRole('checkbox', { name: /^Compare r/ }).and(page.locator(':enabled'));
    await boxes.nth(0).check();
    await boxes.nth(1).check();
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.getByRole('table', { name: 'Comparison' }).waitFor();
  },
  'network-change': async (page, where) => {
    await node(page, where, '/configuration/network/datalinks/trunk0', 'trunk0');
    await page.getByLabel('MTU', { exact: true }).fill(String(1501 + Math.floor(Math.random() * 7000)));
    await page.getByRole('button', { name: 'Commit', exact: true }).click();
    await page.getByRole('region', { name: 'Unconfirmed change' }).waitFor();
    await node(page, where, '/configuration/network', 'Network');
    await page.getByRole('region', { name: 'Unconfirmed change' }).waitFor();
  },
  'network-read-only': async (page, where) => {
    where.mock?.network('the server is not root and no helper runs: start the helper (systemctl enable --now plimsoll-host), or start the server as root');
    await node(page, where, '/configuration/network', 'Network');
    await page.getByText('Read-only.').waitFor();
    where.mock?.network(null);
  },
  fabric: (page, where) => node(page, where, '/maintenance/fabric', 'Fabric'),
  hardware: (page, where) => node(page, where, '/maintenance/hardware', 'Hardware'),
  'hardware-slot': (page, where) => node(page, where, '/maintenance/hardware/slots/PCIE3', 'PCIE3'),
  'hardware-disk': (page, where) => node(page, where, '/maintenance/hardware/disks/EXAMPLE-ST4000NM0023-Z1Z00001', 'EXAMPLE-ST4000NM0023-Z1Z00001'),
  pools: (page, where) => node(page, where, '/storage/pools', 'Pools'),
  pool: (page, where) => node(page, where, '/storage/pools/tank', 'tank'),
  'pool-create': async (page, where) => {
    await node(page, where, '/storage/pools', 'Pools');
    await page.getByRole('button', { name: 'Create pool' }).click();
    const dialog = page.getByRole('dialog', { name: 'Create pool' });
    for (const box of await dialog.getByRole('checkbox').all()) await box.check();
  },
  'pool-replace': async (page, where) => {
    await node(page, where, '/storage/pools/tank', 'tank');
    await page.getByRole('button', { name: 'Replace Z1Z00002' }).click();
    await page.getByRole('dialog').getByRole('radio').first().check();
  },
  cluster: (page, where) => node(page, where, '/cluster', 'Cluster'),
  'cluster-resource': (page, where) => node(page, where, '/cluster/resources/accounts', 'accounts'),
  'cluster-heads': (page, where) => node(page, where, '/cluster/heads', 'Heads'),
  problems: (page, where) => node(page, where, '/maintenance/problems', 'Problems'),
  unknown: async (page, { url }) => {
    await page.goto(`${url}/nowhere`);
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
  },
  gone: async (page, where) => {
    await node(page, where, '/configuration/services/nfs', 'NFS');
    await page.getByLabel('Lease', { exact: true }).fill('2 min');
    await page.route('**/api/**', (route) => route.abort());
    await page.getByText('The server does not respond').first().waitFor();
    await page.getByRole('button', { name: 'Commit', exact: true }).click({ timeout: 2000 }).catch(() => undefined);
  },
  'status-gone': async (page, where) => {
    await PAGES.status(page, where);
    await page.route('**/api/**', (route) => route.abort());
    await page.getByRole('heading', { name: 'The server does not respond' }).waitFor();
  },
  'start-gone': async (page, { url }) => {
    await page.route('**/api/**', (route) => route.abort());
    await page.goto(url);
    await page.getByRole('heading', { name: /^Could not/ }).waitFor();
  },
  slow: async (page, where) => {
    await node(page, where, '/configuration/users', 'Users');
    await page.route('**/api/**', (route) => setTimeout(() => void route.continue().catch(() => undefined), 8000));
    await page.getByText('Waiting for the server').waitFor();
  },
  'not-permitted': async (page, { url }) => {
    await page.route('**/api/v1/nodes/configuration*', (route) => route.fulfill({ status: 403, json: { error: { tried: 'read /configuration', failed: 'no role has configuration:read', hint: 'Ask an administrator.' } } }));
    await page.goto(`${url}/configuration`);
    await page.getByRole('heading', { name: 'You do not have access to this page' }).waitFor();
  },
  keys: async (page, { url }) => {
    await page.goto(url);
    await page.getByRole('navigation', { name: 'Places' }).waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  },
  'search-setting': async (page, { url }) => {
    await page.goto(url);
    await page.getByRole('navigation', { name: 'Places' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('lease');
    await page.getByRole('option').first().waitFor();
  },
  search: async (page, { url }) => {
    await page.goto(url);
    await page.getByRole('navigation', { name: 'Places' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('lat');
  },
};

/** The page of a run in this state. */
async function run(page, where, state) {
  await PAGES.lab(page, where);
  const row = page.getByRole('table', { name: 'Runs', exact: true }).getByRole('row').filter({ has: page.getByRole('cell', { name: state, exact: true }) });
  await row.first().getByRole('link', { name: /^r\d+$/ }).click({ timeout: 2000 });
  await page.getByRole('table', { name: /^Steps of/ }).waitFor();
}

/** Every node that the server declares, one item of each kind, and the question that makes another. */
async function declared(page) {
  const found = {};
  // Certificates differ from one another by where they come from.
  for (const { path, address, noun } of await nodesOf(page, (of) => (of.endsWith('/certificates') ? 4 : 1))) {
    const name = path.slice(1).replaceAll('/', '-');
    found[name] = async (one, { url }) => {
      await one.goto(url + address);
      await one.getByRole('heading', { level: 1 }).first().waitFor();
      await settled(one);
    };
    if (noun === null) continue;
    found[`${name}-new`] = async (one, { url }) => {
      await one.goto(url + address);
      await one.getByRole('button', { name: /^New / }).and(one.locator(':enabled')).first().click();
      await one.getByRole('dialog').waitFor();
    };
  }
  return found;
}

async function all(page, where, name) {
  // What is pending on one page is given up for the next one.
  page.on('dialog', (question) => void question.accept().catch(() => undefined));
  await signIn(page, where);
  const pages = { ...(await declared(page)), ...PAGES };
  // The sign-in page last: it is looked at signed out.
  const wanted = only('SHOTS', Object.keys(pages)).sort((a, b) => (a === 'login' ? 1 : 0) - (b === 'login' ? 1 : 0));
  for (const one of wanted) {
    try {
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await pages[one](page, where);
    } catch (error) {
      console.log(`${one}-${name}: ${String(error).split('\n')[0]}`);
    }
    // A question above the page is looked at where it stands; else the page as a whole.
    const fullPage = (await page.locator('dialog[open]').count()) === 0;
    await page.screenshot({ path: join(OUT, `${one}-${name}.png`), fullPage });
  }
}

const browser = await launch();
if (browser !== null) {
  await mkdir(OUT, { recursive: true });
  const where = await target();
  for (const size of only('SIZE', Object.keys(SIZES))) {
    for (const colorScheme of only('SCHEME', ['light', 'dark'])) {
      const context = await browser.newContext({ viewport: SIZES[size], colorScheme, ignoreHTTPSErrors: true, hasTouch: size === 'phone' });
      context.setDefaultTimeout(PATIENCE);
      await all(await context.newPage(), where, `${size}-${colorScheme}`);
      await context.close();
    }
  }
  await browser.close();
  where.mock?.close();
  console.log(`Screenshots are in ${OUT}`);
}
