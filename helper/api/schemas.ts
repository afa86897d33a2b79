// What a request must look like, checked at the edge so that services need not (zod). The types of helper/protocol/rpc.ts are the
// truth: each schema is checked against them by the compiler.
import { z } from 'zod';
import type { Requests } from '../protocol/rpc.js';

const wirePath = z.union([
  z.string().max(4096 * 4),
  z.strictObject({ b64: z.string().regex(/^[A-Za-z0-9+/]*={0,2}$/) }).readonly(),
]);
const branch = z.string().min(1).max(200);
const folder = z.string().min(1).max(4096);
const text = z.string().max(1 << 20);
const command = z.array(text).min(1).max(10_000).readonly();
const side = z.enum(['branch', 'point', 'parent']);
const rows = z.int().min(1).max(10_000);
const name = z
  .string()
  .min(1)
  .max(200)
  // eslint-disable-next-line no-control-regex -- names are shown in terminals and lists
  .regex(/^[^\u0000-\u001f\u007f]*$/, 'must not hold control characters');
const paths = z.array(wirePath).max(1_000_000).readonly();
const at = z.object({ branch, side, path: wirePath });
const nothing = z.object({}).transform(() => ({}) as Record<string, never>);

type Schemas = { readonly [M in keyof Requests]: z.ZodType<Requests[M][0]> };

export const schemas: Schemas = {
  'bough/hello': z.object({ client: z.string().max(200) }),
  'bough/open': z.object({ folder }),
  'bough/workspaces': nothing,
  'bough/agents': z.object({ folder }),
  'bough/start': exact(
    z.object({
      folder,
      agent: z.string().min(1).max(200),
      command: command.optional(),
      hint: text.optional(),
      name: name.optional(),
      network: z.boolean().optional(),
      machine: z.enum(['process', 'microvm']).optional(),
      rows: rows.optional(),
      columns: rows.optional(),
    }),
  ),
  'bough/branch': exact(
    z.object({
      branch,
      count: z.int().min(1).max(64),
      hints: z.array(text).max(64).readonly().optional(),
      group: z.enum(['exclusive', 'independent']).optional(),
      agent: z.string().min(1).max(200).optional(),
      command: command.optional(),
    }),
  ),
  'bough/list': z.object({ folder }),
  'bough/diff': exact(
    z.object({
      branch,
      against: z.string().max(200).optional(),
      from: z.int().min(0).optional(),
      limit: z.int().min(1).max(100_000).optional(),
    }),
  ),
  'bough/stat': at,
  'bough/readdir': at,
  'bough/read': at,
  'bough/patch': exact(z.object({ branch, paths: paths.optional() })),
  'bough/exec': exact(
    z.object({
      branch,
      command,
      timeoutMs: z
        .int()
        .min(1)
        .max(7 * 24 * 3600 * 1000)
        .optional(),
    }),
  ),
  'bough/checks': exact(z.object({ branch, command: text.min(1).optional() })),
  'bough/conflicts': z.object({ branch }),
  'bough/resolve': exact(
    z.object({ branch, path: wirePath, take: z.enum(['ours', 'theirs', 'content']), data: z.base64().optional() }),
  ),
  'bough/revert': z.object({ branch, paths }),
  'bough/take': z.object({ branch, from: branch, paths }),
  'bough/commit': exact(
    z.object({
      branch,
      paths: paths.optional(),
      git: z.object({ message: text.min(1) }).optional(),
      operation: z.string().min(1).max(200).optional(),
    }),
  ),
  'bough/undo': exact(z.object({ folder, commit: z.string().max(200).optional() })),
  'bough/rebase': z.object({ branch }),
  'bough/abort': exact(z.object({ branch, recursive: z.boolean().optional() })),
  'bough/stop': z.object({ branch }),
  'bough/rename': z.object({ branch, name }),
  'bough/mount': z.object({ branch }),
  'bough/terminal/open': exact(z.object({ branch, rows, columns: rows, shell: z.boolean().optional() })),
  'bough/terminal/input': z.object({ terminal: branch, data: z.string().max(1 << 24) }),
  'bough/terminal/resize': z.object({ terminal: branch, rows, columns: rows }),
  'bough/doctor': exact(z.object({ folder: folder.optional() })),
  'bough/gc': nothing,
  'bough/audit': exact(z.object({ folder, limit: z.int().min(1).max(100_000).optional() })),
  'bough/shutdown': nothing,
};

/** Optional means left out: a present `undefined` cannot come out of JSON. Only the type needs to be told. */
function exact<T>(schema: z.ZodType<T>): z.ZodType<WithoutUndefined<T>> {
  return schema as unknown as z.ZodType<WithoutUndefined<T>>;
}

type WithoutUndefined<T> = { [K in keyof T]: undefined extends T[K] ? Exclude<T[K], undefined> : T[K] };
