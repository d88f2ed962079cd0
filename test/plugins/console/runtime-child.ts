/** A runtime with the console alone, in a process that a test may kill. Prints its URL, obeys lines of its input. */
import { createInterface } from 'node:readline';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { HOST } from '../../../src/core/host/lifecycle/records.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { consolePlugin } from '../../../src/plugins/console/index.ts';

const [dataDir] = process.argv.slice(2);
if (!dataDir) throw new Error('usage: runtime-child.ts DATA_DIR');
const { plugins } = resolveConfig({ plugins: [consolePlugin({ port: 0 })] });
const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'warn' }) });
await runtime.start();
const { actors, log } = runtime.services;
await log.whenDurable(log.lastSeq());
process.stdout.write(`ready ${runtime.surfaces.console?.url}\n`);

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, argument = ''] = line.split(' ');
  if (verb === 'send') actors.deliver(HOST, { type: 'CHECKPOINT', seq: 1, digest: argument, count: 1 });
  if (verb === 'stop') {
    await runtime.stop(argument);
    process.exit(0);
  }
}
