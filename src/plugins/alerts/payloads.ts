import { createHash } from 'node:crypto';
import type { Notice, Queued } from '../../machines/alerts/notice.ts';
import { personText } from './message.ts';

/** A body and its headers in the format of a receiver. */
export interface Payload {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Format = 'json' | 'ntfy' | 'alertmanager' | 'alertmanager-api';

/**
 * Makes the post for notices that are sent together.
 *
 * @param items at least one, oldest first
 * @param key unique to the post, and the same when it is repeated after a crash
 * @param now when it is posted, epoch milliseconds
 */
export const formats: Readonly<
  Record<Format, (items: readonly Queued[], key: string, now: number) => Payload>
> = {
  /** One notice is one object; several are an object of the same shape with the single ones in `alerts`. */
  json(items, key) {
    const alerts = items.map(genericOf);
    const lead = leadOf(items);
    const whole = { ...genericOf(lead), title: titleOf(items), state: stateOf(items) };
    return {
      headers: json(key),
      body: JSON.stringify(alerts.length === 1 ? alerts[0] : { ...whole, alerts }),
    };
  },
  ntfy(items, key) {
    const { runbook = '', link = runbook, severity } = withPriority(leadOf(items).notice);
    const firing = stateOf(items) === 'firing';
    const click = /^https?:\/\//.test(link) ? { click: link } : {};
    return {
      headers: {
        'content-type': 'text/plain; charset=utf-8',
        'idempotency-key': key,
        title: headerText(titleOf(items)),
        priority: String(Math.max(...current(items).map(({ notice }) => ntfyPriority(notice)))),
        tags: `${firing ? 'rotating_light' : 'white_check_mark'},${severity}`,
        ...click,
      },
      body: ntfyBody(items),
    };
  },
  /** The format of an Alertmanager's webhooks. */
  alertmanager(items, key) {
    const alerts = current(items).map((item) => {
      const { at, notice } = item;
      return {
        status: notice.state === 'resolved' ? 'resolved' : 'firing',
        labels: prometheusLabels(notice),
        annotations: annotationsOf(item),
        startsAt: new Date(notice.since).toISOString(),
        endsAt: notice.state === 'resolved' ? new Date(at).toISOString() : '0001-01-01T00:00:00Z',
        generatorURL: '',
        fingerprint: fingerprintOf(notice),
      };
    });
    const body = {
      version: '4',
      groupKey: key,
      truncatedAlerts: 0,
      status: stateOf(items),
      receiver: 'holdfast',
      groupLabels: {},
      commonLabels: {},
      commonAnnotations: {},
      externalURL: '',
      alerts,
    };
    return { headers: json(key), body: JSON.stringify(body) };
  },
  /**
   * The format of an Alertmanager's own API, `/api/v2/alerts`. It identifies an alert only by its labels, so they are
   * the same for the alert and its end. It keeps alerts in memory, and drops one that is not repeated in time.
   */
  'alertmanager-api'(items, key, now) {
    const alerts = current(items).map((item) => {
      const { at, notice } = item;
      const end = notice.state === 'resolved' ? at : notice.state === 'event' ? undefined : now + HELD_MS;
      return {
        labels: prometheusLabels(notice),
        annotations: annotationsOf(item),
        startsAt: new Date(notice.since).toISOString(),
        ...(end !== undefined && { endsAt: new Date(end).toISOString() }),
      };
    });
    return { headers: json(key), body: JSON.stringify(alerts) };
  },
};

/** How often firing alerts are repeated for a receiver that drops them. */
export const REPEAT_MS = 60_000;
/** Time after which such a receiver ends an alert that is not repeated: three repetitions may fail. */
const HELD_MS = 4 * REPEAT_MS;

/** The same key for the firing and the resolved notice of a condition, whatever its text. */
function fingerprintOf(notice: Notice): string {
  const sorted = Object.entries(prometheusLabels(notice)).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex').slice(0, 16);
}

const json = (key: string) => ({ 'content-type': 'application/json', 'idempotency-key': key });

function genericOf(item: Queued) {
  const { id, at } = item;
  const { state, title, text, name, severity, value, threshold, window, runbook, since, ...rest } =
    withPriority(item.notice);
  const { labels, places = [], host, instance, cause, firstStep, link } = rest;
  return {
    title,
    state: state === 'resolved' ? 'resolved' : 'firing',
    value: value ?? null,
    threshold: threshold ?? null,
    window: window ?? null,
    at: new Date(at).toISOString(),
    labels: { ...identifying(labels), severity },
    runbook: runbook ?? null,
    id,
    name,
    kind: state,
    severity,
    text: personText(item),
    summary: text,
    since: new Date(since).toISOString(),
    where: { places, host: host ?? null, instance: instance ?? null },
    cause: cause ?? null,
    firstStep: firstStep ?? null,
    ...(link !== undefined && { link }),
  };
}

const RANK: Readonly<Record<Notice['severity'], number>> = { critical: 2, warning: 1, info: 0 };

/**
 * The notice that represents all of them: the most severe one that fires, or if none fires, the most severe one that
 * has ended.
 */
function leadOf(items: readonly Queued[]): Queued {
  const rank = ({ notice }: Queued) =>
    RANK[withPriority(notice).severity] + (notice.state === 'resolved' ? 0 : 3);
  return current(items).reduce((lead, item) => (rank(item) > rank(lead) ? item : lead));
}

/** e.g. `Resolved: NAS backup STALE`, `3 alerts, 1 resolved: NAS backup STALE and others` */
function titleOf(items: readonly Queued[]): string {
  const { title } = leadOf(items).notice;
  const all = current(items).length;
  const resolved = current(items).filter(({ notice }) => notice.state === 'resolved').length;
  const isOver = resolved === all;
  if (all === 1) return `${isOver ? 'Resolved: ' : ''}${title}`;
  const count = isOver
    ? `Resolved: ${all} alerts`
    : `${all} alerts${resolved > 0 ? `, ${resolved} resolved` : ''}`;
  return `${count}: ${title} and others`;
}

const stateOf = (items: readonly Queued[]): 'firing' | 'resolved' =>
  current(items).every(({ notice }) => notice.state === 'resolved') ? 'resolved' : 'firing';

/**
 * The newest notice of each alert. A post that waited for its receiver may hold the beginning of an alert and its end; what
 * it says as a whole is how things are now. Events have no end, so each of them counts.
 */
function current(items: readonly Queued[]): readonly Queued[] {
  const isOverBy = ({ notice }: Queued, later: Queued) =>
    notice.state !== 'event' && later.notice.state !== 'event' && keyOf(notice) === keyOf(later.notice);
  return items.filter((item, index) => !items.slice(index + 1).some((later) => isOverBy(item, later)));
}

const keyOf = (notice: Notice): string => notice.alert ?? fingerprintOf(notice);

/** Priority 1 is the most urgent, in every format: the label's scale ends with 5. */
function priorityOf({ labels }: Notice): number | undefined {
  const { priority = '' } = labels;
  return /^[1-5]$/.test(priority) ? Number(priority) : undefined;
}

/** What has priority 1 is critical, whatever severity its rule has. */
function withPriority(notice: Notice): Notice {
  return priorityOf(notice) === 1 ? { ...notice, severity: 'critical' } : notice;
}

/** ntfy counts from 1, its lowest, to 5. */
function ntfyPriority(notice: Notice): number {
  const { state, severity } = notice;
  if (state === 'resolved') return 3;
  const priority = priorityOf(notice);
  if (priority !== undefined) return 6 - priority;
  return severity === 'critical' ? 5 : severity === 'warning' ? 4 : 3;
}

/** Bytes of a message; ntfy makes a longer one an attachment, which a phone does not show. */
const NTFY_BYTES = 4_000;

function ntfyBody(items: readonly Queued[]): string {
  const texts = items.map(personText);
  const whole = texts.join('\n\n');
  if (Buffer.byteLength(whole) <= NTFY_BYTES) return whole;
  const lines = texts.map((text) => text.split('\n')[0] ?? '').join('\n');
  const short = Buffer.from(lines)
    .subarray(0, NTFY_BYTES - 100)
    .toString('utf8')
    .replace(/\uFFFD$/, '');
  return `${short}\n(The rest: \`holdfast alerts list\`)`;
}

function annotationsOf(item: Queued): Record<string, string> {
  const { title, text, runbook, value } = item.notice;
  return {
    summary: title,
    message: text,
    description: personText(item),
    ...(runbook !== undefined && { runbook_url: runbook }),
    ...(value !== undefined && { value: String(value) }),
  };
}

/** Labels in the names that Prometheus and Alertmanager take. */
function prometheusLabels(notice: Notice): Record<string, string> {
  const { name, labels, host, instance, severity } = withPriority(notice);
  const own = Object.entries(identifying(labels)).map(([key, value]) => [
    key.replace(/\W/g, '_').replace(/^(?=\d)/, '_'),
    value,
  ]);
  return {
    ...(host !== undefined && { host }),
    ...(instance !== undefined && { instance }),
    ...Object.fromEntries(own),
    alertname: name,
    severity,
  };
}

/** Labels without those that differ between an alert, its reminders and its end. */
function identifying(labels: Readonly<Record<string, string>>): Record<string, string> {
  const { state: _, reminder: __, ...rest } = labels;
  return rest;
}

/**
 * Headers can contain only Latin-1 characters. Others are encoded as in mail headers (RFC 2047), which ntfy decodes.
 */
function headerText(text: string): string {
  const line = text.replace(/[\r\n]+/g, ' ');
  return /^[\x20-\x7e]*$/.test(line) ? line : `=?UTF-8?B?${Buffer.from(line).toString('base64')}?=`;
}
