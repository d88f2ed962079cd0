/**
 * The columnar database (O6, O7): a ClickHouse server where HOLDFAST_CLICKHOUSE_URL names one (`engine/remote.ts`), else
 * the same engine inside this process (`engine/embedded.ts`, on what `engine/folder.ts` opens). `database.ts` makes
 * either a `ColumnarDatabase`: bounded times, coded errors (`fault.ts`), a lane for what people type (`statement.ts`).
 * The tables are in `schema/`, what commands and doctor ask in `questions/`, whether it is there in `connection.ts`.
 *
 * Imports core, bus and machines; no other plugin.
 */

import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { databaseChecks } from './checks.ts';
import { nasCommand } from './commands/nas.ts';
import { queryCommand } from './commands/query.ts';
import { verifyCommand } from './commands/verify.ts';
import { ConnectionWatch, measure, registerConnection } from './connection.ts';
import { Database } from './database.ts';
import type { Engine } from './engine/engine.ts';
import { ColumnarError } from './errors.ts';
import { openEngine, schemaOptions } from './open.ts';
import { clickhouseOptions, clickhouseVariables } from './options.ts';
import { serveQuestions } from './questions/questions.ts';

/** @example columnar({ url: 'https://db.example.org', password: 'clickstack#admin_password', retentionDays: 14 }) */
export const columnar = definePlugin({
  name: 'columnar',
  about: {
    area: 'Telemetry stack',
    what: 'the columnar database, elsewhere or in this process, and questions to it',
    docs: 'stack.md',
  },
  options: clickhouseOptions,
  env: clickhouseVariables,
  wants: [SecretsStoreToken],
  provides: [ColumnarDatabaseToken],
  onFailure: 'continue',
  register(context, options) {
    let engine: Engine | undefined;
    let started: Database | undefined;
    let watch: ConnectionWatch | undefined;
    const ready = Promise.withResolvers<void>();
    const database = (): Database => {
      if (started) return started;
      const status = context.services.plugins().find(({ name }) => name === 'columnar');
      throw new ColumnarError('HF_COLUMNAR_NOT_RUNNING', { reason: status?.reason ?? 'it has not started' });
    };

    registerConnection(context);
    context.provide(ColumnarDatabaseToken, database);
    context.control((surface) => serveQuestions(surface, database));
    context.health('columnar', () => watch?.health());
    for (const command of [verifyCommand, nasCommand, queryCommand]) context.command(command(options));
    for (const check of databaseChecks(options)) context.check(check);

    context.onStart(async () => {
      const { bus, clock, dataDir, find, logger, metrics } = context.services;
      const opened = await openEngine(options, dataDir, find(SecretsStoreToken), ready.promise);
      engine = opened;
      const told = measure(metrics, () => watch?.isThere ?? false);
      started = new Database({
        engine: opened,
        clock,
        schema: schemaOptions(options),
        observe(observed) {
          told(observed);
          // Somebody else met it first.
          if (observed.fault?.code === 'HF_COLUMNAR_UNREACHABLE' && watch?.isThere) void watch.look();
        },
      });
      watch = new ConnectionWatch({
        database: started,
        bus,
        clock,
        logger,
        checkMs: options.checkMs,
        reconnect: () => opened.reconnect(),
      });
    });
    context.onReady(() => {
      ready.resolve();
      watch?.start();
    });
    context.onStop(async () => {
      await watch?.stop();
      await engine?.close();
    });
  },
});
