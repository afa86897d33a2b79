// What goes over the connection to bough-init (docs/guest-protocol.md), typed; what comes from the guest is checked (zod), since a
// program in there may have taken the machine over. Used by channel.ts and guest.ts.
import { z } from 'zod';

/** A string, or base64 of what is no UTF-8. */
export type GuestName = string | { readonly b64: string };

const count = z.int().min(0);
const text = z.string().max(100_000);

const exit = z.union([z.object({ code: z.int() }), z.object({ signal: z.string().max(16) })]);
export type Exit = z.infer<typeof exit>;

const started = z.object({
  process: count,
  pid: count,
  from: count,
  to: count,
  received: count,
  existing: z.boolean(),
});
export type Started = z.infer<typeof started>;

const attached = z.object({
  from: count,
  to: count,
  lost: count,
  received: count,
  exit: exit.optional(),
  ended: z.boolean(),
});
export type Attached = z.infer<typeof attached>;

const process = z.object({
  process: count,
  kind: z.enum(['exec', 'pty']),
  pid: count,
  key: text.optional(),
  command: text,
  startedMs: count,
  received: count,
  from: count,
  to: count,
  exit: exit.optional(),
  ended: z.boolean(),
});
export type ListedProcess = z.infer<typeof process>;

const hello = z.object({
  protocol: z.literal(1),
  version: text,
  bootId: text,
  hostname: text,
  identity: z.object({ branch: text, name: text, index: count }).optional(),
  forks: count,
  root: text,
  workspaces: z.array(text),
  frozen: z.array(z.enum(['host', 'fork'])),
  processes: count,
  realtimeUs: count,
  problems: z.array(z.object({ code: text, message: text })),
});
export type GuestHello = z.infer<typeof hello>;

const ports = z.object({ ports: z.array(z.object({ port: z.int().min(1).max(65535), loopbackOnly: z.boolean() })) });
const took = z.object({ tookUs: count });
const nothing = z.object({});

/** The result of each method. */
export const results = {
  hello,
  exec: started,
  pty: started,
  attach: attached,
  detach: nothing,
  ack: nothing,
  input: z.object({ received: count }),
  resize: nothing,
  signal: nothing,
  wait: z.object({ exit, to: count }),
  list: z.object({ processes: z.array(process) }),
  forget: nothing,
  reseed: nothing,
  clock: z.object({ steppedUs: z.int() }),
  identity: z.object({ bootId: text }),
  freeze: took,
  thaw: nothing,
  'fork.prepare': took,
  'fork.parent': nothing,
  'fork.child': z.object({ bootId: text, forks: count }),
  'port.list': ports,
  'port.forward': nothing,
  shutdown: nothing,
} as const;

export type GuestMethod = keyof typeof results;
export type GuestResult<M extends GuestMethod> = z.infer<(typeof results)[M]>;

export interface StartParams {
  readonly argv: readonly GuestName[];
  readonly env: Readonly<Record<string, GuestName>>;
  readonly cwd: GuestName;
  readonly uid?: number;
  readonly gid?: number;
  readonly groups?: readonly number[];
  /** Names it for the host; while one of that name is known, it is answered instead of a second one. */
  readonly key?: string;
  /** Bytes of output that are kept, 4 KiB to 4 MiB. */
  readonly ring?: number;
  readonly whenFull?: 'wait' | 'drop';
  /** Bytes of output that are sent ahead of the last acknowledgement. */
  readonly window?: number;
}

export interface GuestIdentity {
  readonly branch: string;
  readonly name: string;
  readonly index?: number;
  readonly hostname?: string;
}

interface OfProcess {
  readonly process: number;
}
type None = Record<string, never>;

/** The parameters of each method. Entropy and input are base64. */
export interface GuestParams {
  hello: None;
  exec: StartParams & { readonly stdin?: 'none' | 'pipe' };
  pty: StartParams & { readonly rows: number; readonly columns: number };
  attach: OfProcess & { readonly from?: number; readonly window?: number };
  detach: OfProcess;
  ack: OfProcess & { readonly to: number };
  input: OfProcess & { readonly at: number; readonly data: string; readonly end?: boolean };
  resize: OfProcess & { readonly rows: number; readonly columns: number };
  signal: OfProcess & { readonly signal: NodeJS.Signals; readonly to?: 'group' | 'process' };
  wait: OfProcess;
  list: None;
  forget: OfProcess;
  reseed: { readonly entropy: string };
  clock: { readonly realtimeUs: number };
  identity: GuestIdentity;
  freeze: None;
  thaw: None;
  'fork.prepare': None;
  'fork.parent': None;
  'fork.child': { readonly entropy: string; readonly identity: GuestIdentity; readonly realtimeUs?: number };
  'port.list': None;
  'port.forward': { readonly port: number };
  shutdown: { readonly graceMs?: number };
}

/** A message from the guest: an event, or an answer whose result is checked by its method. */
export const event = z.discriminatedUnion('event', [
  z.object({
    event: z.literal('output'),
    process: count,
    stream: z.enum(['stdout', 'stderr', 'terminal']),
    at: count,
    data: z.string(),
  }),
  z.object({ event: z.literal('exit'), process: count, exit, to: count }),
  z.object({ event: z.literal('end'), process: count, to: count }),
]);
export type GuestEvent = z.infer<typeof event>;

export const answer = z.object({
  id: count.nullable(),
  result: z.unknown().optional(),
  error: z.object({ code: text, message: text, errno: z.int().optional() }).optional(),
});
