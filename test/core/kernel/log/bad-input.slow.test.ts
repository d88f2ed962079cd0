import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import zlib from 'node:zlib';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { chainHash } from '../../../../src/core/kernel/log/chain-hash.ts';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { call } from '../../../support/cli.ts';
import { doorsConfig } from '../../../support/doors-config.ts';
import { tempDir } from '../../../support/temp.ts';

const record = (seq: number, more: Partial<LogRecord> = {}): LogRecord => ({
  seq,
  at: seq,
  actor: `test.door/${seq}`,
  machine: 'door',
  version: 1,
  event: { type: 'init', input: { closeAfterMs: 1_000 } },
  to: { value: 'closed', context: { opened: 0, closeAfterMs: 1_000 } },
  effects: [],
  correlation: `story-${seq}`,
  ...more,
});

/** A file as somebody writes it who knows how hashes are made: only what its records say can be wrong. */
function forged(t: ExecutionContext, bodies: readonly object[], header: object = {}): string {
  const file = join(tempDir(t), 'forged.jsonl');
  const chainStart = '0'.repeat(64);
  const first = {
    holdfast: 'log',
    format: 1,
    runtime: '0.1.0',
    exportedAt: 0,
    machines: {},
    chainStart,
    range: { from: 1, to: bodies.length },
    time: { from: 1, to: 1 },
    complete: true,
    ...header,
  };
  const lines = [JSON.stringify(first)];
  let hash = chainStart;
  for (const body of bodies) {
    const text = JSON.stringify(body);
    hash = chainHash(hash, text);
    lines.push(`{"hash":"${hash}","record":${text}}`);
  }
  lines.push(JSON.stringify({ end: { records: bodies.length, seq: bodies.length, hash } }));
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}

const deep = (levels: number): object => {
  let value: object = {};
  for (let level = 0; level < levels; level += 1) value = { a: value };
  return value;
};

test('[C6,C9] a file that is forged with hashes that fit is refused with a code by whoever reads it', async (t) => {
  const timer = { type: 'timer.start', params: { timer: 5 } };
  const cases: Record<string, [file: string, codes: RegExp]> = {
    'a time that goes back': [forged(t, [record(1, { at: 50 }), record(2, { at: 10 })]), /^HF_LOG_CORRUPT/],
    'an effect that is none': [forged(t, [record(1, { effects: [5] as never })]), /^HF_LOG_CORRUPT/],
    'a timer without a name': [forged(t, [record(1, { effects: [timer] as never })]), /^HF_LOG_CORRUPT/],
    'a state that is none': [forged(t, [record(1, { to: { value: 7 } as never })]), /^HF_LOG_CORRUPT/],
    'a record without a machine': [
      forged(t, [record(1, { machine: undefined as never })]),
      /^HF_LOG_CORRUPT/,
    ],
    'a record nested without end': [
      forged(t, [record(1, { event: { type: 'X', deep: deep(1_000) } as never })]),
      /^HF_PORTABLE_DAMAGED/,
    ],
    'a time beyond all dates': [forged(t, [record(1, { at: 9e15 })]), /^HF_LOG_CORRUPT/],
    'a timer beyond all dates': [
      forged(t, [record(1, { effects: [{ type: 'timer.start', params: { timer: 'x', at: 9e15 } }] })]),
      /^HF_LOG_CORRUPT/,
    ],
    'a header beyond all dates': [
      forged(t, [record(1)], { time: { from: 9e15, to: 9e15 } }),
      /^HF_PORTABLE_DAMAGED/,
    ],
    'a header of a later release': [forged(t, [record(1)], { format: 2 }), /^HF_PORTABLE_FORMAT/],
    'a gap': [forged(t, [record(1), record(3)]), /^HF_LOG_CORRUPT/],
  };
  for (const [name, [file, codes]] of Object.entries(cases)) {
    const cwd = tempDir(t);
    doorsConfig(cwd);
    for (const words of [
      ['log', 'verify', file],
      ['log', 'import', file, '--data-dir', join(cwd, 'new')],
      ['log', 'list', file],
      ['replay', 'verify', file],
      ['replay', 'at', '1', file],
    ]) {
      const { code, err } = await call(words, { cwd });
      t.not(code, 0, `${name}: ${words.slice(0, 2).join(' ')}: ${err}`);
      t.regex(err, codes, name);
      t.notRegex(err, /\n +at /, name);
    }
  }
});

/** Sets a title, clears the screen, and the same with the one byte that some terminals take. */
const ACTING = '\u001b]0;owned\u0007\u001b[2J\u009b2J\u202e';

