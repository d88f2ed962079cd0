import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { durationFlag } from '../../core/host/duration.ts';
import { HostError } from '../../core/host/errors/host-error.ts';
import { plaintextProblem } from '../../core/host/http/plaintext.ts';
import { identityOf } from '../../core/host/identity.ts';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import type { Notice, Queued } from '../../machines/alerts/notice.ts';
import { isAhead } from '../../machines/backup-age.ts';
import { AlertsError } from './errors.ts';
import { guidanceOf } from './guidance.ts';
import { formats } from './payloads.ts';
import { type Posted, postOnce } from './webhook.ts';

type Flags = Readonly<Record<string, unknown>>;

/** Carries out `holdfast freshness`. @returns 0 when the file is fresh, else 1 */
export async function checkFreshness(
  _args: readonly string[],
  flags: Flags,
  context: CommandContext,
): Promise<number> {
  const file = resolve(needed(flags.file, '--file names what a job touches at each success'));
  const window = String(flags.maxAge);
  const mostMs = durationFlag('--max-age', window, { least: '1s', most: '365d', command: 'freshness' });
  const receiver = receiverOf(flags);
  const now = Date.now();
  const found = freshnessOf(await modification(file), basename(file), mostMs, now);
  const isTest = flags.test === true;
  const show = (delivery: object, ...lines: string[]) => {
    if (context.json) context.print(JSON.stringify({ file, ...found, ...delivery }));
    else for (const line of lines) context.print(line);
  };
  if (found.fresh && !isTest) {
    show({}, `fresh: ${found.text}`);
    return 0;
  }
  const title = isTest ? `${String(flags.title)} (this is a test)` : String(flags.title);
  const stale = noticeOf({ title, file, found, window, mostMs, now, priority: String(flags.priority) });
  const item = { id: keyOf(file, found.text.replace(/[\d.]+ h ago/, ''), now), at: now, notice: stale };
  const answer = receiver && (await notify(item, receiver, context.signal));
  const verdict = found.fresh ? 'fresh' : 'stale';
  const notified = answer?.kind === 'taken';
  const line = !receiver
    ? 'nobody is notified: no --url-file'
    : notified
      ? `notified ${receiver.url.origin} (${answer.status})`
      : 'nobody was notified';
  show({ notified, ...(answer && { answer }) }, `${verdict}: ${found.text}`, line);
  if (answer?.kind === 'refused') {
    const { origin } = receiver?.url ?? {};
    throw new AlertsError('HF_ALERTS_NOT_DELIVERED', { place: origin, reason: answer.reason });
  }
  return found.fresh ? 0 : 1;
}

function receiverOf(flags: Flags): FreshnessReceiver | undefined {
  const text = (flag: unknown) => (typeof flag === 'string' ? flag : undefined);
  const [url, urlFile, tokenFile] = [text(flags.url), text(flags.urlFile), text(flags.tokenFile)];
  const { format, priority } = flags;
  if (url === undefined && urlFile === undefined) {
    if (flags.test === true) throw usage('--test needs --url-file or --url');
    return undefined;
  }
  if (url !== undefined && urlFile !== undefined) throw usage('give --url-file or --url, not both');
  if (format !== 'ntfy' && format !== 'json') {
    throw usage(`--format is ntfy or json, not ${String(format)}`);
  }
  if (!/^[1-5]$/.test(String(priority))) throw usage('--priority is 1, the most urgent, to 5');
  const absolute = (path: string | undefined) => (path === undefined ? undefined : resolve(path));
  const insecure = flags.insecure === true;
  return readReceiver({ url, urlFile: absolute(urlFile), insecure }, absolute(tokenFile), format);
}

function keyOf(file: string, text: string, now: number): string {
  const hour = Math.floor(now / 3_600_000);
  return createHash('sha256').update(`${file}\n${text}\n${hour}`).digest('hex').slice(0, 32);
}

function needed(value: unknown, reason: string): string {
  if (typeof value !== 'string' || value === '') throw usage(reason);
  return value;
}

const usage = (reason: string) => new HostError('HF_CLI_USAGE', { reason, command: 'freshness' });

/** When a file was last modified (epoch milliseconds), or why that is unknown. */
export type Modification = { readonly modifiedAt: number } | { readonly unknown: string };

export interface Freshness {
  readonly fresh: boolean;
  /** One sentence for a person. */
  readonly text: string;
  /** Hours since, where it is known. */
  readonly ageHours?: number;
}

const HOUR = 3_600_000;

