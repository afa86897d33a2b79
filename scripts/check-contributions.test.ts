// Each kind of promise in package.json that the source does not keep is named.
import { expect, it } from 'vitest';
import { contributionProblems } from './check-contributions.mjs';

const manifest = {
  contributes: {
    commands: [{ command: 'bough.branch', title: '%command.branch%' }],
    menus: { 'view/title': [{ command: 'bough.branch' }, { command: 'git.commit' }] },
    configuration: { properties: { 'bough.checks': { description: '%setting.checks%' } } },
  },
};
const texts = { 'command.branch': 'Branch', 'setting.checks': 'Checks' };
const source = "registerCommand('bough.branch', run); configuration.get('checks');";

it('lets a manifest pass that says what the source does', () => {
  expect(contributionProblems(manifest, texts, source)).toEqual([]);
});

it('names commands that are only declared or only registered', () => {
  const other = "registerCommand(\n  'bough.commit', run); get('checks');";
  expect(contributionProblems(manifest, texts, other)).toEqual([
    'command bough.branch is declared but never registered',
    'command bough.commit is registered but not declared',
  ]);
});

it('names menus and links to commands that are not declared', () => {
  const contributes = {
    ...manifest.contributes,
    menus: { 'view/title': [{ command: 'bough.gone' }] },
    viewsWelcome: [{ contents: '[Start](command:bough.start)' }],
  };
  expect(contributionProblems({ contributes }, texts, source)).toEqual([
    'menus names the command bough.gone, which is not declared',
    'viewsWelcome links to the command bough.start, which is not declared',
  ]);
});

it('names settings that nobody reads and texts that are missing or left over', () => {
  const unread = "registerCommand('bough.branch', run);";
  expect(contributionProblems(manifest, { 'command.branch': 'Branch', old: 'Old' }, unread)).toEqual([
    'setting bough.checks is declared but never read',
    'text %setting.checks% is not in package.nls.json',
    'text old of package.nls.json is never used',
  ]);
});
