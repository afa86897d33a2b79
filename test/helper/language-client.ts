// The life of a language client as vscode-languageclient lives it: initialize, initialized, shutdown, exit.
import { createConnection } from 'node:net';
import { createMessageConnection, SocketMessageReader, SocketMessageWriter } from 'vscode-jsonrpc/node';
import { places } from '../../helper/state/places.js';

export async function initialize(env: NodeJS.ProcessEnv): Promise<{ readonly server: string; leave(): Promise<void> }> {
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
    async leave() {
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      await connection.sendRequest('shutdown');
      await connection.sendNotification('exit');
      await closed;
      connection.dispose();
    },
  };
}
