import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { HoldfastError } from '../../../../core/kernel/errors/holdfast-error.ts';

/**
 * Asks for a passphrase on the terminal, which shows nothing of it.
 *
 * @throws HF_CLI_USAGE it is empty, or the two differ
 */
export async function askPassphrase(twice: boolean): Promise<string> {
  const first = await ask('Passphrase: ');
  if (first === '') usage('The passphrase is empty.');
  if (twice && (await ask('Once more: ')) !== first) usage('The two passphrases differ.');
  return first;
}

async function ask(question: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  // Only now does the terminal show nothing: who answers at once would be seen otherwise.
  process.stderr.write(question);
  const given = Promise.withResolvers<string>();
  lines.once('line', given.resolve);
  lines.once('close', () => given.resolve(''));
  lines.once('SIGINT', () => {
    lines.close();
    process.kill(process.pid, 'SIGINT');
  });
  const line = await given.promise;
  lines.close();
  process.stderr.write('\n');
  return line;
}

function usage(reason: string): never {
  throw new HoldfastError('HF_CLI_USAGE', { reason, command: 'router get' });
}
