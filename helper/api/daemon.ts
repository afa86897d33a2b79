// The daemon: takes the lock, opens the state, listens, and ends in one of two ways: for good (shutdown), or leaving file servers
// to the next helper (SIGTERM). Used by helper/main.ts.
import { closeSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { BranchService } from '../branches/service.js';
import { ProcessMachine } from '../machines/process-machine.js';
import { peerCredentials, pidfdOpen } from '../native/addon.js';
import { Database } from '../state/database.js';
import { places, privateFolder } from '../state/places.js';
import { detachDeadMounts, removeDeadSockets } from '../branches/leftovers.js';
import { takeLock } from './lock.js';
import { ClientConnection, type Daemon } from './rpc.js';

const CHANGED_MS = 100;
const IDLE_CHECK_MS = 1000;

export interface DaemonOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly version: string;
  readonly log: (message: string) => void;
  /** End when no client is connected and nothing has run for so long; null: never. */
  readonly idleExitMs: number | null;
}

/** Runs until it ends; false at once when another helper has the lock. */
export async function runDaemon(options: DaemonOptions): Promise<boolean> {
  const { environment, log } = options;
  const at = places(environment);
  privateFolder(at.runtime);
  privateFolder(at.state);
  if (!takeLock(at.lock)) return false;
  // Without the native module nobody could be let in: better to end now, with its message.
  closeSync(pidfdOpen(process.pid));
  const database = Database.open(join(at.state, 'helper.lmdb'));
  const clients = new Set<ClientConnection>();
  const service = new BranchService({
    places: at,
    database,
    machine: new ProcessMachine(environment),
    environment,
    log,
    changed: throttled((folder) => {
      for (const client of clients) client.changed(folder);
    }),
  });
  await detachDeadMounts(at, environment);
  await removeDeadSockets(at);
  await service.begin();

  const server = createServer();
  let end: (how: 'shutdown' | 'detach') => void = () => undefined;
  const ending = new Promise<'shutdown' | 'detach'>((resolve) => (end = resolve));
  const daemon: Daemon = { service, version: options.version, log, shutdown: () => end('shutdown') };
  server.on('connection', (socket) => accept(socket, daemon, clients));
  await listen(server, at.socket);
  log(`listens at ${at.socket}`);
  process.once('SIGTERM', () => end('detach'));
  process.once('SIGINT', () => end('detach'));
  if (options.idleExitMs !== null) watchIdle(options.idleExitMs, () => clients.size === 0 && service.isIdle, end);

  const how = await ending;
  log(how === 'shutdown' ? 'ends, with all agents' : 'ends; file servers go on');
  server.close();
  rmSync(at.socket, { force: true });
  if (how === 'shutdown') await service.shutdown();
  else await service.detach();
  await Promise.all([...clients].map((client) => client.finish()));
  await database.close();
  return true;
}

function accept(socket: Socket, daemon: Daemon, clients: Set<ClientConnection>): void {
  socket.on('error', () => socket.destroy());
  const { uid } = peerCredentials(socket);
  if (uid !== process.getuid?.() && uid !== 0) {
    daemon.log(`a process of user ${uid} was turned away`);
    socket.destroy();
    return;
  }
  const client = new ClientConnection(socket, daemon);
  clients.add(client);
  socket.once('close', () => clients.delete(client));
}

function listen(server: Server, path: string): Promise<void> {
  // Ours by the lock: whoever left it is dead.
  rmSync(path, { force: true });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => resolve());
  });
}

function watchIdle(idleMs: number, isIdle: () => boolean, end: (how: 'shutdown') => void): void {
  let since = Date.now();
  const timer = setInterval(() => {
    if (!isIdle()) since = Date.now();
    else if (Date.now() - since >= idleMs) end('shutdown');
  }, IDLE_CHECK_MS);
  timer.unref();
}

/** At most one call per folder and interval, the last one never lost. */
function throttled(call: (folder: string) => void): (folder: string) => void {
  const waiting = new Map<string, boolean>();
  return function changed(folder: string): void {
    if (waiting.has(folder)) {
      waiting.set(folder, true);
      return;
    }
    call(folder);
    waiting.set(folder, false);
    setTimeout(() => {
      const again = waiting.get(folder) === true;
      waiting.delete(folder);
      if (again) changed(folder);
    }, CHANGED_MS);
  };
}
