// The declaration of an invented tree: what docs/protocols/api.md calls GET /tree.
import { CLUSTER } from './cluster.mjs';
import { FABRIC } from './fabric.mjs';
import { HARDWARE, PROBLEMS } from './hardware.mjs';
import { NETWORK } from './network.mjs';
import { STORAGE } from './pools.mjs';

const text = (shape, max_length = 255) => ({ type: 'text', shape, max_length });
const property = (name, title, kind, more = {}) => ({
  name, title, kind, unit: '', default: null, role: 'setting', help: `${title}.`, example: '', required: false, effect: 'now', ...more,
});
const state = (name, title, kind, more = {}) => property(name, title, kind, { role: 'state', ...more });
const context = (name, title, scope, help, more = {}) => ({
  name, title, help, scope, properties: [], actions: [], children: [], items: null, statistics: [], ...more,
});
const NAME = text('name', 64);
const items = (noun, context, more = {}) => ({ noun, plural: `${noun}s`, key: NAME, max: 100, origin: 'configured', context, fixed: [], ...more });

const ACCESS = { type: 'choice', choices: [{ value: 'none', meaning: 'not served over NFS' }, { value: 'ro', meaning: 'read only' }, { value: 'rw', meaning: 'read and write' }] };
const RULES = { type: 'list', max_length: 64, of: text('export-rule') };
const inherited = (more) => ({ default: null, ...more });

const nfs = context('nfs', 'NFS', 'services', 'The NFS service, versions 3 and 4, with MOUNT and NLM on the same port.', {
  statistics: ['nfs.ops[client]', 'nfs.ops[latency]'],
  properties: [
    state('state', 'State', { type: 'choice', choices: [{ value: 'online', meaning: 'it answers' }, { value: 'disabled', meaning: 'disabled by an administrator' }] }),
    state('reason', 'Reason', text('line')),
    state('uptime', 'Up for', { type: 'seconds', min: 0, max: 1e9 }),
    state('listen', 'Listens at', text('line')),
    state('connections', 'Connections', { type: 'integer', min: 0, max: 1e6 }),
    state('clients', 'Clients', { type: 'integer', min: 0, max: 1e6 }),
    state('log', 'Log', { type: 'list', max_length: 20, of: text('line', 4096) }),
    property('enabled', 'Enabled', { type: 'bool' }, { default: true, help: 'Whether the service answers.' }),
    property('lease', 'Lease', { type: 'seconds', min: 10, max: 3600 }, { default: 90, help: 'How long a client of NFSv4 keeps its opens and locks without saying anything.', example: '90 s' }),
    property('domain', 'Domain of owners', text('host'), { default: 'localdomain', help: 'What follows the @ in owners of NFSv4.', example: 'example.org' }),
    property('delegations', 'Delegations', { type: 'bool' }, { default: true, help: 'Lets a client of NFSv4 keep a file to itself while nobody else wants it.' }),
    property('reply_cache', 'Reply cache', { type: 'bytes', min: 2 ** 20, max: 2 ** 30 }, { default: 64 * 2 ** 20, effect: 'restart', help: 'Memory for replies that may be asked for again.', example: '64 MiB' }),
    property('tls', 'RPC with TLS', { type: 'choice', choices: [{ value: 'off', meaning: 'never' }, { value: 'offered', meaning: 'for clients that ask' }, { value: 'required', meaning: 'for everyone' }] }, { default: 'offered', help: 'Whether connections are encrypted.' }),
  ],
  actions: [{ name: 'restart', title: 'Restart', help: 'Ends the service and begins it again.', destructive: true, parameters: [], result: 'Nothing.' }],
});

const user = context('', 'User', 'users', 'Somebody who can sign in.', {
  properties: [
    property('full_name', 'Full name', text('line')),
    property('kind', 'Kind', { type: 'choice', choices: [{ value: 'administrator', meaning: 'may sign in here' }, { value: 'data', meaning: 'only uses shares' }] }, { default: 'data', help: 'Kind of account.' }),
    property('enabled', 'Enabled', { type: 'bool' }, { default: true, help: 'Whether the user can sign in.' }),
    property('roles', 'Roles', { type: 'list', max_length: 16, of: NAME }, { default: [], help: 'What the user may do.', example: 'operator' }),
    property('password', 'Password', text('line'), { role: 'secret', help: 'At least 8 characters. It is kept as a hash.' }),
    property('ssh_keys', 'SSH public keys', { type: 'list', max_length: 16, of: text('ssh-key', 4096) }, { default: [], help: 'One key on a line, as in authorized_keys.', example: 'ssh-ed25519 AAAA…' }),
    state('last_sign_in', 'Last sign-in', { type: 'time' }),
  ],
});
const role = context('', 'Role', 'users', 'A set of permissions.', {
  properties: [property('permissions', 'Permissions', { type: 'list', max_length: 64, of: text('line') }, { default: [], help: 'SCOPE:read or SCOPE:change.', example: 'shares:change' })],
});
const token = context('', 'API token', 'users', 'Lets a program use the API with a role.', {
  properties: [
    property('role', 'Role', NAME, { required: true, items_of: '/configuration/roles', help: 'The name of a role.', example: 'operator' }),
    property('ends', 'Ends', { type: 'time' }, { help: 'When it stops working; without it, when it is destroyed.' }),
    property('secret', 'Secret', text('line'), { role: 'secret', help: 'Made by the action issue.' }),
  ],
  actions: [{ name: 'issue', title: 'Issue', help: 'Makes the secret and shows it this once. The one before stops working.', destructive: true, parameters: [] }],
});
const preferences = context('preferences', 'Preferences', 'configuration', 'How sessions of the browser and the command line behave.', {
  properties: [property('idle', 'Sign out after', { type: 'seconds', min: 60, max: 86_400 }, { default: 900, help: 'A session ends when nothing was asked for so long.' }),
    property('guided', 'Guided', { type: 'list', max_length: 1000, of: NAME }, { default: [], help: 'Users who have closed the first steps on the status page.', example: 'anna' })],
});

