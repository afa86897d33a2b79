// "Bough: Show Log": the output channel.
import type { BoughContext } from '../context.js';
import { registerCommand } from './run.js';

export function registerLog(context: BoughContext): void {
  registerCommand(context, 'showLog', 'Show Log', () => {
    context.log.show();
    return Promise.resolve();
  });
  registerCommand(context, 'refresh', 'Refresh', () => context.model.refresh());
}
