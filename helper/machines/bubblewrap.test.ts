import { describe, expect, it } from 'vitest';
import { bubblewrapArguments, homeInside, type Host, type Inside } from './bubblewrap.js';
import type { Enclosure } from './machine.js';

const host: Host = {
  system: [
    { kind: 'read-only', path: '/usr' },
    { kind: 'symlink', path: '/bin', target: 'usr/bin' },
    { kind: 'read-only', path: '/opt' },
  ],
  toolChain: ['/home/ada/.nvm'],
  masks: [
    { path: '/etc/shadow', directory: false },
    { path: '/etc/ssl/private', directory: true },
  ],
  home: '/home/ada',
  root: false,
  resolver: '/run/systemd/resolve/stub-resolv.conf',
};
const enclosure: Enclosure = {
  folder: '/home/ada/project',
  mount: '/state/mounts/b1',
  home: '/state/branches/b1/home',
  tmp: '/state/branches/b1/tmp',
  hidden: ['/state', '/run/user/1/bough'],
  readOnly: ['/srv/agent'],
  network: false,
};
const inside: Inside = {
  role: 'agent',
  branch: 'w.b1',
  enclosure,
  environment: { PATH: '/usr/bin' },
  command: ['agent', '--go'],
  terminal: true,
  infoFd: 3,
};

/** The sources and targets of an option that takes two. */
function pairs(args: readonly string[], option: string): string[] {
  return args.flatMap((arg, index) => (arg === option ? [`${args[index + 1]} ${args[index + 2]}`] : []));
}

describe('bubblewrapArguments', () => {
  it('puts the branch where the workspace is, after HOME, with a HOME and a /tmp of its own', () => {
    expect(pairs(bubblewrapArguments(host, inside), '--bind')).toEqual([
      '/state/branches/b1/tmp /tmp',
      '/state/branches/b1/home /home/ada',
      '/state/mounts/b1 /home/ada/project',
    ]);
  });

  it('shows the host read-only and no more of it than named', () => {
    const args = bubblewrapArguments(host, inside);
    expect(pairs(args, '--ro-bind')).toEqual(['/usr /usr', '/opt /opt', '/dev/null /etc/shadow']);
    expect(pairs(args, '--ro-bind-try')).toEqual(['/home/ada/.nvm /home/ada/.nvm', '/srv/agent /srv/agent']);
    expect(pairs(args, '--symlink')).toEqual(['usr/bin /bin']);
    expect(args.join(' ')).toContain('--tmpfs /etc/ssl/private --remount-ro /etc/ssl/private');
  });

  it('has no network unless asked, and then the resolver', () => {
    expect(bubblewrapArguments(host, inside)).toContain('--unshare-net');
    const online = bubblewrapArguments(host, { ...inside, enclosure: { ...enclosure, network: true } });
    expect(online).not.toContain('--unshare-net');
    expect(pairs(online, '--ro-bind-try')).toContain(`${host.resolver} ${host.resolver}`);
  });

  it('covers what must be hidden where a system folder would show it', () => {
    const args = bubblewrapArguments(host, { ...inside, enclosure: { ...enclosure, hidden: ['/opt/state'] } });
    expect(args.join(' ')).toContain('--tmpfs /opt/state --remount-ro /opt/state');
  });

  it('never binds a tool chain that lies in the branch, in the system or in what is hidden', () => {
    const within = { ...host, toolChain: ['/usr/lib/node', '/home/ada/project/bin', '/state/tool', '/srv/tool'] };
    expect(pairs(bubblewrapArguments(within, inside), '--ro-bind-try')).toEqual([
      '/srv/tool /srv/tool',
      '/srv/agent /srv/agent',
    ]);
  });

  it('takes a user namespace, or as root drops what could undo the enclosure', () => {
    expect(bubblewrapArguments(host, inside)).toContain('--unshare-user');
    const asRoot = bubblewrapArguments({ ...host, root: true }, inside);
    expect(asRoot.join(' ')).toContain('--cap-drop ALL');
    for (const name of ['SYS_ADMIN', 'SYS_PTRACE', 'DAC_READ_SEARCH', 'MKNOD', 'SYS_MODULE', 'NET_ADMIN']) {
      expect(asRoot).not.toContain(`CAP_${name}`);
    }
  });

  it('clears the environment first, and nothing overrides what marks the run', () => {
    const args = bubblewrapArguments(host, {
      ...inside,
      environment: { BOUGH_BRANCH: 'other', HOME: '/root', PATH: '/usr/bin' },
    });
    expect(args.indexOf('--clearenv')).toBeLessThan(args.indexOf('--setenv'));
    expect(pairs(args, '--setenv').sort()).toEqual(
      ['BOUGH_BRANCH w.b1', 'BOUGH_ROLE agent', 'HOME /home/ada', 'PATH /usr/bin'].sort(),
    );
  });

  it('ends the options before the command', () => {
    const args = bubblewrapArguments(host, { ...inside, command: ['--version'], terminal: false });
    expect(args.slice(-2)).toEqual(['--', '--version']);
  });
});

describe('homeInside', () => {
  it('is another place when the workspace holds the home', () => {
    expect(homeInside(enclosure, '/home/ada')).toBe('/home/ada');
    expect(homeInside({ ...enclosure, folder: '/home/ada' }, '/home/ada')).toBe('/home/.bough');
    expect(homeInside({ ...enclosure, folder: '/home' }, '/home/ada')).toBe('/home/.bough');
    expect(homeInside(enclosure, '/')).toBe('/home/.bough');
  });
});
