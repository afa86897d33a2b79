// "Bough: Show Log": the output channel.
import type { BoughContext } from '../context.js';
import { registerCommand } from './run.js';

export function registerLog(context: BoughContext): void {
  registerCommand('bough.showLog', 'Show Log', context, () => {
    context.log.show();
    return Promise.resolve();
  });
  registerCommand('bough.refresh', 'Refresh', context, () => context.model.refresh());
}
