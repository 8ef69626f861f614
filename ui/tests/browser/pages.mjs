// Every page that is made from the tree, found by asking the server for it.

const ask = (page, path) => page.evaluate(async (of) => {
  const answer = await fetch(`/api/v1${of}`);
  return answer.ok ? answer.json() : null;
}, path);

/** The nodes that the server declares, with `most` items of each kind at most: the path, the address
 * of its page, and the noun of what can be made there, if anything can. */
export async function nodesOf(page, most = () => 1) {
  const found = [];
  const walk = async (context, path) => {
    const address = path.split('/').map(encodeURIComponent).join('/');
    const { items } = context;
    const made = items !== null && items.origin.toLowerCase() !== 'live';
    found.push({ path, address, noun: made ? items.noun : null });
    for (const child of context.children) await walk(child, `${path}/${child.name}`);
    if (items === null) return;
    const names = ((await ask(page, `/nodes${address}`))?.items ?? []).map((item) => item.name ?? item);
    for (const name of names.slice(0, most(path))) await walk(items.context, `${path}/${name}`);
  };
  // The status has a page of its own.
  for (const child of (await ask(page, '/tree')).children) if (child.name !== 'status') await walk(child, `/${child.name}`);
  return found;
}

/** Goes to an address without loading the program anew, as a link does. */
export const step = (page, to) => page.evaluate((address) => {
  history.pushState(null, '', address);
  dispatchEvent(new PopStateEvent('popstate'));
}, to);

/**
 * Holds the next request to `url` that `is` one of those: `arrived` resolves when it is held;
 * `release` lets it `end`, and waits until the page has noticed.
 */
export async function hold(page, url, { is = () => true, end = (route) => route.continue() } = {}) {
  let release;
  let arrive;
  let isHeld = false;
  const released = new Promise((resolve) => { release = resolve; });
  const arrived = new Promise((resolve) => { arrive = resolve; });
  const handler = async (route) => {
    if (isHeld || !is(route.request())) return route.fallback();
    isHeld = true;
    arrive(route.request());
    await released;
    return end(route);
  };
  await page.route(url, handler);
  return {
    arrived,
    release: async () => {
      const request = await arrived;
      release();
      await (await request.response())?.finished();
      // The response to a later request of the page comes after it.
      await ask(page, '/session');
      // Not before: a page without handlers sends what is held.
      await page.unroute(url, handler);
    },
  };
}

/** Waits until nothing on the page is still being read. */
export const settled = (page) => page.waitForFunction(() => ![...document.querySelectorAll('[role=status]')].some(({ textContent }) => textContent === 'Loading'));
