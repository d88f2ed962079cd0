/**
 * The receiver of telemetry: OTLP over HTTP (4318) and gRPC (4317), for traces, metrics and logs. The path of a body is
 * `receive/` (who may send, how much) → `intake.ts` → `spool/` (decoded by `decode/` and on disk, in a thread) →
 * `drain.ts` → the columnar database → the answer. `machines/telemetry-intake.ts` says when that stopped and why.
 *
 * Imports core, bus and its machine; no other plugin.
 */

import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { IngestKeysToken } from '../../core/contracts/ingest-keys.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import type { TelemetryIntakeContext } from '../../machines/otlp/intake.ts';
import { OtlpError } from './errors.ts';
import { Intake } from './intake.ts';
import {
  databaseChanged,
  INTAKE_ACTOR,
  intakeCheck,
  intakeHealth,
  pressureChanged,
  registerIntakeActor,
  spoolChanged,
} from './intake-actor.ts';
import { IntakeMetrics, Pressure } from './metrics.ts';
import { otlpOptions } from './options.ts';
import { grpcListener } from './receive/grpc.ts';
import { otlpErrorBody, otlpRoutes } from './receive/http.ts';
import { mtlsListener } from './receive/mtls.ts';
import { Budget, Receiver } from './receive/receiver.ts';

interface Running {
  readonly receiver: Receiver;
  readonly intake: Intake;
  readonly pressure: Pressure;
}

export const otlp = definePlugin({
  name: 'otlp',
  about: {
    area: 'Telemetry stack',
    what: 'receives telemetry: OTLP over HTTP and gRPC',
    docs: 'stack.md',
  },
  options: otlpOptions,
  errors: OtlpError,
  onFailure: 'continue', // a port that is taken must not take the router's keeper down
  wants: [ColumnarDatabaseToken, IngestKeysToken],
  env: {
    HOLDFAST_OTLP_HTTP_PORT: 'httpPort',
    HOLDFAST_OTLP_GRPC_PORT: 'grpcPort',
    HOLDFAST_OTLP_MTLS_PORT: 'mtls.port',
  },
  register(context, settings) {
    const { httpPort, grpcPort, host, allowedHosts, mtls, bodyLimit, memoryLimit, requestTimeoutMs } =
      settings;
    let running: Running | undefined;
    const receiver = (): Receiver => {
      if (!running) throw new Error('the otlp plugin has not started');
      return running.receiver;
    };
    const machine = () =>
      (context.services.actors.snapshot(INTAKE_ACTOR)?.context ?? {}) as Partial<TelemetryIntakeContext>;

    registerIntakeActor(context);
    context.health('otlp', () => {
      const { clock } = context.services;
      const { spool, damaged } = running?.intake ?? {};
      return spool && intakeHealth({ machine: machine(), spool, damaged: damaged ?? 0, now: clock.now() });
    });
    context.check({ name: 'stack.otlp', run: intakeCheck });
    context.http(
      {
        name: 'otlpHttp',
        port: httpPort,
        host,
        allowedHosts,
        portVariable: 'HOLDFAST_OTLP_HTTP_PORT',
        requestTimeoutMs,
        admission: 'own',
        errorBody: otlpErrorBody,
      },
      (http) => otlpRoutes(http, receiver, bodyLimit),
    );
    const grpc = { receiver, bodyLimit, requestTimeoutMs, logger: () => context.services.logger };
    context.listener(
      grpcListener({
        ...grpc,
        name: 'otlpGrpc',
        host,
        port: grpcPort,
        portVariable: 'HOLDFAST_OTLP_GRPC_PORT',
      }),
    );
    if (mtls.port !== undefined) context.listener(mtlsListener(grpc, { ...mtls, port: mtls.port }));

    context.onStart(() => {
      const { services } = context;
      const { bus, clock, metrics, logger, dataDir } = services;
      const budget = new Budget(memoryLimit);
      const intake: Intake = new Intake({
        clock,
        dataDir,
        bodyLimit,
        spoolLimit: settings.spoolLimit,
        lingerMs: settings.lingerMs,
        database: () => services.find(ColumnarDatabaseToken),
        databaseChanged: (place, reason) =>
          bus.publish(databaseChanged, {
            place,
            since: clock.now(),
            ...(reason !== undefined && { reason }),
          }),
        spoolChanged: (reason) => bus.publish(spoolChanged, reason === undefined ? {} : { reason }),
        inserted: (frame) => measured.inserted(frame),
        lost: (frame) => {
          measured.lost(frame);
          logger.error({ table: frame.table, rows: frame.rows }, 'otlp.frame_lost');
        },
        damaged: (frames) => {
          measured.damaged(frames);
          logger.error({ frames }, 'otlp.frames_damaged');
        },
        threadEnded: (reason) => logger.error({ reason }, 'otlp.thread_ended'),
      });
      const measured = new IntakeMetrics(metrics, {
        spool: () => intake.spool,
        held: () => budget.used,
        now: () => clock.now(),
      });
      const pressure = new Pressure(clock, (pressed, refused) =>
        bus.publish(pressureChanged, { pressed, refused }),
      );
      const counted = {
        taken: measured.taken.bind(measured),
        turnedAway(refusal: Parameters<IntakeMetrics['turnedAway']>[0]) {
          measured.turnedAway(refusal);
          if (refusal.reason === 'pressed') pressure.refused();
        },
      };
      const keys = () => services.find(IngestKeysToken);
      const shut = () => machine().shut;
      running = { intake, pressure, receiver: new Receiver({ intake, budget, keys, shut, counted }) };
      if (machine().shut !== undefined) bus.publish(spoolChanged, {}); // whether it is so still, the spool will tell
      intake.start();
    });
    context.onStop(async () => {
      running?.pressure.stop();
      await running?.intake.stop();
    });
  },
});
