// A stand-in for the appliance: serves dist/ with the real security headers and answers the API
// with invented data (mock/data.mjs). User `admin`, password `plimsoll`.
//   node mock/server.mjs [PORT]        default 26001
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { catalogue, dataOf, parseStat } from './data.mjs';
import { nfs } from './nfs.mjs';
import { webdav } from './webdav.mjs';
import { answer as treeAnswer, logLine, Tree } from './tree.mjs';

const DIST = fileURLToPath(new URL('../dist/', import.meta.url));
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const COOKIE = 'plimsoll_session=mock';
const started = Date.now() / 1000 - 93_784;
const streams = new Set();
let tree = new Tree();
/** Shares beyond the first three. */
let more = [];
/** Who is signed in, and what that user may do; tests change it. */
const WHO = { user: 'admin', may: true, hidden: [] };
let who = { ...WHO };
/** Seconds during which the mock pretends not to have measured. */
let gap = [Math.floor(Date.now() / 1000) - 32, Math.floor(Date.now() / 1000) - 27];

const now = () => Date.now() / 1000;
const gaps = (t) => t >= gap[0] && t < gap[1];

const status = () => ({
  name: 'vault', version: '0.1.0', started, now: now(), pid: 4711, healthy: true, problems: [], machine_problems: Object.keys(tree.hardware.problems).length,
  acting_as: { privileged: true, user: 'root', note: "callers' uids decide" },
  shares: [
    ['projects', 4e12, 1.31e12, false], ['home', 2e12, 9.2e11, false], ['archive', 8e12, 3.4e11, true],
    ...more.map((name) => [name, 1e12, 5e11, false]),
  ].map(([name, total_bytes, available_bytes, read_only]) => ({
    name, dir: `/tank/${name}`, read_only, total_bytes, available_bytes,
    exports: name === 'home' ? ['192.0.2.0/24(rw,root_squash)', '*(ro,all_squash)'] : [],
    access: [{
      protocol: 'nfs3', url: `nfs3://192.0.2.10:12049/export/${name}`,
      mount: `mount -t nfs -o vers=3,proto=tcp,port=12049,mountport=12049,mountproto=tcp,nolock 192.0.2.10:/export/${name} /mnt`,
      note: 'Locks stay on the client: no portmapper at this port offset.',
    }],
  })),
  services: [
    { name: 'nfs', state: 'online', listen: '192.0.2.10:12049', reason: null },
    { name: 'http', state: 'online', listen: '192.0.2.10:10080, 192.0.2.10:10443', reason: null },
    { name: 'admin', state: 'online', listen: '192.0.2.10:10215', reason: null },
  ],
  budgets: [
    { id: 'server.connections', sentence: 'Connections', used: 9, limit: 10_000 },
    { id: 'server.requests', sentence: 'Requests in flight', used: 34, limit: 4096 },
    { id: 'server.bytes', sentence: 'Bytes held by requests in flight', used: 3_145_728, limit: 268_435_456 },
  ],
});

function json(response, code, body, headers = {}) {
  response.writeHead(code, { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers });
  response.end(JSON.stringify(body));
}

const fail = (response, code, tried, failed, hint) => json(response, code, { error: { tried, failed, hint } });

async function textOf(request) {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

async function bodyOf(request) {
  try {
    return JSON.parse(await textOf(request));
  } catch {
    return {};
  }
}

async function session(request, response, signedIn) {
  if (request.method === 'POST') {
    const { user, password } = await bodyOf(request);
    if (user === 'admin' && password === 'plimsoll') {
      return json(response, 200, { user }, { 'set-cookie': `${COOKIE}; HttpOnly; SameSite=Strict; Path=/` });
    }
    return fail(response, 401, 'sign in', 'user or password is wrong', 'Check both and try again.');
  }
  if (request.method === 'DELETE') {
    return json(response, 200, {}, { 'set-cookie': 'plimsoll_session=; Max-Age=0; Path=/' });
  }
  return signedIn ? json(response, 200, { user: 'admin' }) : fail(response, 401, 'see who is signed in', 'nobody is', '');
}

function data(url, response) {
  const text = url.searchParams.get('stat') ?? '';
  const query = parseStat(text);
  if (query === null) return fail(response, 400, `read ${text}`, 'there is no such statistic', 'See /api/v1/analytics/statistics.');
  const time = (name, otherwise) => {
    const value = Number(url.searchParams.get(name) ?? otherwise);
    return value < 0 ? now() + value : value;
  };
  const end = Math.floor(now());
  const to = Math.min(time('to', end), end);
  const from = Math.max(time('from', end - 60), started);
  const step = Number(url.searchParams.get('step') ?? 1);
  return json(response, 200, dataOf(text, query, from, to, step, Number(url.searchParams.get('top') ?? 20), gaps));
}

function stream(url, request, response) {
  const stats = url.searchParams.getAll('stat').map((text) => [text, parseStat(text)]);
  const wrong = stats.find(([, query]) => query === null);
  if (wrong) return fail(response, 400, `stream ${wrong[0]}`, 'there is no such statistic', '');
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.flushHeaders();
  streams.add(response);
  const send = () => {
    const t = Math.floor(now()) - 1;
    if (gaps(t)) return;
    for (const [text, query] of stats) response.write(`data: ${JSON.stringify(dataOf(text, query, t, t + 1, 1, 20))}\n\n`);
  };
  const timer = setInterval(send, 1000);
  request.on('close', () => {
    clearInterval(timer);
    streams.delete(response);
  });
}

/** Server-sent events: `begin` gets a function that sends, and gives one that ends it. */
function events(request, response, name, begin) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.flushHeaders();
  streams.add(response);
  const end = begin((event) => response.write(`event: ${name}\ndata: ${JSON.stringify(event)}\n\n`));
  request.on('close', () => {
    end();
    streams.delete(response);
  });
}