test('[C6] nothing in a file acts on the terminal that shows it, what is wrong with it included', async (t) => {
  const cwd = tempDir(t);
  doorsConfig(cwd);
  const later = (seq: number, more: Partial<LogRecord>) =>
    record(seq, { actor: 'test.door/1', from: 'closed', event: { type: 'KNOCK' }, ...more });
  const files = [
    forged(t, [record(1)], { format: ACTING }),
    forged(t, [record(1)], { machines: { [ACTING]: { machine: 5, versions: [] } } }),
    forged(t, [{ ...record(1), [ACTING]: 1 }]),
    forged(t, [
      record(1),
      later(2, { event: { type: ACTING, [ACTING]: ACTING }, correlation: ACTING, failed: ACTING }),
      later(3, { to: { value: ACTING, context: { [ACTING]: ACTING } }, machine: ACTING, cause: 1 }),
      later(4, { effects: [{ type: ACTING, params: { [ACTING]: ACTING } }], from: ACTING, cause: 3 }),
      record(5, { actor: `test.door/${ACTING}` }),
    ]),
  ];
  for (const file of files) {
    for (const words of [
      ['log', 'list', '--all', file],
      ['log', 'list', '--json', file],
      ['log', 'show', '3', file],
      ['log', 'show', '4', file, '--json'],
      ['log', 'verify', file],
      ['replay', 'verify', file],
      ['replay', 'at', '5', file],
      ['replay', 'explain', '4', file],
      ['replay', 'what-if', '--drop', '4', file],
    ]) {
      const { out, err } = await call(words, { cwd });
      const shown = out + err;
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      t.notRegex(shown, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/, words.join(' '));
      t.notRegex(shown, /HF_INTERNAL|\n +at /, words.join(' '));
    }
  }
});

test('[C6,C8] a record of any size is shown as a record, and any number of differences is listed', async (t) => {
  const cwd = tempDir(t);
  doorsConfig(cwd);
  const many = Object.fromEntries(Array.from({ length: 6_000 }, (_, index) => [`k${index}`, index]));
  const knock = (seq: number) =>
    record(seq, {
      actor: 'test.door/1',
      event: { ...many, type: 'KNOCK' },
      from: 'closed',
      to: { value: 'closed', context: many },
      effects: [{ type: 'door.bell', params: many }],
    });
  const file = forged(t, [record(1), knock(2), knock(3)]);
  for (const words of [
    ['log', 'list', file],
    ['log', 'show', '2', file],
    ['replay', 'at', '3', file],
    ['replay', 'diff', '1', '3', file],
    ['replay', 'explain', '3', file],
    ['replay', 'what-if', '--drop', '1', file],
  ]) {
    const { code, err } = await call(words, { cwd });
    t.is(code, 0, `${words.join(' ')}: ${err}`);
  }
  const shown = await call(['log', 'show', '2', file, '--json'], { cwd });
  t.is(JSON.parse(shown.out).record.effects[0].type, 'door.bell');

  const small = Array.from({ length: 1_500 }, (_, index) =>
    record(index + 2, { actor: 'test.door/1', event: { type: 'KNOCK' }, from: 'closed' }),
  );
  const long = forged(t, [record(1), ...small]);
  const answer = await call(['replay', 'what-if', '--drop', '1', long, '--json'], { cwd });
  t.is(answer.code, 0, answer.err);
  const { records, differences, untrusted, unanswered } = JSON.parse(answer.out);
  t.is(records, 1_501);
  t.true(differences.length > 1_000, `${differences.length}`);
  t.true(differences.every(({ seq }: { seq: unknown }) => typeof seq === 'number'));
  t.true(Array.isArray(untrusted) && Array.isArray(unanswered));
});

test('[C6] a small file that expands without end is refused before it fills anything', async (t) => {
  const cwd = tempDir(t);
  const header = readFileSync(forged(t, [record(1)]), 'utf8').split('\n')[0] ?? '';
  const state = `{"state":{"ref":"test.door/1","machine":"door","version":1,"value":"closed","context":{"a":"${'a'.repeat(5_000)}"},"done":false,"seq":0,"at":0,"timers":{},"effects":{}}}\n`;
  const block = Buffer.from(state.repeat(200));
  for (const [name, compress, text, reason] of [
    ['lines.gz', zlib.gzipSync, block, 'expands more than'],
    ['one-line.zst', zlib.zstdCompressSync, Buffer.alloc(1_000_000, 'a'), 'expands more than'],
    ['one-line.jsonl', (bytes: Buffer) => bytes, Buffer.alloc(1_000_000, 'a'), 'longer than 64 MiB'],
  ] as const) {
    const file = join(cwd, name);
    const parts = [Buffer.from(`${header}\n`), ...Array.from({ length: 100 }, () => text)];
    writeFileSync(file, compress(Buffer.concat(parts)));
    const { code, err } = await call(['log', 'verify', file], { cwd });
    t.is(code, 1);
    t.regex(err, new RegExp(`^HF_PORTABLE_DAMAGED\\n.*${reason}`), name);
  }
});

test('[C6,C9] 10,000 actors are exported, imported, verified and pruned', async (t) => {
  t.timeout(240_000);
  const cwd = tempDir(t);
  doorsConfig(cwd);
  const dir = join(cwd, 'many');
  const log = new SqliteLog({ dataDir: dir });
  for (let seq = 1; seq <= 10_000; seq += 1) {
    log.append(record(seq), { durability: 'sync' });
    if (!log.hasRoom()) await log.whenDurable(seq);
  }
  await log.close();
  const file = join(cwd, 'many.jsonl.zst');
  for (const words of [
    ['log', 'verify', dir],
    ['log', 'export', dir, '--out', file],
    ['log', 'import', file, '--data-dir', join(cwd, 'copy')],
    ['log', 'verify', join(cwd, 'copy')],
    ['log', 'prune', '--older-than', '1s', '--data-dir', join(cwd, 'copy')],
    ['log', 'verify', join(cwd, 'copy')],
    ['replay', 'verify', join(cwd, 'copy')],
  ]) {
    const { code, err } = await call(words, { cwd });
    t.is(code, 0, `${words.slice(0, 2).join(' ')}: ${err}`);
  }
});
