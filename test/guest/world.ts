// A bough-init that is pid 1 without a machine around it: in namespaces of its own on this computer, on a unix socket. It may not
// set the clock (that is this computer's), and lives in a cgroup of its own, which is empty and removed at the end. Needs root.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import { Guest } from '../../helper/machines/guest/guest.js';
import { dialUnix } from '../../helper/machines/guest/dial.js';
import { DEADLINE_MS, root, until } from '../harness.js';

export const PROGRAM = join(root, 'build', 'release', 'bough-init');

/** Where cgroup v2 is mounted, whether alone or beside version 1. */
function cgroupMount(): string {
  const line = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .find((each) => each.includes(' - cgroup2 '));
  const point = line?.split(' ')[4];
  if (point === undefined) throw new Error('cgroup2 is not mounted on this computer');
  return point;
}

export class World {
  readonly socket: string;
  private readonly folder: string;
  private readonly cgroup: string;
  private readonly child: ChildProcess;
  private readonly guests: Guest[] = [];
  private said = '';
  /** How the process outside of the namespaces ended: its status, or the signal's name. */
  readonly ended: Promise<number | string>;

  private constructor(commandLine: string) {
    // Not in /tmp, /run or /dev: pid 1 mounts over those.
    this.folder = mkdtempSync('/var/tmp/bough-guest-');
    this.socket = join(this.folder, 'socket');
    this.cgroup = join(cgroupMount(), this.folder.slice('/var/tmp/'.length));
    mkdirSync(this.cgroup);
    const enter = 'echo $$ > "$1/cgroup.procs" && shift && exec "$@"';
    const namespaces = ['--pid', '--fork', '--kill-child', '--mount-proc', '--uts', '--net', '--ipc', '--cgroup'];
    const program = [PROGRAM, '--unix', this.socket, '--cmdline', commandLine];
    this.child = spawn(
      'sh',
      ['-c', enter, 'sh', this.cgroup, 'unshare', ...namespaces, 'setpriv', '--bounding-set', '-sys_time', ...program],
      { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: process.env['PATH'] ?? '/usr/sbin:/usr/bin:/sbin:/bin' } },
    );
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.said += text));
    this.ended = new Promise((resolve) => {
      this.child.once('exit', (status, signal) => resolve(signal ?? status ?? -1));
    });
  }

  static async start(commandLine = ''): Promise<World> {
    const world = new World(commandLine);
    await until('bough-init is ready', () => {
      if (world.child.exitCode !== null) throw new Error(`bough-init ended at once: ${world.said}`);
      return world.said.includes('ready');
    });
    return world;
  }

  /** What pid 1 wrote to its console. */
  get console(): string {
    return this.said;
  }

  /** A host of its own, with as many connections as it makes. `drop` ends the one that it has. */
  host(): { guest: Guest; drop: () => void; connections: () => number } {
    let latest: Socket | undefined;
    let made = 0;
    const guest = new Guest({
      dial: async () => {
        latest = await dialUnix(this.socket);
        made++;
        return latest;
      },
      patienceMs: DEADLINE_MS,
    });
    this.guests.push(guest);
    return { guest, drop: () => void latest?.destroy(), connections: () => made };
  }

  /** A connection on which nonsense can be said; what comes back, until it is closed or `enough` says so. */
  async raw(bytes: Buffer, enough: (said: string) => boolean): Promise<{ said: string; closed: boolean }> {
    const socket = createConnection(this.socket);
    let said = '';
    let closed = false;
    socket.on('error', () => undefined);
    socket.on('close', () => (closed = true));
    socket.setEncoding('utf8').on('data', (text: string) => (said += text));
    socket.write(bytes);
    try {
      await until('an answer to nonsense', () => closed || enough(said));
      return { said, closed };
    } finally {
      socket.destroy();
    }
  }

  async stop(): Promise<void> {
    for (const guest of this.guests) guest.close();
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL');
    await this.ended;
    for (const folder of [join(this.cgroup, 'bough'), this.cgroup]) {
      await until(`${folder} is empty`, () => {
        try {
          rmdirSync(folder);
          return true;
        } catch (error) {
          return (error as NodeJS.ErrnoException).code === 'ENOENT';
        }
      });
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
