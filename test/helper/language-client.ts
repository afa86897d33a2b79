// The life of a language client as vscode-languageclient lives it: initialize, initialized, shutdown, exit.
import { createConnection } from 'node:net';
import { createMessageConnection, SocketMessageReader, SocketMessageWriter } from 'vscode-jsonrpc/node';
import { places } from '../../helper/state/places.js';

export interface LanguageClient {
  readonly server: string;
  /** Sends a request and presses Cancel as soon as the helper shows a progress for it. Returns the title and how it ended. */
  cancelInProgress(method: string, params: object): Promise<{ readonly title: string; readonly result: unknown }>;
  leave(): Promise<void>;
}

export async function initialize(env: NodeJS.ProcessEnv): Promise<LanguageClient> {
  const socket = createConnection(places(env).socket);
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const connection = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket));
  connection.listen();
  const result = await connection.sendRequest<{ serverInfo: { name: string } }>('initialize', {
    processId: process.pid,
    rootUri: null,
    capabilities: { window: { workDoneProgress: true } },
  });
  await connection.sendNotification('initialized', {});
  return {
    server: result.serverInfo.name,
    async cancelInProgress(method, params) {
      const made: unknown[] = [];
      let title = '';
      connection.onRequest('window/workDoneProgress/create', (created: { token: unknown }) => {
        made.push(created.token);
        return null;
      });
      connection.onNotification(
        '$/progress',
        ({ token, value }: { token: unknown; value: { kind: string; title?: string } }) => {
          if (value.kind !== 'begin' || !made.includes(token)) return;
          title = value.title ?? '';
          void connection.sendNotification('window/workDoneProgress/cancel', { token });
        },
      );
      const result: unknown = await connection.sendRequest(method, params);
      return { title, result };
    },
    async leave() {
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      await connection.sendRequest('shutdown');
      await connection.sendNotification('exit');
      await closed;
      connection.dispose();
    },
  };
}
