import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { findProgram } from './find-program.js';
import { agentArgv, agentEnvironment, customAgent, findAgent, listAgents, type AgentDefinition } from './presets.js';
import { programPaths } from './program-paths.js';
import { nodeProgram, repairProgram } from './repair-program.js';

const quiet = { hint: '', resume: false, root: false };

function preset(id: string): AgentDefinition {
  const agent = findAgent(id);
  if (!agent) throw new Error(`no preset ${id}`);
  return agent;
}

describe('argv of the presets', () => {
  const line = (id: string, launch: Partial<typeof quiet> = {}) =>
    agentArgv(preset(id), { ...quiet, ...launch }, process.env).join(' ');

  it('starts an interactive session without a hint', () => {
    expect(line('shell')).toBe('bash -i');
    expect(line('claude')).toBe('claude --permission-mode bypassPermissions');
    expect(line('codex')).toBe('codex --dangerously-bypass-approvals-and-sandbox');
    expect(line('gemini')).toBe('gemini --approval-mode yolo');
    expect(line('opencode')).toBe('opencode --auto');
    expect(line('aider')).toBe('aider --yes-always --no-check-update');
  });

  it('works on a hint without a person', () => {
    const hint = 'make the tests pass';
    expect(line('claude', { hint })).toBe(
      'claude --permission-mode bypassPermissions --output-format stream-json --verbose -p make the tests pass',
    );
    expect(line('codex', { hint })).toBe(
      'codex exec --json --dangerously-bypass-approvals-and-sandbox make the tests pass',
    );
    expect(line('gemini', { hint })).toBe('gemini --approval-mode yolo -o stream-json -p make the tests pass');
    expect(line('opencode', { hint })).toBe('opencode run --format json --auto make the tests pass');
    expect(line('aider', { hint })).toBe('aider --yes-always --no-check-update --message make the tests pass');
  });

  it('goes on with the copied talk in a child', () => {
    const launch = { hint: 'other way', resume: true };
    expect(line('claude', launch)).toContain('claude --continue ');
    expect(line('codex', launch)).toMatch(/ resume --last other way$/);
    expect(line('codex', { resume: true })).toContain('codex resume --last');
    expect(line('gemini', launch)).toContain('--resume latest');
    expect(line('opencode', launch)).toContain('run --format json --auto --continue other way');
    expect(line('aider', launch)).toContain('--restore-chat-history');
  });

  it('never lets a hint be read as an option', () => {
    for (const id of ['claude', 'codex', 'gemini', 'opencode', 'aider']) {
      const argv = agentArgv(preset(id), { ...quiet, hint: '--help' }, process.env);
      expect(argv.at(-1)).toBe(' --help');
    }
  });

  it('runs the example agent that is really there with a real node', () => {
    const argv = agentArgv(preset('repair'), { ...quiet, hint: 'constants first' }, process.env);
    expect(argv).toEqual([nodeProgram(process.env), repairProgram(), '--hint', 'constants first']);
    expect(statSync(repairProgram()).isFile()).toBe(true);
    expect(preset('repair').readOnly(process.env)).toEqual([dirname(repairProgram()), nodeProgram(process.env)]);
  });

  it('is found from the bundle as from a checkout', () => {
    const root = join(import.meta.dirname, '..', '..');
    const file = join(root, 'examples', 'agents', 'repair', 'repair.mjs');
    expect(repairProgram(join(root, 'dist', 'helper.js'))).toBe(file);
    expect(repairProgram(join(root, 'helper', 'agents', 'repair-program.ts'))).toBe(file);
  });
});

describe('a custom agent', () => {
  it('gets the hint where its command has {hint}', () => {
    const agent = customAgent('mine', ['my-agent', '--task={hint}', '{hint}']);
    expect(agent.takesHint).toBe(true);
    expect(agentArgv(agent, { ...quiet, hint: 'a $& b' }, {})).toEqual(['my-agent', '--task=a $& b', 'a $& b']);
  });

  it('is told apart from one that waits for a person', () => {
    expect(customAgent('mine', ['my-agent']).takesHint).toBe(false);
  });

  it('replaces a preset of the same id when a command is given', () => {
    expect(findAgent('claude', ['wrapper'])?.program).toBe('wrapper');
    expect(findAgent('claude', [])?.program).toBe('claude');
    expect(findAgent('nobody')).toBeUndefined();
  });
});

