/** The thread that owns the store's connection for requests, so that a search or a commit does not block the process. */
import { parentPort, workerData } from 'node:worker_threads';
import type { EngineReply, EngineRequest } from './client.ts';
import { codedFailure } from './database.ts';
import { Engine } from './engine.ts';

const NOTHING = Buffer.from('{}');

let engine: Engine | undefined;

parentPort?.on('message', (request: EngineRequest | 'close') => {
  if (request === 'close') {
    engine?.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(answer(request));
});

function answer({ id, operation, collection, body }: EngineRequest): EngineReply {
  try {
    engine ??= new Engine(workerData as string);
    const given = body === undefined || body.length === 0 ? NOTHING : body;
    const result = engine.operations[operation](collection, given);
    return { id, result: JSON.stringify(result) };
  } catch (error) {
    return { id, error: codedFailure(error, 'what was to be stored').toData() };
  }
}
