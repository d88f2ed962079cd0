import { createHash } from 'node:crypto';
import type { Notice, Queued } from '../../machines/alerts/notice.ts';

/** A body and its headers, as one receiver understands them. */
export interface Payload {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Format = 'json' | 'ntfy' | 'alertmanager' | 'alertmanager-api';

/**
 * What is posted of notices that go together.
 *
 * @param items at least one, oldest first
 * @param key the same again when the same post is repeated after a crash
 */
export const formats: Readonly<Record<Format, (items: readonly Queued[], key: string) => Payload>> = {
  /** One notice is one object; several are an object of the same shape with the single ones in `alerts`. */
  json(items, key) {
    const alerts = items.map(genericOf);
    const [first] = alerts;
    const whole =
      alerts.length === 1 ? first : { ...first, title: titleOf(items), state: worst(items), alerts };
    return { headers: json(key), body: JSON.stringify(whole) };
  },
  ntfy(items, key) {
    const firing = worst(items) === 'firing';
    const urgent = items.some(({ notice }) => notice.severity === 'critical' && notice.state !== 'resolved');
    // A rule's own priority counts where all that goes together has it: one of them may not make another less urgent.
    const own = new Set(items.map(({ notice }) => notice.labels.priority));
    const [wanted] = own.size === 1 ? own : [];
    return {
      headers: {
        'content-type': 'text/plain; charset=utf-8',
        'idempotency-key': key,
        title: headerText(titleOf(items)),
        priority: wanted ?? (urgent ? '5' : firing ? '4' : '3'),
        tags: firing ? 'rotating_light' : 'white_check_mark',
      },
      body: items.map(({ notice }) => `${mark(notice.state)}${notice.text}`).join('\n'),
    };
  },
  /** The format of an Alertmanager's webhooks. */
  alertmanager(items, key) {
    const alerts = items.map(({ at, notice }) => ({
      status: notice.state === 'resolved' ? 'resolved' : 'firing',
      labels: { alertname: notice.name, severity: notice.severity, ...withoutState(notice.labels) },
      annotations: {
        summary: notice.title,
        description: notice.text,
        ...(notice.runbook !== undefined && { runbook_url: notice.runbook }),
        ...(notice.value !== undefined && { value: String(notice.value) }),
      },
      startsAt: new Date(notice.since).toISOString(),
      endsAt: notice.state === 'resolved' ? new Date(at).toISOString() : '0001-01-01T00:00:00Z',
      generatorURL: '',
      fingerprint: fingerprintOf(notice),
    }));
    const body = {
      version: '4',
      groupKey: key,
      truncatedAlerts: 0,
      status: worst(items) === 'firing' ? 'firing' : 'resolved',
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
   * As an Alertmanager takes alerts itself, at `/api/v2/alerts`. It recognises an alert by its labels alone, so those are
   * without what differs between the alert and its end; it would forget one without an end after minutes.
   */
  'alertmanager-api'(items, key) {
    const alerts = items.map(({ at, notice }) => {
      const { reminder: _, ...labels } = withoutState(notice.labels);
      const end = notice.state === 'resolved' ? at : notice.state === 'event' ? undefined : at + HELD_MS;
      return {
        labels: { alertname: notice.name, ...labels },
        annotations: {
          summary: notice.title,
          description: notice.text,
          severity: notice.severity,
          ...(notice.runbook !== undefined && { runbook_url: notice.runbook }),
        },
        startsAt: new Date(notice.since).toISOString(),
        ...(end !== undefined && { endsAt: new Date(end).toISOString() }),
      };
    });
    return { headers: json(key), body: JSON.stringify(alerts) };
  },
};

/** How long an Alertmanager holds an alert that is posted once; reminders come before. */
const HELD_MS = 30 * 86_400_000;
/** The same for the same condition, firing or resolved, whatever its text. */
function fingerprintOf({ name, labels }: Notice): string {
  const sorted = Object.entries(withoutState(labels)).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([name, sorted]))
    .digest('hex')
    .slice(0, 16);
}

const json = (key: string) => ({ 'content-type': 'application/json', 'idempotency-key': key });

function genericOf({ id, at, notice }: Queued) {
  const { state, title, text, name, severity, value, threshold, window, runbook, labels, since } = notice;
  return {
    title,
    state: state === 'resolved' ? 'resolved' : 'firing',
    value: value ?? null,
    threshold: threshold ?? null,
    window: window ?? null,
    at: new Date(at).toISOString(),
    labels: withoutState(labels),
    runbook: runbook ?? null,
    id,
    name,
    kind: state,
    severity,
    text,
    since: new Date(since).toISOString(),
  };
}

function titleOf(items: readonly Queued[]): string {
  const [first] = items;
  if (!first) return '';
  const { notice } = first;
  if (items.length === 1) return `${notice.state === 'resolved' ? 'Resolved: ' : ''}${notice.title}`;
  return `${items.length} alerts: ${notice.title} and others`;
}

const worst = (items: readonly Queued[]): 'firing' | 'resolved' =>
  items.every(({ notice }) => notice.state === 'resolved') ? 'resolved' : 'firing';

const mark = (state: string): string =>
  state === 'resolved' ? 'Resolved: ' : state === 'reminder' ? 'Still: ' : '';

function withoutState(labels: Readonly<Record<string, string>>): Record<string, string> {
  const { state: _, ...rest } = labels;
  return rest;
}

/** Headers carry Latin letters only; what is beyond is encoded as mail does it, which ntfy understands. */
function headerText(text: string): string {
  const line = text.replace(/[\r\n]+/g, ' ');
  return /^[\x20-\x7e]*$/.test(line) ? line : `=?UTF-8?B?${Buffer.from(line).toString('base64')}?=`;
}
