/**
 * The receiver of telemetry: OTLP over HTTP (4318) and gRPC (4317), for traces, metrics and logs. The path of a body:
 * `receive/` (who may send, how much) → `intake.ts` → `spool/` (a thread, which decodes it by `decode/` and writes its rows
 * to disk) → `drain.ts` → the columnar database → the answer. `machines/otlp/intake.ts` records when and why this path was blocked.
 */
import { Subject } from 'rxjs';
import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { IngestKeysToken } from '../../core/contracts/ingest-keys.ts';
import { addressOf } from '../../core/host/http/listen-options.ts';
import { strangerBudget } from '../../core/host/http/request-budget.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import type { IngestParts } from './console/ingest-live.ts';
import { contributePage } from './console/ingest-page.ts';
import { OtlpError } from './errors.ts';
import { Intake } from './intake.ts';
import {
  databaseChanged,
  intakeActor,
  intakeCheck,
  intakeHealth,
  loadChanged,
  RECEIVER,
  registerIntakeActor,
  spoolChanged,
} from './intake-actor.ts';
import { IntakeMetrics, overloads } from './metrics.ts';
import { otlpOptions } from './options.ts';
import { grpcListener } from './receive/grpc.ts';
import { grpcDemand } from './receive/grpc-demand.ts';
import { otlpErrorBody, otlpRoutes } from './receive/http.ts';
import { mtlsListener } from './receive/mtls.ts';
import { BodyBudget, Receiver } from './receive/receiver.ts';

/**
 * The plugin `otlp`: receives telemetry: OTLP over HTTP and gRPC.
 *
 * @public
 */
export const otlp = definePlugin({
  name: 'otlp',
  about: {
    area: 'Telemetry stack',
    what: 'receives telemetry: OTLP over HTTP and gRPC',
    docs: 'stack.md',
  },
  options: otlpOptions,
  errors: OtlpError,
  onFailure: 'continue', // a port in use must not stop the reconciler
  wants: [ColumnarDatabaseToken, IngestKeysToken],
  env: {
    HOLDFAST_OTLP_HTTP_PORT: 'port',
    HOLDFAST_OTLP_GRPC_PORT: 'grpcPort',
    HOLDFAST_OTLP_MTLS_PORT: 'mtls.port',
  },
  variables: {
    HOLDFAST_OTLP_HTTP_PORT: 'Port of OTLP over HTTP.',
    HOLDFAST_OTLP_GRPC_PORT: 'Port of OTLP over gRPC.',
    HOLDFAST_OTLP_MTLS_PORT:
      'Port for producers from outside, which must show a client certificate; off unless set.',
  },
  start({ bus, clock, metrics, logger, dataDir, find, actors }, options) {
    const state = () => actors.get(intakeActor, RECEIVER)?.context;
    const budget = new BodyBudget(options.memoryLimit);
    const intake: Intake = new Intake({
      clock,
      dataDir,
      bodyLimit: options.bodyLimit,
      spoolLimit: options.spoolLimit,
      lingerMs: options.lingerMs,
      database: () => find(ColumnarDatabaseToken),
      onDatabase: (place, reason) =>
        bus.publish(databaseChanged, {
          place,
          since: clock.now(),
          ...(reason !== undefined && { reason }),
        }),
      onSpool: (reason) => bus.publish(spoolChanged, reason === undefined ? {} : { reason }),
      onLeft: (frame, result) => {
        measured.left(frame, result);
        if (result === 'lost') logger.error({ table: frame.table, rows: frame.rows }, 'otlp.frame_lost');
      },
      onDamaged: (frames) => {
        measured.damaged(frames);
        logger.error({ frames }, 'otlp.frames_damaged');
      },
      onThreadEnded: (reason) => logger.error({ reason }, 'otlp.thread_ended'),
    });
    const measured = new IntakeMetrics(metrics, {
      spool: () => intake.spool,
      held: () => budget.used,
      now: () => clock.now(),
    });
    const refusals = new Subject<void>();
    const receiver = new Receiver({
      intake,
      budget,
      keys: () => find(IngestKeysToken),
      strangerRefusal: strangerBudget('otlp', options.strangerBudget, { logger, metrics }),
      blocked: () => state()?.blocked,
      onTaken: (signal, rows, refused) => measured.taken(signal, rows, refused),
      onRefused: (refusal) => {
        measured.refused(refusal);
        if (refusal.reason === 'overloaded') refusals.next();
      },
    });
    // The fault of the last run may be over; if not, the spool reports it again.
    if (state()?.blocked !== undefined) bus.publish(spoolChanged, {});
    intake.start();
    const load = overloads(refusals).subscribe((change) => bus.publish(loadChanged, change));
    const health = () => intakeHealth(state(), intake.spool, intake.damaged, clock.now());
    const parts: IngestParts = {
      spool: () => intake.spool,
      damaged: () => intake.damaged,
      counts: () => measured.counted(),
      database: () => find(ColumnarDatabaseToken),
      keys: () => find(IngestKeysToken),
    };
    return { receiver, intake, load, health, logger, parts };
  },
  register(context, options) {
    const { host, grpcPort, tls, insecure, mtls, bodyLimit, requestTimeoutMs } = options;
    registerIntakeActor(context);
    contributePage(context);
    context.health('otlp', ({ health }) => health());
    context.check({ name: 'stack.otlp', run: intakeCheck });
    context.http(
      {
        ...addressOf(options),
        name: 'otlpHttp',
        portVariable: 'HOLDFAST_OTLP_HTTP_PORT',
        requestTimeoutMs,
        admission: 'own',
        keyedPath: { method: 'POST', path: '/v1/traces' },
        writeBudget: 'own', // the memory of bodies, and the spool; who has no key by `strangerBudget`
        errorBody: otlpErrorBody,
      },
      (http, { receiver }) => otlpRoutes(http, receiver, bodyLimit),
    );
    context.listener(
      'otlpGrpc',
      ({ receiver, logger }) =>
        grpcListener({
          ...{ receiver, logger, bodyLimit, requestTimeoutMs },
          ...{ tls, insecure },
          ...{ name: 'otlpGrpc', host, port: grpcPort, portVariable: 'HOLDFAST_OTLP_GRPC_PORT' },
        }),
      { demand: grpcDemand, ...(tls && { tls }) },
    );
    const { port, certFile, keyFile } = mtls;
    if (port !== undefined)
      context.listener(
        'otlpMtls',
        ({ receiver, logger }) =>
          mtlsListener({ receiver, logger, bodyLimit, requestTimeoutMs }, { ...mtls, port }),
        { demand: grpcDemand, ...(certFile && keyFile && { tls: { certFile, keyFile } }) },
      );
    context.onStop(async ({ intake, load }) => {
      load.unsubscribe();
      await intake.stop();
    });
  },
});