describe('environment', () => {
  const person = {
    PATH: '/usr/bin',
    LC_ALL: 'C.UTF-8',
    HOME: '/home/person',
    ANTHROPIC_API_KEY: 'a',
    OPENAI_API_KEY: 'o',
    AWS_SECRET_ACCESS_KEY: 's',
    GITHUB_TOKEN: 'g',
    SSH_AUTH_SOCK: '/tmp/agent',
  };

  it('passes what the agent needs and no token of another service', () => {
    expect(agentEnvironment(preset('shell'), quiet, person)).toEqual({ PATH: '/usr/bin', LC_ALL: 'C.UTF-8' });
    expect(agentEnvironment(preset('codex'), quiet, person)).toEqual({
      PATH: '/usr/bin',
      LC_ALL: 'C.UTF-8',
      OPENAI_API_KEY: 'o',
    });
  });

  it('tells Claude Code that it is in a sandbox only as root', () => {
    expect(agentEnvironment(preset('claude'), { ...quiet, root: true }, person)['IS_SANDBOX']).toBe('1');
    expect(agentEnvironment(preset('claude'), quiet, person)['IS_SANDBOX']).toBeUndefined();
  });

  it('names state below HOME only', () => {
    for (const { id } of listAgents({})) {
      for (const path of preset(id).state) expect(path).toMatch(/^\.[^/]+(\/[^/.][^/]*)*$/);
    }
  });
});

describe('detection', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'bough-presets-'));
    writeFileSync(join(folder, 'claude'), '#!/bin/sh\n');
    chmodSync(join(folder, 'claude'), 0o755);
    writeFileSync(join(folder, 'codex'), 'not executable');
    chmodSync(join(folder, 'codex'), 0o644);
    mkdirSync(join(folder, 'gemini'));
    symlinkSync(join(folder, 'nowhere'), join(folder, 'aider'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('finds what can be executed, on absolute folders of PATH only', () => {
    const environment = { PATH: `:relative:${folder}` };
    expect(findProgram('claude', environment)).toBe(join(folder, 'claude'));
    expect(findProgram('codex', environment)).toBeUndefined();
    expect(findProgram('gemini', environment)).toBeUndefined();
    expect(findProgram('aider', environment)).toBeUndefined();
    expect(findProgram(join(folder, 'claude'), {})).toBe(join(folder, 'claude'));
    expect(findProgram('./claude', environment)).toBeUndefined();
    expect(findProgram('', environment)).toBeUndefined();
  });

  it('lists every preset, with what is missing and how to get it', () => {
    const agents = listAgents({ PATH: folder });
    expect(agents.map(({ id }) => id)).toEqual(['shell', 'repair', 'claude', 'codex', 'gemini', 'opencode', 'aider']);
    expect(agents.find(({ id }) => id === 'claude')).not.toHaveProperty('missing');
    expect(agents.find(({ id }) => id === 'repair')).not.toHaveProperty('missing');
    expect(agents.find(({ id }) => id === 'codex')?.missing).toBe('codex is not on PATH: npm install -g @openai/codex');
  });
});

describe('what must be readable for a program to start', () => {
  let folder = '';
  const make = (path: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), '#!/bin/sh\n');
    chmodSync(join(folder, path), 0o755);
  };
  const link = (path: string, target: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    symlinkSync(target, join(folder, path));
  };
  const pathsOf = (program: string) =>
    programPaths(program, { PATH: join(folder, 'bin'), HOME: join(folder, 'home') }).map((path) =>
      path.slice(folder.length),
    );

  beforeAll(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'bough-programs-')));
    make('home/prefix/lib/node_modules/@maker/agent/node_modules/deep/cli.js');
    link('bin/agent', '../home/prefix/lib/node_modules/@maker/agent/node_modules/deep/cli.js');
    make('home/venv/bin/snake');
    make('home/venv/pyvenv.cfg');
    link('bin/snake', '../home/venv/bin/snake');
    make('home/versions/1.2.3');
    link('bin/versioned', '../home/versions/1.2.3');
    make('bin/plain');
    make('node_modules/home/cli.js');
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('is what was installed behind the link', () => {
    expect(pathsOf('agent')).toEqual(['/home/prefix/lib/node_modules']);
    expect(pathsOf('snake')).toEqual(['/home/venv']);
    expect(pathsOf('versioned')).toEqual(['/home/versions/1.2.3']);
    expect(pathsOf('plain')).toEqual(['/bin/plain']);
    expect(pathsOf('nobody')).toEqual([]);
  });

  it('is never a folder that holds HOME', () => {
    const program = join(folder, 'node_modules', 'home', 'cli.js');
    const home = join(folder, 'node_modules', 'home');
    expect(programPaths(program, { HOME: home })).toEqual([]);
    expect(programPaths(program, { HOME: '/elsewhere' })).toEqual([home, join(folder, 'node_modules')]);
  });
});