const share = context('', 'Share', 'shares', 'A directory that is served under a name. Destroying the share leaves its files as they are.', {
  properties: [
    property('directory', 'Directory', text('path', 4096), { role: 'at-create', required: true, help: 'Where its files are on this machine.', example: '/tank/projects' }),
    property('nfs', 'NFS', ACCESS, inherited({ default: 'rw', help: 'Access for those whom no exception names.' })),
    property('nfs_exceptions', 'NFS exceptions', RULES, inherited({ default: [], help: 'CLIENT(OPTIONS), the first that fits counts.', example: '192.0.2.0/24(rw,root_squash)' })),
    property('read_only', 'Read-only', { type: 'bool' }, inherited({ default: false, help: 'Nobody can change anything in it, whatever else is set.' })),
    state('state', 'State', { type: 'choice', choices: [{ value: 'online', meaning: 'clients can use it' }, { value: 'offline', meaning: 'it cannot be served' }] }),
    state('reason', 'Reason', text('line')),
    state('mount', 'Mount', { type: 'list', max_length: 8, of: text('line') }),
    state('total', 'Size', { type: 'bytes', min: 0, max: 2 ** 64 }),
    state('available', 'Available', { type: 'bytes', min: 0, max: 2 ** 64 }),
    state('holders', 'Holders', { type: 'list', max_length: 1000, of: text('line') }),
  ],
});
const project = context('', 'Project', 'shares', 'Shares that have their settings in common.', {
  properties: share.properties.filter(({ name }) => ['nfs', 'nfs_exceptions', 'read_only'].includes(name)),
  items: items('share', share),
});

const session = context('', 'Session', 'users', 'Somebody who is signed in.', {
  properties: [state('user', 'User', NAME), state('from', 'From', text('line')), state('started', 'Since', { type: 'time' }), state('idle', 'Idle for', { type: 'seconds', min: 0, max: 1e9 })],
  actions: [{ name: 'end', title: 'End', help: 'The session ends at once; what was not committed in it is lost.', destructive: true, parameters: [] }],
});

export const TREE = context('', 'Appliance', 'status', 'Everything.', {
  children: [
    context('configuration', 'Configuration', 'configuration', 'Services, users and roles, and how this appliance behaves.', {
      children: [
        context('services', 'Services', 'services', 'What answers clients.', { children: [nfs] }),
        NETWORK,
        context('users', 'Users', 'users', 'Who can sign in.', { items: items('user', user) }),
        context('roles', 'Roles', 'users', 'What users may do.', { items: items('role', role, { fixed: ['administrator', 'operator', 'data'] }) }),
        context('tokens', 'API tokens', 'users', 'For programs.', { items: items('token', token) }),
        preferences,
      ],
    }),
    STORAGE,
    context('shares', 'Shares', 'shares', 'Directories of this machine that clients can mount, grouped in projects.', { items: items('project', project, { fixed: ['default'] }) }),
    CLUSTER,
    context('status', 'Status', 'status', 'Is it well.'),
    context('maintenance', 'Maintenance', 'maintenance', 'The system itself, its log, and who is signed in.', {
      children: [
        HARDWARE,
        FABRIC,
        PROBLEMS,
        context('system', 'System', 'maintenance', 'Version, process and state.', {
          properties: [state('version', 'Version', text('line')), state('state_folder', 'State folder', text('path')), state('pid', 'Process', { type: 'integer', min: 1, max: 1e7 }), state('uptime', 'Up for', { type: 'seconds', min: 0, max: 1e9 })],
        }),
        context('logs', 'Log', 'maintenance', 'What the services said.', {
          children: [context('transfers', 'Transfers', 'maintenance', 'Who took or put which file, and how it ended.', { properties: [property('record', 'Record', { type: 'bool' }, { default: true, help: 'Whether to log transfers.' })] })],
        }),
        context('sessions', 'Sessions', 'sessions', 'Who is signed in now.', { items: items('session', session, { origin: 'live' }) }),
      ],
    }),
  ],
});
