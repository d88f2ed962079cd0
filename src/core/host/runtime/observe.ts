import type { Bus } from '../../../bus/bus.ts';
import { subscriberFailed } from '../../../bus/bus.ts';
import { alertRaised } from '../../contracts/alerts.ts';
import type { EffectEnd } from '../../kernel/actors/effects.ts';
import type { ActorSystem } from '../../kernel/actors/system.ts';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import type { LogRecord } from '../../kernel/log/record.ts';
import type { Logger } from '../logging/logger.ts';
import type { Metrics } from '../metrics/metrics.ts';

/** Upper bounds in seconds: an fsync takes 0.1 ms on a good disk and a second on a bad card. */
const COMMIT_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Metrics and log lines of the log: what it took, how long commits take, and when it freezes. */
export function observeLog(log: EventLog, bus: Bus, metrics: Metrics, logger: Logger): void {
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

/** @returns tells of machines that threw: the record has it too, and a person should know */
export function observeFailures(bus: Bus, logger: Logger): (record: LogRecord) => void {
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

/** Subscribers that throw, and payloads that fit no schema, become log lines and a counter. */
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

/** Every alert is a line of the log, whether a machine asked for it or a part of the process raised it. */
export function observeAlerts(bus: Bus, logger: Logger): void {
  bus.subscribe(alertRaised, 'core', ({ payload, correlation }) => {
    logger.warn({ ...payload, correlation }, 'alerts.raised');
  });
}
