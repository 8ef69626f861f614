// The cluster of the mock: two heads and three resources. One was taken over from a head that was lost, one has no owner.
import { context as declared, bool, choice, items, list, number, state, text, time } from './declare.mjs';

const context = (name, title, help, more) => ({ ...declared(name, title, help, more), scope: 'cluster' });
const action = (name, title, help, parameters = []) => ({ name, title, help, parameters, destructive: true, result: '' });
const ms = (name, title) => state(name, title, number, 'ms');

const head = context('head', 'Head', 'A head of the cluster.', {
  properties: [state('state', 'State', choice('member', 'draining', 'absent')), state('owns', 'Owns', list), state('preferred_by', 'Preferred by', list), state('this_machine', 'This machine', bool)],
  actions: [action('drain', 'Drain', 'Hands over all resources of the head of this machine.'), action('end_drain', 'End drain', 'Lets the head of this machine take resources over again.')],
});
const resource = context('resource', 'Resource', 'A directory with its state directory and its address, served by one head at a time.', {
  properties: [state('state', 'State', choice('served', 'starting', 'handing_over', 'unowned', 'failed')), state('owner', 'Owner'), state('preferred', 'Preferred owner'), state('addresses', 'Addresses', list), { ...state('takeover_at', 'Last takeover', time), absent: 'never' },
    state('takeover_from', 'From'), state('takeover_to', 'To'), state('takeover_cause', 'Cause', choice('start', 'command', 'drain', 'head_lost', 'server_ended', 'unknown')), ms('takeover_total', 'Total'), ms('takeover_hand_over', 'Hand-over'), ms('takeover_claim', 'Claim'),
    ms('takeover_lock', 'Fence and lock'), ms('takeover_start', 'Start'), ms('takeover_address', 'Address'), state('reason', 'Reason'), state('target', 'Target'), state('number', 'Number', number), state('directory', 'Directory')],
  actions: [action('takeover', 'Take over', 'Moves the resource. Connections of its clients end, and they connect again.', [{ ...state('to', 'To', text), role: 'setting' }]), action('failback', 'Fail back', 'Moves the resource to its preferred owner.')],
});

export const CLUSTER = context('cluster', 'Cluster', 'Heads of the cluster and the resources that they serve, as the head of this machine sees them.', {
  properties: [state('state', 'State', choice('none', 'member', 'draining', 'unknown')), state('reason', 'Reason'), state('name', 'Name'), state('head', 'Head')],
  children: [context('heads', 'Heads', 'Heads of the cluster.', { items: items('head', 'heads', head) }), context('resources', 'Resources', 'Resources of the cluster.', { items: items('resource', 'resources', resource) })],
});

const at = Math.floor(Date.now() / 1000) - 260;
const moved = (from, to, cause, [hand, claim, lock, start, address]) => ({
  takeover_at: at, takeover_from: from, takeover_to: to, takeover_cause: cause, takeover_total: hand + claim + lock + start + address, takeover_hand_over: hand, takeover_claim: claim, takeover_lock: lock, takeover_start: start, takeover_address: address,
});

export class Cluster {
  node = { state: 'member', reason: '', name: 'lab', head: 'right' };
  resources = {
    accounts: { state: 'served', owner: 'right', preferred: 'left', target: 'right', number: 7, addresses: ['10.0.0.100/24'], directory: '/cluster/accounts', reason: '', ...moved('left', 'right', 'head_lost', [0, 31, 57, 412, 2]) },
    projects: { state: 'served', owner: 'right', preferred: 'right', target: 'right', number: 4, addresses: ['10.0.0.101/24'], directory: '/cluster/projects', reason: '', ...moved('left', 'right', 'command', [318, 24, 3, 402, 1]) },
    scratch: { state: 'unowned', owner: '', preferred: 'left', target: 'left', number: 2, addresses: ['2001:db8::102/64'], directory: '/cluster/scratch', reason: 'the lock is held by left' },
  };

  get heads() {
    const of = (key, name) => Object.keys(this.resources).filter((one) => this.resources[one][key] === name);
    const one = (name, state) => ({ state, this_machine: name === 'right', owns: of('owner', name), preferred_by: of('preferred', name) });
    return { left: one('left', 'absent'), right: one('right', this.node.state) };
  }

  listAt(path) {
    return { '/cluster/heads': this.heads, '/cluster/resources': this.resources }[path] ?? {};
  }

  live(path, name) {
    if (path === '/cluster') return this.node[name] ?? null;
    const cut = path.lastIndexOf('/');
    return this.listAt(path.slice(0, cut))[path.slice(cut + 1)]?.[name] ?? null;
  }

  /** What an action answers. */
  act(path, action, given) {
    const one = this.resources[path.split('/').at(-1)];
    if (one) {
      const to = action === 'failback' ? one.preferred : given.to || this.node.head;
      Object.assign(one, moved(one.owner, to, 'command', [290, 22, 3, 398, 1]), { state: 'served', owner: to, target: to, number: one.number + 1 });
      return action === 'failback' ? 'The failback is requested.' : 'The takeover is requested.';
    }
    this.node.state = action === 'drain' ? 'draining' : 'member';
    return action === 'drain' ? 'This head hands over its resources.' : 'This head takes resources over again.';
  }
}

export const isCluster = (path) => /^\/cluster(\/|$)/.test(path);
