// Where the rows of bench/fs are measured: the plain folder, overlayfs and fuse-overlayfs as peers, and a branch, each over the
// same files. All lie in one scratch folder on one file system.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { run, Server, type Scratch } from '../../test/harness.js';

export interface View {
  readonly name: string;
  readonly path: string;
  /** Unmounts and mounts again, so that nothing of it is cached in the kernel's tree of names. */
  cold(): Promise<void>;
  close(): Promise<void>;
}

let turn = 0;

/** A copy of the base itself. */
export function plain(path: string): View {
  return { name: 'native', path, cold: () => Promise.resolve(), close: () => Promise.resolve() };
}

/** The kernel's overlayfs over the base; null where this machine does not mount it. */
export async function overlay(scratch: Scratch, base: string, program?: string): Promise<View | null> {
  const name = `overlay-${String(turn++)}`;
  const [path, upper, work] = ['merged', 'upper', 'work'].map((part) => scratch.folder(name, part)) as [
    string,
    string,
    string,
  ];
  const options = `lowerdir=${base},upperdir=${upper},workdir=${work}`;
  const mount = async () =>
    program === undefined
      ? await run('mount', ['-t', 'overlay', 'overlay', '-o', options, path])
      : await run(program, ['-o', options, path]);
  const unmount = async () => await run('umount', [path]);
  if ((await mount()).status !== 0) return null;
  return {
    name: program === undefined ? 'overlayfs' : 'fuse-overlayfs',
    path,
    async cold() {
      await unmount();
      await mount();
    },
    async close() {
      await run('umount', ['-l', path]);
    },
  };
}

/** A branch of the base, mounted. */
export async function branch(
  server: Server,
  scratch: Scratch,
  parent = 'base',
): Promise<View & { readonly id: string }> {
  const path = scratch.folder(`branch-${String(turn++)}`);
  const id = await server.mountedBranch(parent, path);
  return {
    name: 'bough',
    id,
    path,
    async cold() {
      await server.client.request('branch.unmount', { branch: id });
      await server.client.request('branch.mount', { branch: id, at: path });
    },
    async close() {
      await server.client.request('branch.unmount', { branch: id });
    },
  };
}

/** boughfs over this base. */
export async function serve(scratch: Scratch, base: string): Promise<Server> {
  const folder = scratch.folder(`store-${String(turn++)}`);
  mkdirSync(join(folder, 'store'));
  return await Server.start({ base, store: join(folder, 'store'), socket: join(folder, 'control') });
}