function logs(send) {
  let n = 60;
  const timer = setInterval(() => send(logLine((n += 1), now())), 1500);
  return () => clearInterval(timer);
}

function changes(send) {
  tree.listeners.add(send);
  return () => tree.listeners.delete(send);
}

const OF_TREE = /^\/(tree|nodes|changes|configuration|audit|logs|transfers)(\/|$)/;

async function ofTree(url, request, response) {
  const path = decodeURIComponent(url.pathname.slice('/api/v1'.length));
  if (path === '/changes/stream') return events(request, response, 'change', changes);
  if (path === '/logs/stream') return events(request, response, 'message', logs);
  const [status, body] = treeAnswer(tree, request.method, path, url.searchParams, await textOf(request), who);
  if (typeof body !== 'string') return json(response, status, body);
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  return response.end(body);
}

async function file(path, response) {
  const wanted = normalize(path).replace(/^(\.\.[/\\])+/, '');
  const found = wanted.startsWith('/assets/') || wanted === '/favicon.svg' ? wanted : '/index.html';
  try {
    const content = await readFile(join(DIST, found));
    response.writeHead(200, {
      'content-type': TYPES[extname(found)] ?? 'application/octet-stream',
      'content-security-policy': POLICY, 'x-content-type-options': 'nosniff',
    });
    response.end(content);
  } catch {
    response.writeHead(404, { 'content-type': 'text/plain' });
    response.end('There is no such file; run `npm run build` first.\n');
  }
}

async function answer(request, response) {
  const url = new URL(request.url, 'http://mock');
  if (!url.pathname.startsWith('/api/')) return file(url.pathname, response);
  const signedIn = (request.headers.cookie ?? '').includes(COOKIE);
  const path = url.pathname.slice('/api/v1'.length);
  if (path === '/session') return session(request, response, signedIn);
  if (!signedIn) return fail(response, 401, 'use the API', 'you are not signed in', 'Sign in first.');
  if (path === '/status') return json(response, 200, status());
  if (path === '/analytics/statistics') return json(response, 200, catalogue());
  if (path === '/analytics/data') return data(url, response);
  if (path === '/analytics/stream') return stream(url, request, response);
  if (path.startsWith('/services/nfs')) {
    const answer = nfs(request.method, path.slice('/services/nfs'.length), url.searchParams);
    if (answer !== null) return json(response, ...answer);
    return fail(response, 404, 'find the client', 'there is no such client', 'Look among all clients.');
  }
  if (path.startsWith('/services/http')) {
    const answer = webdav(request.method, path.slice('/services/http'.length));
    if (answer !== null) return json(response, ...answer);
    return fail(response, 404, 'release a lock of WebDAV', 'there is no such lock', 'Look among all locks.');
  }
  if (OF_TREE.test(path)) return ofTree(url, request, response);
  return fail(response, 404, `use ${path}`, 'there is no such request', 'See docs/protocols/api.md.');
}

/** Starts it and gives what tests need: its address, and ways to misbehave. */
export function start(port = 0) {
  const server = createServer((request, response) => void answer(request, response));
  return new Promise((resolve) => {
    server.listen(port, '127.0.0.1', () => resolve({
      url: `http://127.0.0.1:${server.address().port}`,
      /** Cuts every stream and hides `seconds` from now on, as an interruption does. */
      interrupt(seconds) {
        gap = [Math.floor(now()) - 1, Math.floor(now()) + seconds];
        for (const response of streams) response.destroy();
      },
      /** Somebody else commits this. */
      elsewhere: (changes) => tree.change({ changes }, { user: 'tomas', from: 'local', may: true }),
      /** Somebody else commits this, and it is told only when what is returned is called. */
      untold(changes) {
        const { listeners } = tree;
        tree.listeners = new Set();
        const { revision } = tree.change({ changes }, { user: 'tomas', from: 'local', may: true });
        tree.listeners = listeners;
        return () => listeners.forEach((listener) => listener({ revision, who: 'tomas', changes }));
      },
      /** What the user who is signed in may do from now on: `may` change, and what is `hidden`. */
      role: (more) => { who = { ...WHO, ...more }; },
      /** From now on the network cannot be changed, and why; null: it can. */
      network: (reason) => { tree.network.reason = reason; },
      /** From now on the subnet manager gives these partitions. */
      offers: (lines) => { tree.network.offers = lines; },
      /** Adds this many shares and users. */
      many(shares, users) {
        more = Array.from({ length: shares }, (_, at) => `share-${at}`);
        for (const name of more) tree.document[`/shares/default/${name}`] = { directory: `/tank/${name}` };
        for (let at = 0; at < users; at += 1) tree.document[`/configuration/users/user-${at}`] = {};
      },
      reset: () => { tree = new Tree(); more = []; },
      close() {
        for (const response of streams) response.destroy();
        server.close();
        server.closeAllConnections();
      },
    }));
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await start(Number(process.argv[2] ?? 26_001));
  console.log(`${url}  user admin, password plimsoll`);
}
