// A branch's terminal in this one: keys go there, what its programs print comes here. Ctrl-] leaves, the programs run on.
// Used by bough attach and bough start --attach.
import { StringDecoder } from 'node:string_decoder';

import type { Branch } from '../protocol/rpc.js';
import type { Outcome } from './outcome.js';
import { branchText } from './pick-branch.js';
import type { Session } from './session.js';

const LEAVE = '\x1d';

/** What a full-screen program may have switched on: alternate screen, hidden cursor, mouse, bracketed paste, colours. */
const restoreScreen = '\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[0m';

type End = { readonly how: 'left' } | { readonly how: 'ended'; readonly exitCode: number | null };

export async function attachTo(session: Session, branch: Branch, shell: boolean): Promise<Outcome> {
  const { client } = session;
  const size = () => ({ rows: process.stdout.rows || 24, columns: process.stdout.columns || 80 });
  // Data may come before the answer that names the terminal.
  const early: { terminal: string; data: string }[] = [];
  let terminal = '';
  let finish: (end: End) => void = () => undefined;
  const end = new Promise<End>((resolve) => (finish = resolve));
  const stops = [
    client.on('bough/terminal/data', (message) => {
      if (terminal === '') early.push(message);
      else if (message.terminal === terminal) process.stdout.write(message.data);
    }),
    client.on('bough/terminal/exit', (message) => {
      if (terminal === '' || message.terminal === terminal) finish({ how: 'ended', exitCode: message.exitCode });
    }),
  ];
  const opened = await session.request('bough/terminal/open', { branch: branch.id, shell, ...size() });
  const id = opened.terminal;
  terminal = id;
  process.stdout.write(opened.replay);
  for (const message of early) if (message.terminal === id) process.stdout.write(message.data);
  if (!opened.running) finish({ how: 'ended', exitCode: opened.exitCode });
  const send = (data: string) =>
    void client.request('bough/terminal/input', { terminal: id, data }).catch(() => undefined);
  const keyboard = readKeys(send, () => finish({ how: 'left' }));
  const onResize = () =>
    void client.request('bough/terminal/resize', { terminal: id, ...size() }).catch(() => undefined);
  process.stdout.on('resize', onResize);
  try {
    if (process.stdin.isTTY) process.stderr.write(`[${branchText(branch)}: Ctrl-] leaves]\r\n`);
    const gone = client.closed.then((): End => ({ how: 'left' }));
    const result = await Promise.race([end, gone]);
    return outcomeOf(result, branch);
  } finally {
    process.stdout.off('resize', onResize);
    for (const stop of stops) stop();
    keyboard.stop();
    if (process.stdout.isTTY) process.stdout.write(restoreScreen);
  }
}

function outcomeOf(end: End, branch: Branch): Outcome {
  const fields = { branch: branch.id, ...end };
  if (end.how === 'left') return { ok: true, fields, text: `\n[left ${branchText(branch)}; it runs on]` };
  const { exitCode } = end;
  const text = `\n[${branchText(branch)} ended${exitCode === null ? '' : ` with status ${exitCode}`}]`;
  return { ok: exitCode === 0, fields, text, ...(exitCode === null ? {} : { status: exitCode }) };
}

/** Raw keys of a terminal; of a pipe its text, whose end is Ctrl-D, as `script(1)` does. */
function readKeys(send: (data: string) => void, leave: () => void): { stop: () => void } {
  const { stdin } = process;
  const decoder = new StringDecoder('utf8');
  const raw = stdin.isTTY;
  if (raw) stdin.setRawMode(true);
  const onData = (bytes: Buffer) => {
    const text = decoder.write(bytes);
    const at = raw ? text.indexOf(LEAVE) : -1;
    if (at !== 0 && text !== '') send(at < 0 ? text : text.slice(0, at));
    if (at >= 0) leave();
  };
  const onEnd = () => send('\x04');
  stdin.on('data', onData);
  stdin.once('end', onEnd);
  return {
    stop: () => {
      stdin.off('data', onData);
      stdin.off('end', onEnd);
      if (raw) stdin.setRawMode(false);
      stdin.pause();
      // A terminal or a pipe keeps the process alive while it could still be read; a file has nothing to hold on to.
      if ('unref' in stdin) stdin.unref();
    },
  };
}