/** When a file, or the target of its link, was last modified. */
async function modification(file: string): Promise<Modification> {
  try {
    return { modifiedAt: (await stat(file)).mtimeMs };
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return { unknown: 'there is no such file' };
    return { unknown: code === 'EACCES' ? 'it may not be read' : `it cannot be read (${code})` };
  }
}

/**
 * Whether the last success is recent enough. An unknown time is not recent enough, and neither is one in the future: a
 * clock that once was ahead would hide a failed job until that time.
 *
 * @param now epoch milliseconds
 */
export function freshnessOf(last: Modification, name: string, mostMs: number, now: number): Freshness {
  if ('unknown' in last) return { fresh: false, text: `No success of ${name} is known: ${last.unknown}.` };
  const age = now - last.modifiedAt;
  const ageHours = Math.round((age / HOUR) * 10) / 10;
  const at = new Date(last.modifiedAt).toISOString();
  if (isAhead(last.modifiedAt, now)) {
    const text = `The last success of ${name} claims to be at ${at}, which is in the future: a clock is wrong.`;
    return { fresh: false, ageHours, text };
  }
  const bound = mostMs / HOUR;
  if (age > mostMs) {
    const text = `No success of ${name} for more than ${bound} h: the last was ${ageHours} h ago, at ${at}.`;
    return { fresh: false, ageHours, text };
  }
  return { fresh: true, ageHours, text: `${name} succeeded ${ageHours} h ago, at ${at}.` };
}

type Format = 'ntfy' | 'json';

/** The receiver that is notified. */
interface FreshnessReceiver {
  readonly url: URL;
  readonly bearer?: string;
  readonly format: Format;
}

/** The notice of a stale file, as a rule's alert is one. */
function noticeOf({
  title,
  file,
  found,
  window,
  mostMs,
  now,
  priority,
}: {
  readonly title: string;
  readonly file: string;
  readonly found: Freshness;
  readonly window: string;
  readonly mostMs: number;
  readonly now: number;
  readonly priority: string;
}): Notice {
  const { text, ageHours } = found;
  const since = ageHours === undefined ? now : Math.min(now, now - ageHours * HOUR + mostMs);
  const { host } = identityOf('');
  const { runbook } = guidanceOf({ name: 'rule.nas-backup-stale' }, undefined);
  return {
    state: 'firing',
    name: 'backup-freshness',
    severity: 'critical',
    title,
    text,
    labels: { priority, source: 'backup-freshness.timer' },
    since,
    threshold: `above ${window}`,
    window,
    host,
    cause: `the file ${file} is what the job touches at each success`,
    firstStep: `On ${host}, look how the last run of the job ended, and start one by hand.`,
    runbook,
    ...(ageHours !== undefined && { value: ageHours }),
  };
}

/** The most posts, and milliseconds between them. */
const TRIES = 3;
const PAUSE_MS = 200;

/**
 * Reads the address and the token of the receiver.
 *
 * @throws HF_CONFIG_SECRET_* a file is not there, or others may read it
 * @throws HF_CLI_USAGE the address is none
 */
function readReceiver(
  address: {
    readonly url?: string | undefined;
    readonly urlFile?: string | undefined;
    readonly insecure?: boolean;
  },
  tokenFile: string | undefined,
  format: Format,
): FreshnessReceiver {
  const text = address.urlFile === undefined ? (address.url ?? '') : readTokenFile(address.urlFile);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) {
    const reason = 'the address of the webhook must be http or https, without a user in it';
    throw new HostError('HF_CLI_USAGE', { reason, command: 'freshness' });
  }
  const credential = tokenFile === undefined ? 'the address, which is a secret,' : 'the token';
  const isSecret = tokenFile !== undefined || address.urlFile !== undefined;
  const refused = plaintextProblem({ url: url.href, insecure: address.insecure, credential });
  if (isSecret && refused !== undefined) {
    throw new HostError('HF_CLI_USAGE', { reason: `${refused} (--insecure).`, command: 'freshness' });
  }
  return { url, format, ...(tokenFile !== undefined && { bearer: readTokenFile(tokenFile) }) };
}

/** Posts, and again when it fails: the next run is an hour away. */
async function notify(item: Queued, receiver: FreshnessReceiver, signal: AbortSignal): Promise<Posted> {
  for (let tries = 1; ; tries += 1) {
    const { url, bearer, format } = receiver;
    const answer = await postOnce(
      { url, bearer, insecure: true, ...formats[format]([item], item.id, item.at) },
      Date.now(),
      signal,
    );
    if (answer.kind === 'taken' || tries === TRIES) return answer;
    await delay(PAUSE_MS * tries, undefined, { signal });
  }
}
