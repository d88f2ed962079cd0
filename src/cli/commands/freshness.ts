import { createHash } from 'node:crypto';
import { basename, resolve } from 'node:path';
import { durationFlag } from '../../core/host/duration.ts';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';

type Flags = Readonly<Record<string, unknown>>;

/** `holdfast freshness`: the last success of a job by a file that it touches, told by a webhook when it is too old. */
export const freshness: CommandDefinition = {
  name: 'freshness',
  summary:
    'tell when a file that a job touches at each success is too old; needs no instance and no configuration',
  example: 'holdfast freshness --file /var/lib/nas-backup/last-success --url-file /etc/holdfast/nas-url',
  flags: [
    { flags: '--file <path>', summary: 'touched at each success' },
    { flags: '--max-age <time>', summary: 'older is stale', default: '36h' },
    { flags: '--url-file <path>', summary: 'file of mode 0600 with the address of the webhook' },
    { flags: '--url <url>', summary: 'the address, where no secret is in it' },
    { flags: '--token-file <path>', summary: 'file of mode 0600 with a bearer token' },
    { flags: '--format <name>', summary: 'ntfy or json', default: 'ntfy' },
    { flags: '--priority <number>', summary: 'as the receiver counts', default: '1' },
    { flags: '--title <text>', summary: 'of what is told', default: 'NAS backup STALE' },
    { flags: '--test', summary: 'tells it whatever the file says, to see that it arrives' },
  ],
  run,
};

async function run(_args: readonly string[], flags: Flags, context: CommandContext): Promise<number> {
  const { judge, see } = await import('../../plugins/alerts/freshness/look.ts');
  const { tell } = await import('../../plugins/alerts/freshness/tell.ts');
  const file = resolve(needed(flags.file, '--file names what a job touches at each success'));
  const window = String(flags.maxAge);
  const mostMs = durationFlag('--max-age', window, { least: '1s', most: '365d', command: 'freshness' });
  const to = await receiver(flags);
  const now = Date.now();
  const found = judge(await see(file), basename(file), mostMs, now);
  const isTest = flags.test === true;
  const say = (told: object, ...lines: string[]) => {
    if (context.json) context.print(JSON.stringify({ file, ...found, ...told }));
    else for (const line of lines) context.print(line);
  };
  if (found.fresh && !isTest) {
    say({}, `fresh: ${found.text}`);
    return 0;
  }
  const stale = {
    title: isTest ? `${String(flags.title)} (this is a test)` : String(flags.title),
    text: found.text,
    at: now,
    age: found.ageHours,
    window,
    key: keyOf(file, found.text.replace(/[\d.]+ h ago/, ''), now),
  };
  const answer = to && (await tell(stale, to, context.signal));
  const verdict = found.fresh ? 'fresh' : 'stale';
  const told = answer?.kind === 'taken';
  const line = !to
    ? 'nobody is told: no --url-file'
    : told
      ? `told ${to.url.origin} (${answer.status})`
      : 'nobody was told';
  say({ told, ...(answer && { answer }) }, `${verdict}: ${found.text}`, line);
  if (answer?.kind === 'refused') {
    throw new HoldfastError('HF_FRESHNESS_UNTOLD', { place: to?.url.origin, reason: answer.reason });
  }
  return found.fresh ? 0 : 1;
}

async function receiver(flags: Flags) {
  const { readReceiver } = await import('../../plugins/alerts/freshness/tell.ts');
  const { url, urlFile, tokenFile, format, priority } = flags as Record<string, string | undefined>;
  if (url === undefined && urlFile === undefined) {
    if (flags.test === true) throw usage('--test needs --url-file or --url');
    return undefined;
  }
  if (url !== undefined && urlFile !== undefined) throw usage('give --url-file or --url, not both');
  if (format !== 'ntfy' && format !== 'json') throw usage(`--format is ntfy or json, not ${format}`);
  if (!/^[\w-]{1,16}$/.test(String(priority))) throw usage('--priority is a number or a word');
  const absolute = (path: string | undefined) => (path === undefined ? undefined : resolve(path));
  return readReceiver({ url, urlFile: absolute(urlFile) }, absolute(tokenFile), {
    format,
    priority: String(priority),
  });
}

function keyOf(file: string, text: string, now: number): string {
  const hour = Math.floor(now / 3_600_000);
  return createHash('sha256').update(`${file}\n${text}\n${hour}`).digest('hex').slice(0, 32);
}

function needed(value: unknown, reason: string): string {
  if (typeof value !== 'string' || value === '') throw usage(reason);
  return value;
}

const usage = (reason: string): HoldfastError =>
  new HoldfastError('HF_CLI_USAGE', { reason, command: 'freshness' });
