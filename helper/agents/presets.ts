// The agents Bough can start without being told more: how each is found, started without a person, given a hint, and gone
// on with after a branch. Used by the helper's sessions (argv, environment, state to copy) and by the CLI and the editor
// (the list to pick from). Plain data and pure functions; nothing here starts a process.
//
// None of these agents is bundled: each is installed by the person, under its own licence.
import { dirname } from 'node:path';

import type { AgentPreset } from '../protocol/rpc.js';
import { findProgram, type Environment } from './find-program.js';
import { programPaths } from './program-paths.js';
import { nodeProgram, repairProgram } from './repair-program.js';

/** What is asked of an agent when it starts in a branch. */
export interface AgentLaunch {
  /** The agent's task; empty: an interactive session in the branch's terminal. */
  readonly hint: string;
  /** True in a child of a branch whose state was copied: go on with the talk instead of starting a new one. */
  readonly resume: boolean;
  /** Whether the agent runs as uid 0; Claude Code refuses its unattended mode there unless told that it is in a sandbox. */
  readonly root: boolean;
}

export interface AgentDefinition {
  readonly id: string;
  readonly title: string;
  /** Works by itself on a hint and then exits. */
  readonly takesHint: boolean;
  /** Works with a model somewhere else: of no use without a network. */
  readonly asksModel: boolean;
  /** Program as looked up on PATH. */
  readonly program: string;
  /** What a person does to get the program. */
  readonly install: string;
  /** Names (or `PREFIX_*`) that it gets from the person's environment beside the common ones. */
  readonly allow: readonly string[];
  /** Set for it in any case. */
  readonly set: (launch: AgentLaunch) => Readonly<Record<string, string>>;
  /** Where its settings, credentials and transcripts are, below HOME: they belong to the branch. */
  readonly state: readonly string[];
  /** Host paths, absolute, that must be readable inside the branch for it to start. */
  readonly readOnly: (environment: Environment) => readonly string[];
  readonly argv: (launch: AgentLaunch, environment: Environment) => readonly string[];
}

/** Names that every agent and check gets. HOME, and what tells the branch apart, are the session's to set. */
const commonNames = [
  'PATH',
  'LANG',
  'LC_*',
  'LANGUAGE',
  'TZ',
  'TERM',
  'COLORTERM',
  'NO_COLOR',
  'USER',
  'LOGNAME',
  'SHELL',
  'EDITOR',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
];

const nothing = () => ({});
const noPaths = () => [];

/** A hint that begins with `-` must not be read as an option. */
const asArgument = (hint: string): string => (hint.startsWith('-') ? ` ${hint}` : hint);

const shell: AgentDefinition = {
  id: 'shell',
  title: 'Shell',
  takesHint: false,
  asksModel: false,
  program: 'bash',
  install: 'apt-get install bash',
  allow: [],
  set: nothing,
  state: [],
  readOnly: noPaths,
  argv: () => ['bash', '-i'],
};

const repair: AgentDefinition = {
  id: 'repair',
  title: 'Repair (example: searches for a change that makes the tests pass)',
  takesHint: true,
  asksModel: false,
  program: 'node',
  install: 'install Node.js 20 or newer: https://nodejs.org',
  allow: ['REPAIR_*'],
  set: nothing,
  state: [],
  readOnly: (environment) => [dirname(repairProgram()), nodeProgram(environment)],
  argv: ({ hint }, environment) => [nodeProgram(environment), repairProgram(), ...(hint ? ['--hint', hint] : [])],
};

const claude: AgentDefinition = {
  id: 'claude',
  title: 'Claude Code',
  takesHint: true,
  asksModel: true,
  program: 'claude',
  install: 'npm install -g @anthropic-ai/claude-code (proprietary; see its own licence)',
  allow: ['ANTHROPIC_*', 'CLAUDE_CODE_*', 'DISABLE_TELEMETRY', 'DISABLE_AUTOUPDATER', 'MAX_THINKING_TOKENS'],
  set: ({ root }) => ({ ...(root ? { IS_SANDBOX: '1' } : {}), DISABLE_AUTOUPDATER: '1' }),
  state: ['.claude', '.claude.json'],
  readOnly: (environment) => programPaths('claude', environment),
  argv: ({ hint, resume }) => [
    'claude',
    ...(resume ? ['--continue'] : []),
    ...['--permission-mode', 'bypassPermissions'],
    ...(hint ? ['--output-format', 'stream-json', '--verbose', '-p', asArgument(hint)] : []),
  ],
};

const codex: AgentDefinition = {
  id: 'codex',
  title: 'Codex CLI',
  takesHint: true,
  asksModel: true,
  program: 'codex',
  install: 'npm install -g @openai/codex',
  allow: ['OPENAI_*', 'CODEX_API_KEY'],
  set: nothing,
  state: ['.codex'],
  readOnly: (environment) => programPaths('codex', environment),
  argv: ({ hint, resume }) => {
    const free = '--dangerously-bypass-approvals-and-sandbox';
    if (!hint) return ['codex', ...(resume ? ['resume', '--last'] : []), free];
    return ['codex', 'exec', '--json', free, ...(resume ? ['resume', '--last'] : []), asArgument(hint)];
  },
};

