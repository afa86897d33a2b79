// Runs inside the desktop VS Code that main.ts starts.
'use strict';
const assert = require('node:assert/strict');
const vscode = require('vscode');

exports.run = async () => {
  const extension = vscode.extensions.getExtension('bough.bough');
  assert.ok(extension, 'the extension is installed');
  const api = await extension.activate();
  assert.equal(api.version, 1);
  assert.deepEqual(api.branches(), []);
  const commands = await vscode.commands.getCommands(true);
  for (const { command } of extension.packageJSON.contributes.commands) {
    assert.ok(commands.includes(command), `${command} is registered`);
  }
};
