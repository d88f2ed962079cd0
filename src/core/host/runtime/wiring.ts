import { type Bus, subscriberFailed } from '../../../bus/bus.ts';
import { ALERT_RAISE, type AlertRaised, alertRaised } from '../../contracts/alerts.ts';
import { EFFECT_DONE, type EffectHandler, type EffectRegistration } from '../../kernel/actors/effect.ts';
import type { EffectEnd } from '../../kernel/actors/effects.ts';
import type { ActorSystem } from '../../kernel/actors/system.ts';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import type { LogRecord } from '../../kernel/log/record.ts';
import { HTTP_REPLY, type PendingReplies, type Reply } from '../http/pending-replies.ts';
import type { Logger } from '../logging/logger.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { AlertsOfHost } from './alerts-of-host.ts';

// How the parts of a runtime are connected: actors to HTTP requests and alerts, and whatever happens in them to metrics and
// log lines.

/** Upper bounds in seconds: an fsync takes 0.1 ms on a good disk and a second on a bad card. */
const COMMIT_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/**
 * The effects that every machine may ask for without a plugin: the answer to the HTTP request of the same correlation,
 * and an alert. Both may run twice after a crash; an answer that nobody waits for any more is `gone`.
 */
export function builtinEffects(
  pendingReplies: PendingReplies,
  bus: Bus,
  ofHost: AlertsOfHost,
): EffectRegistration[] {
  const reply: EffectHandler<Reply & { readonly to?: string }> = ({ to, ...answer }, { correlation }) => {
    const delivered = pendingReplies.settle(to ?? correlation, answer);
    return { type: EFFECT_DONE, effect: HTTP_REPLY, ...(!delivered && { gone: true }) };
  };
  const alert: EffectHandler<AlertRaised> = (raised, { actor, correlation, cause }) => {
    bus.publish(alertRaised, ofHost.ofActor(raised, actor), { correlation, cause });
  };
  return [
    // It ends at once, so that no deadline need be kept for it.
    { type: HTTP_REPLY, onRecovery: 'retry', deadlineMs: Number.POSITIVE_INFINITY, handler: reply },
    { type: ALERT_RAISE, onRecovery: 'retry', handler: alert, adapter: 'alerts' },
  ];
}

/** Metrics and log lines of the event log: records, bytes, how long commits take, and when it freezes. */
export function observeLog(log: EventLog, bus: Pick<Bus, 'publish'>, metrics: Metrics, logger: Logger): void {
  const records = metrics.counter('log_records_total', { help: 'Records made durable.' });
  const bytes = metrics.counter('log_bytes_total', {
    help: 'Bytes of record bodies and blobs made durable.',
  });
  const commits = metrics.histogram('log_commit_seconds', {
    help: 'From handing a batch to the writer until it was durable.',
    buckets: COMMIT_BUCKETS,
  });
  metrics.gauge('log_queued_records', {
    help: 'Records that wait for a commit.',
    collect: (gauge) => gauge.set(log.status().queued),
  });
  log.onDurable((_seq, stats) => {
    records.inc(stats.records);
    bytes.inc(stats.bytes);
    commits.observe(stats.ms / 1_000);
  });
  log.onFrozen((reason) => {
    const { seq, durableSeq } = log.status();
    if (reason === undefined) {
      logger.info({ seq, durableSeq }, 'log.thawed');
      return;
    }
    logger.error({ code: 'HF_LOG_WRITE', reason, seq, durableSeq }, 'log.frozen');
    const text = `The event log cannot be written (${reason}); effects wait, and new requests are refused.`;
    bus.publish(alertRaised, { name: 'log.frozen', severity: 'critical', text, labels: {} });
  });
}

/** The mailbox, as a gauge. */
export function observeActors(actors: ActorSystem, metrics: Metrics): void {
  metrics.gauge('mailbox_depth', {
    help: 'Events that wait for the log to have room.',
    collect: (gauge) => gauge.set(actors.mailboxDepth),
  });
}

/** @returns counts how effects end, and logs those that failed */
export function observeEffects(metrics: Metrics, logger: Logger): (end: EffectEnd) => void {
  const effects = metrics.counter('effects_total', {
    help: 'Effects by type and how they ended.',
    labels: ['type', 'outcome'],
  });
  return ({ type, outcome, id, actor, error }) => {
    effects.inc({ type, outcome });
    if (outcome === 'done') return;
    const code = isCoded(error) ? error.code : undefined;
    logger.warn({ effect: type, id, actor, code, error }, `effect.${outcome}`);
  };
}

/** @returns logs a machine that threw and raises an alert, beside its record */
export function observeFailures(bus: Pick<Bus, 'publish'>, logger: Logger): (record: LogRecord) => void {
  return ({ seq, actor, event, failed, correlation }) => {
    logger.error(
      { code: 'HF_MACHINE_THREW', seq, actor, event: event.type, reason: failed, correlation },
      'machine.threw',
    );
    const text = `The machine of ${actor} threw on ${event.type} (record ${seq}); its state is as before.`;
    bus.publish(
      alertRaised,
      { name: 'machine.threw', severity: 'critical', text, labels: { actor } },
      { correlation, cause: seq },
    );
  };
}

/** Counts and logs subscribers that throw, and payloads that do not fit their topic. */
export function observeBus(bus: Bus, metrics: Metrics, logger: Logger): void {
  const failures = metrics.counter('bus_failures_total', {
    help: 'Subscribers that threw and payloads refused.',
    labels: ['fault'],
  });
  bus.subscribe(subscriberFailed, 'core', ({ payload, correlation }) => {
    failures.inc({ fault: payload.fault });
    logger.error({ ...payload, correlation }, 'bus.subscriber_failed');
  });
}

/** Writes every alert as a log line, whether a machine asked for it or a part of the process raised it. */
export function observeAlerts(bus: Bus, logger: Logger): void {
  bus.subscribe(alertRaised, 'core', ({ payload, correlation }) => {
    const level = payload.severity === 'info' ? 'info' : 'warn';
    logger[level]({ ...payload, correlation }, 'alerts.raised');
  });
}
