// The pools of the mock: a mirror that has lost a disk, free disks, and a pool that can be imported.

const text = { type: 'text', shape: 'line', max_length: 4096 };
const list = { type: 'list', max_length: 1000, of: text };
const number = { type: 'integer', min: 0, max: 2 ** 52 };
const size = { type: 'bytes', min: 0, max: 2 ** 52 };
const bool = { type: 'bool' };
const time = { type: 'time' };
const seconds = { type: 'seconds', min: 0, max: 1e9 };
const choice = (...values) => ({ type: 'choice', choices: values.map((value) => ({ value, meaning: value })) });
const state = (name, title, kind = text, unit = '') => ({ name, title, kind, unit, default: null, role: 'state', help: `${title}.`, example: '', required: false, effect: 'now' });
const takes = (name, title, kind = text, required = true) => ({ ...state(name, title, kind), role: 'setting', required });
const context = (name, title, help, more = {}) => ({ name, title, help, scope: 'storage', properties: [], actions: [], children: [], items: null, statistics: [], ...more });
const items = (noun, plural, of) => ({ noun, plural, key: text, max: 4096, origin: 'live', context: of, fixed: [] });
const action = (name, title, help, parameters = [], destructive = false) => ({ name, title, help, parameters, destructive, result: '' });
const PROFILE = choice('stripe', 'mirror', 'copies3');

const member = context('disk', 'Disk', 'A disk of the pool.', {
  properties: [state('state', 'State', choice('present', 'missing')), state('serial', 'Serial number'), state('model', 'Model'), state('bay', 'Bay'), state('size', 'Size', size), state('allocated', 'Allocated', size), state('device', 'Device'), state('by_id', 'By ID'),
    state('seen', 'Last seen', time), state('write_errors', 'Write errors', number), state('read_errors', 'Read errors', number), state('corruption_errors', 'Checksum errors', number)],
});
const snapshot = context('snapshot', 'Snapshot', 'A read-only snapshot of a share.', { properties: [state('share', 'Share'), state('created', 'Created', time)], actions: [action('destroy_snapshot', 'Destroy', 'Destroys the snapshot.', [], true)] });
const pool = context('pool', 'Pool', 'A pool of disks.', {
  properties: [state('state', 'State', choice('healthy', 'degraded', 'repairing', 'failed')), state('reason', 'Reason'), state('profile', 'Profile', PROFILE), state('capacity', 'Capacity', size), state('used', 'Used', size), state('available', 'Available', size),
    state('without_copies', 'Without copies', size), state('task', 'Task', choice('scrub', 'replace', 'repair', 'remove')), state('phase', 'Phase'), state('progress', 'Progress', number, '%'), state('time_left', 'Time left', seconds, 's'), state('scrubbed', 'Last scrub', time), state('history', 'History', list),
    state('shares', 'Shares', list), state('mount_degraded', 'Mount degraded', bool), state('scrub_every_days', 'Scrub every', number, 'days'), state('directory', 'Directory'), state('uuid', 'UUID')],
  actions: [action('scrub', 'Scrub', 'Reads all data of the pool and corrects what is wrong from other copies.'), action('stop', 'Stop task', 'Stops the task in progress.'), action('replace', 'Replace disk', 'Replaces a disk.', [takes('member', 'Disk of the pool'), takes('disk', 'New disk')]),
    action('create_snapshot', 'Create snapshot', 'Creates a read-only snapshot of a share.', [takes('share', 'Share'), takes('name', 'Name')]), action('mount', 'Mount', 'Mounts a pool that is imported and not mounted.', [takes('degraded', 'Without missing disks', bool, false)]),
    action('export_pool', 'Export', 'Unmounts the pool. Its data stays on its disks.', [], true), action('destroy_data', 'Destroy data', 'Destroys the pool and all data on it. This cannot be undone.', [takes('confirm', 'Name of the pool')], true)],
  children: [context('disks', 'Disks', 'Disks of the pool by number.', { items: items('disk', 'disks', member) }), context('snapshots', 'Snapshots', 'Snapshots of shares, as SHARE@NAME.', { items: items('snapshot', 'snapshots', snapshot) })],
});
const disk = context('disk', 'Disk', 'A disk or partition.', {
  properties: [state('usable', 'Usable', bool), state('reason', 'Reason'), state('size', 'Size', size), state('model', 'Model'), state('serial', 'Serial number'), state('bay', 'Bay'), state('content', 'Content'), state('name', 'Name for actions'), state('by_id', 'By ID', list)],
});

export const STORAGE = context('storage', 'Storage', 'Pools of disks, and the disks of this machine.', {
  children: [
    context('pools', 'Pools', 'Pools of disks with btrfs.', {
      properties: [state('reason', 'Reason'), state('importable', 'To import', list)],
      actions: [action('create_pool', 'Create pool', 'Creates a pool.', [takes('name', 'Name'), takes('profile', 'Profile', PROFILE, false), takes('disks', 'Disks', list)]), action('import_pool', 'Import pool', 'Mounts a pool that is on disks of this machine.', [takes('name', 'Name'), takes('degraded', 'Without missing disks', bool, false)])],
      items: items('pool', 'pools', pool),
    }),
    context('disks', 'Disks', 'Disks and partitions of this machine.', { properties: [state('reason', 'Reason')], items: items('disk', 'disks', disk) }),
  ],
});

