import { spawnSync } from 'node:child_process';
import test from 'ava';
import { HostError } from '../../../../src/core/host/errors/host-error.ts';
import { type CreateLoggerOptions, createLogger } from '../../../../src/core/host/logging/logger.ts';

function recording(options: Partial<CreateLoggerOptions> = {}) {
  const written: string[] = [];
  const logger = createLogger({ ...options, destination: { write: (line) => void written.push(line) } });
  return { logger, written, last: () => JSON.parse(written.at(-1) ?? 'null') as Record<string, any> };
}

test('[C14] a line is one JSON object with time, level, pid, fields and the name of the event', (t) => {
  const { logger, written, last } = recording();
  logger.info({ seq: 7, ms: 1.5 }, 'log.commit');
  t.is(written.length, 1);
  t.true(written[0]?.endsWith('}\n'));
  const { time, ...rest } = last();
  t.deepEqual(rest, { level: 'info', pid: process.pid, seq: 7, ms: 1.5, msg: 'log.commit' });
  t.false(Number.isNaN(Date.parse(time)));
});

test('[C14] lines below the level are not written', (t) => {
  const { logger, written } = recording({ level: 'warn' });
  logger.info('no');
  logger.warn('yes');
  t.is(written.length, 1);
});

test('[R32] fields, texts, placeholders, children and errors all pass the redactor', (t) => {
  const { logger, written, last } = recording({ level: 'trace' });
  logger.info({ password: 'CANARY' }, 'a');
  logger.info('token=CANARY');
  logger.info('token=%s %o', 'CANARY', { psk: 'CANARY' });
  logger.info({ a: 1 }, 'Bearer CANARY');
  logger.info({ psk: 'CANARY' });
  logger.error(new Error('token=CANARY'));
  logger.error({ err: new Error('token=CANARY') });
  logger.error({ err: new Error('token=CANARY') }, 'x');
  logger.child({ token: 'CANARY' }).child({ secret: 'CANARY' }).warn({ cookie: 'CANARY' }, 'x');
  const bound = logger.child({});
  bound.setBindings({ apiKey: 'CANARY' });
  bound.trace('x');
  t.is(written.length, 10);
  t.false(written.join('').includes('CANARY'));
  t.is(last().apiKey, '[redacted]');
});

test('[C14] an error bears code, what, remedy and stack', (t) => {
  const { logger, last } = recording();
  logger.error({ err: new HostError('HF_HTTP_STOPPING') }, 'http.failed');
  t.like(last(), { level: 'error', msg: 'http.failed' });
  t.like(last().err, {
    code: 'HF_HTTP_STOPPING',
    what: 'Holdfast is stopping.',
    remedy: 'Try again when it is back.',
  });
  t.regex(last().err.stack, /logger\.test\.ts/);
});

test('[C14] a bare error is a line named error', (t) => {
  const { logger, last } = recording();
  logger.error(new HostError('HF_HTTP_STOPPING'));
  t.is(last().msg, 'error');
  t.is(last().err.code, 'HF_HTTP_STOPPING');
});

test('[C14] for people a line is short, and an error shows its remedy', (t) => {
  const written: string[] = [];
  const logger = createLogger({ pretty: true, destination: { write: (line) => void written.push(line) } });
  logger.child({ plugin: 'router' }).info({ seq: 7, legs: ['a'], note: 'two words' }, 'log.commit');
  t.regex(
    written[0] ?? '',
    /^\d\d:\d\d:\d\d\.\d{3} INFO {2}router log\.commit seq=7 legs=\["a"] note="two words"\n$/,
  );
  logger.error({ err: new HostError('HF_HTTP_STOPPING') }, 'x');
  const lines = (written[1] ?? '').split('\n');
  t.is(lines[1], '    HF_HTTP_STOPPING: Holdfast is stopping.');
  t.is(lines[2], '    remedy: Try again when it is back.');
  t.regex(lines[3] ?? '', /^ {4}at /);
});

test('[C14] control characters from outside do not reach the terminal', (t) => {
  const written: string[] = [];
  const logger = createLogger({ pretty: true, destination: { write: (line) => void written.push(line) } });
  logger.info({ ssid: '\u001b[2Jgone\r\u009b1m', list: ['\u001b[1m'] }, 'x\u0007');
  t.notRegex(written[0]?.trimEnd() ?? '', /\p{Cc}/u);
});

test('[C14] by default lines go to standard error, and none is lost when the process ends', (t) => {
  const module = new URL('../../../../src/core/host/logging/logger.ts', import.meta.url).href;
  const program = `
    const { createLogger } = await import(${JSON.stringify(module)});
    const logger = createLogger();
    for (let index = 0; index < 2000; index += 1) logger.info({ index }, 'x');
    process.exit(3);
  `;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  });
  t.is(status, 3);
  t.is(stdout, '');
  const lines = stderr.trimEnd().split('\n');
  t.is(lines.length, 2000);
  t.is(JSON.parse(lines.at(-1) ?? '').index, 1999);
});
