import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { LogRecord } from '../../../src/core/kernel/log/record.ts';
import { SqliteLog } from '../../../src/core/kernel/log/sqlite-log.ts';
import { builtinPlugins, logFeatures } from '../../../src/main.ts';
import { call, type Finished } from '../../support/cli.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';

export const CANARY = 'canary-5d0c7e21b94f4c36';

/** Texts of strangers that would act on a page if they were taken for more than text. */
export const HOSTILE: readonly string[] = [
  '</script><img src=x onerror="document.title=1">',
  '</template><script>document.title=2</script>',
  '<!--<script>document.title=3//',
  '</style><svg onload=document.title=4>',
  '\u2028{document.title=5}`"\'&lt;',
];

/** Runs a command as the program does. */
export function holdfast(t: Scope, argv: readonly string[]): Promise<Finished> {
  return call(argv, { cwd: tempDir(t), builtinPlugins, logFeatures: logFeatures() });
}

/** Exports a log as a page. @returns the page's file, and what the command said */
export async function exportPage(
  t: Scope,
  source: string,
  flags: readonly string[] = [],
): Promise<{ file: string; done: Finished }> {
  const file = join(tempDir(t), 'incident.html');
  return { file, done: await holdfast(t, ['log', 'export', source, '--html', file, ...flags]) };
}

/** A log with texts of strangers and a secret in each place where a record has a text. */
export async function hostileLog(t: Scope, count: number): Promise<string> {
  const record = (seq: number): LogRecord => {
    const text = HOSTILE[seq % HOSTILE.length] ?? '';
    return {
      seq,
      at: 1_795_300_000_000 + seq * 700,
      actor:
        seq % 500 === 0
          ? `stranger.thing/Bearer ${CANARY}`
          : seq % 3 === 0
            ? `stranger.thing/${text}`
            : `gateway.key/k_${seq % 40}`,
      machine: seq % 3 === 0 ? 'thing' : 'gateway-key',
      version: 1,
      event: {
        type: seq % 7 === 0 ? `CALLED ${text}` : 'CALLED',
        tool: text,
        client: `${text} ${seq}`,
        ...(seq % 500 === 0 && { password: CANARY, header: `authorization: Bearer ${CANARY}` }),
      },
      ...(seq > 40 && { from: text }),
      to: { value: text, context: { note: text, calls: seq, by: { [text]: seq } } },
      ...(seq % 11 === 0 && { failed: text }),
      effects: [{ type: 'http.reply', params: { text, status: seq % 600 } }],
      correlation: `${text.slice(0, 30)}-${Math.floor(seq / 4)}`,
    };
  };
  return logOf(
    t,
    Array.from({ length: count }, (_, index) => record(index + 1)),
  );
}

/** A log that hardly compresses. @param bytes of text in each record */
export async function denseLog(t: Scope, count: number, bytes: number): Promise<string> {
  const words = () =>
    randomBytes(bytes)
      .toString('latin1')
      .replaceAll(/[^ -~]/g, (character) => String.fromCharCode(0x100 + character.charCodeAt(0)));
  const record = (seq: number): LogRecord => ({
    ...{ seq, at: seq * 1_000, actor: 'stranger.thing/one', machine: 'thing', version: 1 },
    event: { type: 'SAID', text: words() },
    to: { value: 'said' },
    effects: [],
    correlation: `story-${seq}`,
  });
  return logOf(
    t,
    Array.from({ length: count }, (_, index) => record(index + 1)),
  );
}

async function logOf(t: Scope, records: readonly LogRecord[]): Promise<string> {
  const dir = tempDir(t);
  const log = new SqliteLog({ dataDir: dir });
  for (const record of records) log.append(record, { durability: 'batched' });
  await log.close();
  return dir;
}
