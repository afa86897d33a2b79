// bough gc, doctor, agents and shutdown: the machine and the helper, not one branch.
import type { Command } from 'commander';

import { listAgents } from '../../agents/presets.js';
import { runDoctor, type DoctorReport } from '../../doctor/doctor.js';
import { doctorTable } from '../../doctor/table.js';
import { connect, errorCode } from '../../api/client.js';
import { columns, counted } from '../columns.js';
import { declare, report, withSession, type CommonOptions } from '../command.js';

export function gcCommand(): Command {
  return declare('gc', 'Remove mounts, processes and files that crashed runs left, and nothing else.', [
    'bough gc',
  ]).action(async (options: CommonOptions) => {
    await withSession(options, async (session) => {
      const result = await session.request('bough/gc', {});
      const { mounts, processes, files } = result;
      const text = `Removed ${counted(mounts, 'mount')}, ${counted(processes, 'process', 'processes')}, ${counted(files, 'file')}.`;
      return { ok: true, fields: result, text };
    });
  });
}

export function doctorCommand(): Command {
  return declare('doctor', 'Look at everything Bough needs; each problem comes with its fix.', ['bough doctor']).action(
    async (options: CommonOptions) => {
      await report(options, async () => {
        const found = await withHelper(await runDoctor({ folder: options.folder }));
        return { ok: found.ok, fields: { checks: found.checks }, text: doctorTable(found) };
      });
    },
  );
}

/** The doctor works without a helper, and says whether one runs. It starts none: a look changes nothing. */
async function withHelper(found: DoctorReport): Promise<DoctorReport> {
  const entry = { id: 'helper', title: 'Helper', fix: '' };
  try {
    const client = await connect({ client: 'doctor', start: false });
    const detail = `version ${client.version} runs (process ${client.pid})`;
    client.close();
    return { ...found, checks: [...found.checks, { ...entry, status: 'pass', detail }] };
  } catch (error) {
    if (errorCode(error) === 'E_NO_HELPER') {
      const detail = 'does not run; the first command starts it';
      return { ...found, checks: [...found.checks, { ...entry, status: 'skip', detail }] };
    }
    const detail = error instanceof Error ? error.message : String(error);
    const fix = 'end it with: bough shutdown';
    return { ok: false, checks: [...found.checks, { ...entry, status: 'fail', detail, fix }] };
  }
}

function ignoreGone(error: unknown): void {
  if (errorCode(error) !== 'E_HELPER_GONE') throw error;
}

export function agentsCommand(): Command {
  return declare('agents', 'List the agents that can be started here.', ['bough agents']).action(
    async (options: CommonOptions) => {
      await report(options, async () => {
        const agents = listAgents(process.env);
        const rows = agents.map(({ id, title, missing }) => [id, title, missing ?? 'ready']);
        return { ok: true, fields: { agents }, text: columns(rows) };
      });
    },
  );
}

export function shutdownCommand(): Command {
  return declare('shutdown', 'Stop all agents and end the helper; branches stay.', ['bough shutdown']).action(
    async (options: CommonOptions) => {
      await report(options, async () => {
        try {
          const client = await connect({ client: 'cli', start: false });
          // It may be gone before its answer is here.
          await Promise.race([client.request('bough/shutdown', {}), client.closed]).catch(ignoreGone);
          await client.closed;
          return { ok: true, fields: { ran: true }, text: 'The helper has ended.' };
        } catch (error) {
          if (errorCode(error) !== 'E_NO_HELPER') throw error;
          return { ok: true, fields: { ran: false }, text: 'No helper runs.' };
        }
      });
    },
  );
}