const TB = 4000787030016;
const MODEL = 'EXAMPLE ST4000NM0023';
const bay = (at) => `enclosure 0:0:24:0, Slot ${String(at).padStart(2, '0')}`;
const ofPool = (at, serial, more = {}) => ({ state: 'present', serial, model: MODEL, bay: bay(at), size: TB, allocated: 12e11, device: `sd${'abcdef'[at]}`, by_id: `wwn-0x5000c5001234000${at}`, seen: Math.floor(Date.now() / 1000), write_errors: 0, read_errors: 0, corruption_errors: 0, ...more });
const free = (at, serial, more = {}) => ({ usable: true, size: TB, model: MODEL, serial, bay: bay(at), name: `wwn-0x5000c5001234000${at}`, by_id: [`wwn-0x5000c5001234000${at}`], ...more });
/** How long the replacement of the mock takes (ms). */
const TAKES = 6000;

export class Pools {
  pools = {
    tank: {
      state: 'degraded', reason: 'the disk serial number Z1Z00002 is missing: connect it, or replace it', profile: 'mirror', capacity: TB, used: 11.2e11, available: 28.3e11, without_copies: 4.2e9, history: ['2026-11-20 02:14:07 scrub: 1068115 MiB were read without an error.'],
      shares: ['projects'], mount_degraded: false, scrub_every_days: 30, directory: '/run/plimsoll-pools/tank', uuid: '5f0c1d2a-7b1e-4e51-9c1f-0a6d1b2c3d4e',
    },
    fast: { state: 'healthy', profile: 'stripe', capacity: 1e12, used: 2e11, available: 8e11, without_copies: 0, history: [], shares: [], mount_degraded: false, scrub_every_days: 0, directory: '/run/plimsoll-pools/fast', uuid: '6f0c1d2a-7b1e-4e51-9c1f-0a6d1b2c3d4e' },
  };
  members = {
    tank: { 1: ofPool(0, 'Z1Z00001', { corruption_errors: 12 }), 2: ofPool(1, 'Z1Z00002', { state: 'missing', device: '', bay: null }) },
    fast: { 1: ofPool(4, 'S3ZANB0K1', { size: 1e12, model: 'Example SSD 860' }) },
  };
  disks = {
    sdc: free(2, 'Z1Z00003'), sdd: free(3, 'Z1Z00004'),
    sda: free(0, 'Z1Z00001', { usable: false, reason: 'it is in use by the mounted pool tank', content: 'btrfs' }),
    nvme0n1: free(9, 'S5P2NG0R', { usable: false, reason: 'it has partitions', content: 'GPT partition table', bay: null, model: 'Example NVMe', size: 512e9 }),
  };
  importable = ['archive (UUID 0a6d1b2c-7b1e-4e51-9c1f-5f0c1d2a3d4e): 2 of 2 disks'];
  snapshots = { 'projects@monday': { share: 'projects', created: Math.floor(Date.now() / 1000) - 90_000 } };
  #began = 0;

  #parts(path) {
    return path.split('/').slice(2);
  }

  /** A replacement goes on while it is looked at. */
  #now(name) {
    const pool = this.pools[name];
    if (pool === undefined || this.#began === 0 || name !== 'tank') return pool;
    const done = (Date.now() - this.#began) / TAKES;
    if (done < 1) return { ...pool, state: 'repairing', task: 'replace', phase: done < 0.8 ? 'replace' : 'convert', progress: Math.floor(done * 100), time_left: Math.ceil((TAKES * (1 - done)) / 1000) };
    Object.assign(pool, { state: 'healthy', reason: null, without_copies: 0, history: ['2026-11-29 09:31:12 replace: The disk serial number Z1Z00002 is replaced by sdc; all data has its copies.', ...pool.history] });
    this.members.tank[2] = ofPool(2, 'Z1Z00003');
    delete this.disks.sdc;
    this.#began = 0;
    return pool;
  }

  listAt(path) {
    const [kind, name, what] = this.#parts(path);
    if (kind === 'disks') return this.disks;
    if (name === undefined) return this.pools;
    if (what === 'disks') return this.members[name] ?? {};
    return what === 'snapshots' && name === 'tank' ? this.snapshots : {};
  }

  live(path, name) {
    const [kind, first, what, item] = this.#parts(path);
    if (kind === 'pools' && first === undefined) return name === 'importable' ? this.importable : null;
    if (kind === 'disks') return this.disks[first]?.[name] ?? null;
    if (kind !== 'pools') return null;
    const of = what === undefined ? this.#now(first) : item === undefined ? {} : this.listAt(path)[item];
    return of?.[name] ?? null;
  }

  act(path, name, given) {
    const [, first] = this.#parts(path);
    if (name === 'create_pool') {
      this.pools[given.name] = { ...this.pools.fast, profile: given.profile, used: 0, available: TB, capacity: TB, directory: `/run/plimsoll-pools/${given.name}` };
      this.members[given.name] = {};
      return `The pool ${given.name} is created.`;
    }
    if (name === 'import_pool') {
      this.importable = [];
      this.pools.archive = { ...this.pools.fast, profile: 'mirror' };
      this.members.archive = {};
      return 'The pool archive is imported.';
    }
    if (name === 'replace' && first === 'tank') this.#began = Date.now();
    return 'It has begun.';
  }
}

export const isStorage = (path) => /^\/storage(\/|$)/.test(path);
