// The arguments of bubblewrap (bwrap(1)) for one program in one branch: a pure function of what is to be seen. Used by
// process-machine.ts.
import { isWithin, type Bind, type Mask } from './host-view.js';
import type { Enclosure, RunRole } from './machine.js';

/** What the host looks like; gathered by process-machine.ts. */
export interface Host {
  readonly system: readonly Bind[];
  readonly toolChain: readonly string[];
  readonly masks: readonly Mask[];
  /** The person's HOME, absolute: inside, the branch's HOME lies at the same path. */
  readonly home: string;
  readonly root: boolean;
  /** Where /etc/resolv.conf leads when that is outside of the system's folders. */
  readonly resolver: string | null;
}

export interface Inside {
  readonly role: RunRole;
  readonly branch: string;
  readonly enclosure: Enclosure;
  readonly environment: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  /** The program gets its terminal as the controlling one, in a session of its own. */
  readonly terminal: boolean;
  /** Descriptor on which bubblewrap tells the number of init. */
  readonly infoFd: number;
}

/** HOME when the workspace holds the person's own. */
const otherHome = '/home/.bough';

/** What root keeps: enough for package managers; nothing that mounts, loads, traces or opens by handle. */
const rootCapabilities = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'SETGID', 'SETUID', 'NET_BIND_SERVICE'];

/** Markers in the command line, by which a later helper finds this run again. */
export const markers = { branch: 'BOUGH_BRANCH', role: 'BOUGH_ROLE' } as const;

export function homeInside(enclosure: Enclosure, home: string): string {
  return home === '/' || isWithin(home, enclosure.folder) ? otherHome : home;
}

export function bubblewrapArguments(host: Host, inside: Inside): string[] {
  const { enclosure } = inside;
  const home = homeInside(enclosure, host.home);
  const system = host.system.map(({ path }) => path);
  const throughSystem = (path: string) => system.some((folder) => isWithin(path, folder));
  const throughBranch = (path: string) => isWithin(path, enclosure.folder);
  const readOnly = [...host.toolChain, ...enclosure.readOnly].filter(
    (path) =>
      !throughSystem(path) && !throughBranch(path) && !enclosure.hidden.some((hidden) => isWithin(path, hidden)),
  );
  const environment = {
    ...inside.environment,
    HOME: home,
    [markers.branch]: inside.branch,
    [markers.role]: inside.role,
  };
  return [
    '--unshare-pid',
    '--unshare-ipc',
    '--unshare-uts',
    '--unshare-cgroup-try',
    ...(enclosure.network ? [] : ['--unshare-net']),
    ...['--hostname', 'bough'],
    ...(host.root
      ? ['--cap-drop', 'ALL', ...rootCapabilities.flatMap((name) => ['--cap-add', `CAP_${name}`])]
      : ['--unshare-user']),
    ...host.system.flatMap((bind) =>
      bind.kind === 'symlink' ? ['--symlink', bind.target, bind.path] : ['--ro-bind', bind.path, bind.path],
    ),
    ...host.masks.flatMap(hide),
    ...(host.resolver === null || !enclosure.network ? [] : ['--ro-bind-try', host.resolver, host.resolver]),
    ...['--proc', '/proc', '--dev', '/dev', '--bind', enclosure.tmp, '/tmp'],
    ...['--dir', '/run', '--dir', '/var/tmp'],
    ...['--bind', enclosure.home, home],
    ...readOnly.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--bind', enclosure.mount, enclosure.folder],
    // Last: whatever was bound above, these do not show through it. The branch's own view hides them by itself.
    ...enclosure.hidden
      .filter((path) => throughSystem(path) && !throughBranch(path))
      .flatMap((path) => hide({ path, directory: true })),
    '--clearenv',
    ...Object.entries(environment).flatMap(([name, value]) => ['--setenv', name, value]),
    ...['--chdir', enclosure.folder, '--info-fd', String(inside.infoFd), '--'],
    // Inside, so that Ctrl-C in the terminal never reaches bubblewrap itself.
    ...(inside.terminal ? ['setsid', '--ctty', '--wait', '--'] : []),
    ...inside.command,
  ];
}

function hide(mask: Mask): string[] {
  return mask.directory ? ['--tmpfs', mask.path, '--remount-ro', mask.path] : ['--ro-bind', '/dev/null', mask.path];
}