const gemini: AgentDefinition = {
  id: 'gemini',
  title: 'Gemini CLI',
  takesHint: true,
  asksModel: true,
  program: 'gemini',
  install: 'npm install -g @google/gemini-cli',
  allow: ['GEMINI_*', 'GOOGLE_*'],
  // The branch is what keeps it apart; without this it refuses to work unattended in a folder it has not been shown.
  set: () => ({ GEMINI_CLI_TRUST_WORKSPACE: 'true' }),
  state: ['.gemini'],
  readOnly: (environment) => programPaths('gemini', environment),
  argv: ({ hint, resume }) => [
    'gemini',
    ...['--approval-mode', 'yolo'],
    ...(resume ? ['--resume', 'latest'] : []),
    ...(hint ? ['-o', 'stream-json', '-p', asArgument(hint)] : []),
  ],
};

const opencode: AgentDefinition = {
  id: 'opencode',
  title: 'OpenCode',
  takesHint: true,
  asksModel: true,
  program: 'opencode',
  install: 'npm install -g opencode-ai',
  allow: ['OPENCODE_*', 'OPENAI_*', 'ANTHROPIC_*', 'GEMINI_*', 'GOOGLE_*', 'OPENROUTER_API_KEY'],
  set: () => ({ OPENCODE_DISABLE_AUTOUPDATE: '1' }),
  state: ['.config/opencode', '.local/share/opencode', '.local/state/opencode'],
  readOnly: (environment) => programPaths('opencode', environment),
  argv: ({ hint, resume }) => {
    const goOn = resume ? ['--continue'] : [];
    return hint
      ? ['opencode', 'run', '--format', 'json', '--auto', ...goOn, asArgument(hint)]
      : ['opencode', '--auto', ...goOn];
  },
};

const aider: AgentDefinition = {
  id: 'aider',
  title: 'aider',
  takesHint: true,
  asksModel: true,
  program: 'aider',
  install: 'python3 -m pip install aider-install && aider-install',
  allow: ['AIDER_*', 'OPENAI_*', 'ANTHROPIC_*', 'GEMINI_*', 'OPENROUTER_API_KEY', 'DEEPSEEK_API_KEY'],
  set: nothing,
  // Its transcript is in the project (.aider.chat.history.md) and forks with the files.
  state: ['.aider', '.aider.conf.yml'],
  readOnly: (environment) => programPaths('aider', environment),
  argv: ({ hint, resume }) => [
    'aider',
    ...['--yes-always', '--no-check-update'],
    ...(resume ? ['--restore-chat-history'] : []),
    ...(hint ? ['--message', asArgument(hint)] : []),
  ],
};

const presets: readonly AgentDefinition[] = [shell, repair, claude, codex, gemini, opencode, aider];

/** An agent of the person's own: its command as given. `{hint}` in an argument becomes the hint; else BOUGH_HINT tells it. */
export function customAgent(id: string, command: readonly string[]): AgentDefinition {
  const program = command[0] ?? '';
  return {
    id,
    title: id,
    takesHint: command.some((part) => part.includes('{hint}')),
    asksModel: true,
    program,
    install: `install ${program} or correct the command of the agent "${id}"`,
    allow: [],
    set: nothing,
    state: [],
    readOnly: (environment) => programPaths(program, environment),
    argv: ({ hint }) => command.map((part) => part.replaceAll('{hint}', () => hint)),
  };
}

/** The preset of that id, or a custom agent when a command is given; undefined: there is no such agent. */
export function findAgent(id: string, command?: readonly string[]): AgentDefinition | undefined {
  if (command && command.length > 0) return customAgent(id, command);
  return presets.find((preset) => preset.id === id);
}

/** Why the agent cannot run here, with what to do; undefined when it can. */
export function missingReason(agent: AgentDefinition, environment: Environment): string | undefined {
  // The helper itself runs on Node, so an agent on Node can, too.
  if (agent.id === 'repair') return undefined;
  if (findProgram(agent.program, environment)) return undefined;
  return `${agent.program} is not on PATH: ${agent.install}`;
}

/** What a person may pick, presets first, with why one cannot run here. */
export function listAgents(environment: Environment): AgentPreset[] {
  return presets.map((agent) => {
    const missing = missingReason(agent, environment);
    const { id, title, takesHint, asksModel } = agent;
    return { id, title, takesHint, asksModel, ...(missing === undefined ? {} : { missing }) };
  });
}

/** The command to run in the branch's terminal. */
export function agentArgv(agent: AgentDefinition, launch: AgentLaunch, environment: Environment): readonly string[] {
  return agent.argv(launch, environment);
}

/**
 * What of the person's environment goes along: an allow list, so that no token of another service is readable in a
 * branch. The session adds HOME, BOUGH_BRANCH and BOUGH_HINT.
 */
export function agentEnvironment(
  agent: AgentDefinition,
  launch: AgentLaunch,
  environment: Environment,
): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && allowed(name, [...commonNames, ...agent.allow])) result[name] = value;
  }
  return { ...result, ...agent.set(launch) };
}

function allowed(name: string, names: readonly string[]): boolean {
  return names.some((pattern) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern));
}
